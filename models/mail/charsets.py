"""Decodes bytes to text: by the declared charset, then as UTF-8, then by a detected charset."""

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

_SUPERSETS: Final = {
    "iso8859_1": "cp1252",
    "latin_1": "cp1252",
    "iso8859_9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
}
"""Charsets whose name in practice means a larger charset (as in the WHATWG Encoding Standard)."""

_NOT_CHARSETS: Final = {
    "idna",
    "punycode",
    "raw_unicode_escape",
    "unicode_escape",
    "undefined",
    "mbcs",
    "oem",
}
"""Python codecs that are not charsets of mail. Some take quadratic time."""

_MIN_DETECTION_BYTES: Final = 64
"""Minimum length for detection. Shorter text is read as Windows-1252: most mail without a charset is Western
European."""

_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")
_UNSTORABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")


@cache
def _codecs() -> dict[str, str]:
    """Return the codec for every charset name that Python knows.

    Unknown names must not reach :mod:`codecs`, because it caches every name forever.
    """
    modules = {module.name for module in pkgutil.iter_modules(encodings.__path__)}
    names = {name: name for name in modules} | encodings.aliases.aliases
    return {name: codec for name, codec in names.items() if codec not in _NOT_CHARSETS}


def find_codec(charset: str) -> str | None:
    """Return the codec for a declared charset; None if there is none.

    >>> find_codec("ISO-8859-1"), find_codec("x-unknown"), find_codec("punycode")
    ('cp1252', None, None)
    """
    name = re.sub(r"[^a-z0-9]+", "_", charset.lower()[:40]).strip("_")
    codec = _codecs().get(name) or _codecs().get(name.replace("iso_", "iso"))
    return None if codec is None else _SUPERSETS.get(codec, codec)


def decode(content: bytes, charset: str | None, diagnostics: Diagnostics) -> str:
    """Decode bytes whose charset can be wrong, unknown or missing. Never fails.

    Args:
        content: bytes without transfer encoding.
        charset: the declared charset, or None.
        diagnostics: receives a defect if the declared charset cannot be used.
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
                diagnostics.add_defect(f"the text is not valid in its declared charset {charset!r}")
    for codec in (declared, "utf_8"):
        if codec is None:
            continue
        try:
            text = content.decode(codec, "replace")
        except (UnicodeError, LookupError):
            continue
        n_foreign = sum(not character.isascii() for character in text)
        if n_foreign > 2 * text.count("\ufffd"):  # most non-ASCII text is valid: damaged, not mislabelled
            return text
    return content.decode(_detect_codec(content[:MAX_DETECTION_BYTES]), "replace")


def _detect_codec(sample: bytes) -> str:
    if len(sample) < _MIN_DETECTION_BYTES:
        return "cp1252"
    best = charset_normalizer.from_bytes(sample).best()
    codec = find_codec(best.encoding) if best is not None else None
    return codec or "cp1252"


def clean(text: str) -> str:
    r"""Remove characters that are invisible inside words, and those that databases and JSON reject.

    >>> clean("Rech\xadnung\x00 Nr.\r\n7")
    'Rechnung Nr.\n7'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x85", "\n").replace("\xa0", " ")
    return _SURROGATES.sub("\ufffd", _UNSTORABLE.sub("", _INVISIBLE.sub("", text)))
