"""Decodes bytes to text: by the declared charset, then as UTF-8, then by a detected charset."""

from __future__ import annotations

import codecs
import encodings
import encodings.aliases
import pkgutil
import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Final

from models.extras import require
from models.mail.detection import detect_codec
from models.mail.diagnostics import Diagnostics
from models.mail.japanese import decode_euc_jp, decode_iso2022_jp, is_iso2022_jp
from models.mail.limits import MAX_DETECTION_BYTES

try:
    import webencodings
    from webencodings.labels import LABELS
except ModuleNotFoundError:
    webencodings = None  # type: ignore[assignment]

_SUPERSETS: Final = {
    "iso8859_1": "cp1252",
    "latin_1": "cp1252",
    "iso8859_9": "cp1254",
    "iso8859_11": "cp874",
    "tis_620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
}
"""Charsets whose name in practice means a larger charset (as in the WHATWG Encoding Standard)."""

_OTHER_NAMES: Final = {"ansix34": "ascii", "macce": "mac_latin2"}
"""Common names, reduced to letters and digits, that neither Python nor the standard knows."""

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

_MAX_CHARSET_CHARS: Final = 60

_ASCII_SUPERSETS: Final = frozenset(
    {"ascii", "utf_8", "cp1250", "cp1251", "cp1252", "cp1254", "iso8859_2", "iso8859_15"}
)
"""Common codecs that read ASCII bytes as ASCII."""

