"""Bytes to text that can be stored anywhere: by the declared charset, then UTF-8, then a detected one."""

from __future__ import annotations

import encodings
import encodings.aliases
import pkgutil
import re
from functools import cache
from typing import Final

import charset_normalizer

from models.mail.diagnostics import Diagnostics
from models.mail.limits import MAX_DETECTION_BYTES

_WIDER: Final = {
    "iso8859_1": "cp1252",
    "latin_1": "cp1252",
    "iso8859_9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
}
"""Charsets whose name is used for a wider one in practice (as in the WHATWG encoding standard)."""

_NOT_CHARSETS: Final = {
    "idna",
    "punycode",
    "raw_unicode_escape",
    "unicode_escape",
    "undefined",
    "mbcs",
    "oem",
}
"""Codecs of Python that are no charsets of mail; some take quadratic time."""

_TELLING_BYTES: Final = 64
"""From fewer bytes a charset is not guessed; most mail without one is Western European."""

_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")
_UNSTORABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")


@cache
def _codecs() -> dict[str, str]:
    """Every spelling that Python knows of a charset, and the codec it means.

    Names are looked up here and never handed to :mod:`codecs`, which would remember every unknown one.
    """
    modules = {module.name for module in pkgutil.iter_modules(encodings.__path__)}
    names = {name: name for name in modules} | encodings.aliases.aliases
    return {name: codec for name, codec in names.items() if codec not in _NOT_CHARSETS}


def find_codec(charset: str) -> str | None:
    """The codec to decode a declared charset with, None where there is none.

    >>> find_codec("ISO-8859-1"), find_codec("x-unknown"), find_codec("punycode")
    ('cp1252', None, None)
    """
    normal = re.sub(r"[^a-z0-9]+", "_", charset.lower()[:40]).strip("_")
    codec = _codecs().get(normal) or _codecs().get(normal.replace("iso_", "iso"))
    return None if codec is None else _WIDER.get(codec, codec)


def decode(content: bytes, charset: str | None, diagnostics: Diagnostics) -> str:
    """Text of bytes in a charset that may be wrong, unknown or missing. Never fails.

    Args:
        content: bytes without transfer encoding.
        charset: the declared name, if any.
        diagnostics: where it is noted that another charset had to be taken.
    """
    declared = find_codec(charset) if charset else None
    if charset and declared is None:
        diagnostics.add_defect(f"unknown charset {charset[:40]!r}")
    for codec in (declared, "utf_8_sig"):
        if codec is None:
            continue
        try:
            return content.decode(codec)
        except (UnicodeError, LookupError):
            if codec == declared:
                diagnostics.add_defect(f"text is not in its declared charset {charset!r}")
    for codec in (declared, "utf_8"):
        if codec is None:
            continue
        try:
            text = content.decode(codec, "replace")
        except (UnicodeError, LookupError):
            continue
        foreign = sum(not character.isascii() for character in text)
        if foreign > 2 * text.count("\ufffd"):  # most of what is not ASCII is right: damaged, not mislabelled
            return text
    return content.decode(_detected(content[:MAX_DETECTION_BYTES]), "replace")


def _detected(sample: bytes) -> str:
    if len(sample) < _TELLING_BYTES:
        return "cp1252"
    best = charset_normalizer.from_bytes(sample).best()
    codec = find_codec(best.encoding) if best is not None else None
    return codec or "cp1252"


def clean(text: str) -> str:
    r"""The text without what is invisible inside words and what databases and JSON refuse.

    >>> clean("Rech\xadnung\x00 Nr.\r\n7")
    'Rechnung Nr.\n7'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x85", "\n").replace("\xa0", " ")
    return _SURROGATES.sub("\ufffd", _UNSTORABLE.sub("", _INVISIBLE.sub("", text)))
