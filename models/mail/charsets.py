"""Decodes bytes to text: by the declared charset, then as UTF-8, then by a detected charset."""

from __future__ import annotations

import encodings
import encodings.aliases
import pkgutil
import re
from functools import cache, lru_cache
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

_ASCII_SUPERSETS: Final = frozenset(
    {"ascii", "utf_8", "cp1250", "cp1251", "cp1252", "cp1254", "iso8859_2", "iso8859_15"}
)
"""Common codecs that read ASCII bytes as ASCII."""

_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROLS: Final = bytes({*range(0x20), 0x7F} - set(b"\t\n\r"))
_C1_CONTROLS = re.compile(rb"\xc2[\x80-\x84\x86-\x9f]")
_INVISIBLE: Final = tuple(character.encode() for character in "\u00ad\u200b\u2060\ufeff")


@cache
def _codecs() -> dict[str, str]:
    """Return the codec for every charset name that Python knows.

    Unknown names must not reach :mod:`codecs`, because it caches every name forever.
    """
    modules = {module.name for module in pkgutil.iter_modules(encodings.__path__)}
    names = {name: name for name in modules} | encodings.aliases.aliases
    return {name: codec for name, codec in names.items() if codec not in _NOT_CHARSETS}


@lru_cache(maxsize=256)
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
    if (declared is None or declared in _ASCII_SUPERSETS) and content.isascii():
        return content.decode("ascii")
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
    is_ascii = text.isascii()
    if is_ascii and text.isprintable():
        return text
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        content = text.encode()
    except UnicodeEncodeError:
        content = _SURROGATES.sub("\ufffd", text).encode()
    content = content.translate(
        None, _CONTROLS
    )  # on bytes, because patterns on text take several times longer
    if not is_ascii:
        content = content.replace(b"\xc2\x85", b"\n").replace(b"\xc2\xa0", b" ")
        content = _C1_CONTROLS.sub(b"", content)
        for character in _INVISIBLE:
            content = content.replace(character, b"")
    return content.decode()