_WIDE: Final = frozenset({"utf_16", "utf_16_le", "utf_16_be", "utf_32", "utf_32_le", "utf_32_be"})
_VALID_UTF8_RATIO: Final = 4
"""Damaged UTF-8 has more than this many characters outside ASCII for each invalid one."""
_NOT_ALPHANUMERIC: Final = re.compile(r"[^a-z0-9]+")
_KNOWN_PART: Final = re.compile(
    r"(utf[-_ ]?8)(?![0-9])|iso[-_ ]?8859[-_ ]?(1[0-6]|[1-9])(?![0-9])|"
    r"(?:windows|win|cp|ibm|dos)[-_ ]?([0-9]{3,4})(?![0-9])"
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROLS: Final = bytes({*range(0x20), 0x7F} - set(b"\t\n\r"))
_C1_CONTROLS = re.compile(rb"\xc2[\x80-\x84\x86-\x9f]")
_INVISIBLE: Final = tuple(character.encode() for character in "\u00ad\u200b\u2060\ufeff")


def _key(name: str) -> str:
    return _NOT_ALPHANUMERIC.sub("", name.lower())


@cache
def _codecs() -> dict[str, str]:
    """Return the codec for every charset name that Python or the WHATWG Encoding Standard knows.

    Unknown names must not reach :mod:`codecs`, because it caches every name forever.
    """
    require(webencodings, "webencodings", "reading mail")
    modules = {module.name for module in pkgutil.iter_modules(encodings.__path__)}
    names = {name: name for name in modules} | encodings.aliases.aliases
    found = {_key(name): codec for name, codec in names.items() if codec not in _NOT_CHARSETS}
    for label, name in LABELS.items():
        codec = found.get(_key(webencodings.PYTHON_NAMES.get(name, name)))
        if name == "utf-16le" and label != name:
            codec = "utf_16"  # these labels state no byte order
        if codec is not None and found.get(_key(label)) != "ascii":
            found[_key(label)] = codec
    return {name: _SUPERSETS.get(codec, codec) for name, codec in found.items()} | _OTHER_NAMES


@lru_cache(maxsize=256)
def find_codec(charset: str) -> str | None:
    """Return the codec for a declared charset; None if there is none.

    Names are compared by their letters and digits. Of other names, a known name inside them counts.

    >>> find_codec("ISO-8859-1"), find_codec("x-unknown"), find_codec("punycode")
    ('cp1252', None, None)
    >>> find_codec("windows-31j"), find_codec("iso88591"), find_codec("en_US.UTF-8")
    ('cp932', 'cp1252', 'utf_8')
    """
    charset = charset.lower()[:_MAX_CHARSET_CHARS]
    codec = _codecs().get(_key(charset))
    if codec is None and charset.startswith(("x-", "cs")):
        codec = _codecs().get(_key(charset[2:]))
    if codec is None and (part := _KNOWN_PART.search(charset)):
        utf, iso, page = part.groups()
        codec = _codecs().get("utf8" if utf else f"iso8859{iso}" if iso else f"cp{page}")
    return codec


def decode(content: bytes, charset: str | None, diagnostics: Diagnostics, is_damaged: bool = False) -> str:
    """Decode bytes whose charset can be wrong, unknown or missing. Never fails.

    Args:
        content: bytes without transfer encoding.
        charset: the declared charset, or None.
        diagnostics: receives a defect if the declared charset cannot be used.
        is_damaged: whether some bytes are known to be wrong, so that they do not speak against the charset.
    """
    declared = find_codec(charset) if charset else None
    if charset and declared is None:
        diagnostics.add_defect(f"unknown charset {charset[:40]!r}")
    is_ascii = content.isascii()
    if is_ascii and (declared is None or declared in _ASCII_SUPERSETS):
        return decode_iso2022_jp(content) if is_iso2022_jp(content) else content.decode("ascii")
    if declared is not None:
        text = _decode_declared(content, declared)
        if text is not None:
            return text
        diagnostics.add_defect(f"the text is not valid in its declared charset {charset!r}")
        if is_damaged:
            return _LENIENT.get(declared, _decode_leniently)(content, declared)
        if is_ascii:
            return content.decode("ascii" if declared in _WIDE else declared, "replace")
    try:
        return content.decode("utf_8_sig")
    except UnicodeDecodeError:
        pass
    if declared is not None and declared != "utf_8":
        text = _LENIENT.get(declared, _decode_leniently)(content, declared)
        if _n_foreign(text) > 2 * text.count(
            "\ufffd"
        ):  # most non-ASCII text is valid: damaged, not mislabelled
            return text
    text = content.decode("utf_8", "replace")
    if _n_foreign(text) > _VALID_UTF8_RATIO * text.count("\ufffd"):
        return text
    return content.decode(find_undeclared_codec(content), "replace")


def find_undeclared_codec(content: bytes, context: str = "") -> str:
    """Return the codec of 8-bit text whose charset is not declared."""
    try:
        content.decode()
    except UnicodeDecodeError:
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf_16"
        return detect_codec(content[:MAX_DETECTION_BYTES], context)
    return "utf_8"


def _decode_declared(content: bytes, declared: str) -> str | None:
    """Return the text if it is valid in its declared charset; otherwise None."""
    if declared == "cp1252" and is_utf8(content):
        return None  # UTF-8 is hardly ever valid by chance
    codec = declared
    if declared in _WIDE:
        if b"\0" not in content and not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return None
        if declared == "utf_16":
            codec = _utf16_codec(content)
    try:
        return content.decode(codec)
    except (UnicodeError, LookupError):
        pass
    lenient = _LENIENT.get(declared)
    text = lenient(content, declared) if lenient else None
    return text if text is not None and "\ufffd" not in text else None


def is_utf8(content: bytes) -> bool:
    """Return whether bytes are valid UTF-8."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _utf16_codec(content: bytes) -> str:
    """Return the codec for UTF-16: by its byte order mark, or by the zero bytes of its ASCII characters."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf_16"
    return "utf_16_be" if content[::2].count(0) > content[1::2].count(0) else "utf_16_le"


def _decode_leniently(content: bytes, codec: str) -> str:
    try:
        return content.decode(codec, "replace")
    except (UnicodeError, LookupError):
        return content.decode("ascii", "replace")


_LENIENT: Final[dict[str, Callable[[bytes, str], str]]] = {
    **dict.fromkeys(
        ("iso2022_jp", "iso2022_jp_1", "iso2022_jp_2", "iso2022_jp_3", "iso2022_jp_ext", "iso2022_jp_2004"),
        lambda content, _: (
            decode_iso2022_jp(content) if b"\x1b" in content else content.decode("ascii", "replace")
        ),
    ),
    "euc_jp": lambda content, _: decode_euc_jp(content),
    "big5hkscs": lambda content, _: content.decode("cp950", "replace"),
    "utf_16": lambda content, _: content.decode(_utf16_codec(content), "replace"),
}
"""Decoders for text that the strict codec rejects although mail programs write it."""


def _n_foreign(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


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
