"""Decodes ISO-2022-JP and EUC-JP as mail programs write them.

Python's codecs follow the national standards strictly. Programs for Windows also write the characters of
Windows code page 932 that the standards lack, such as ① and ㈱ in row 13 (Microsoft calls these charsets
CP50221 and CP51932), and half-width kana. Here, double bytes are converted to code page 932.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

_ESCAPES: Final = re.compile(rb"(\x1b\$\(?[@ABCDOPQ]|\x1b\([A-Z]|[\x0e\x0f\n])")
_PAIRS: Final = re.compile(rb"(?:[\x21-\x7e]{2})+")
_EUC_PAIRS: Final = re.compile(rb"(?:[\xa1-\xfe]{2})+|\x8e[\xa1-\xdf]|\x8f[\xa1-\xfe]{2}|[\x80-\xff]")
_SNIFFED: Final = re.compile(rb"\x1b(?:\$[@B]|\([IJ])")
_TO_8_BIT: Final = bytes(code | 0x80 for code in range(256))
_TO_7_BIT: Final = bytes(code & 0x7F for code in range(256))
_OTHER_STANDARDS: Final = {b"\x1b$A": "gb2312", b"\x1b$(A": "gb2312", b"\x1b$(C": "euc_kr"}


def is_iso2022_jp(content: bytes) -> bool:
    r"""Return whether bytes contain an escape sequence of ISO-2022-JP.

    >>> is_iso2022_jp(b"\x1b$BJV6b\x1b(B"), is_iso2022_jp(b"\x1b[31m")
    (True, False)
    """
    return b"\x1b" in content and _SNIFFED.search(content) is not None


def decode_iso2022_jp(content: bytes) -> str:
    r"""Decode ISO-2022-JP with all characters of code page 932. Invalid bytes become U+FFFD.

    >>> decode_iso2022_jp(b"\x1b$B-!\x1b(I6@\x1b(B")
    '①ｶﾀ'
    """
    pieces: list[str] = []
    mode = b""
    for number, piece in enumerate(_ESCAPES.split(content)):
        if number % 2:
            if piece == b"\n":
                pieces.append("\n")
            mode = piece  # RFC 1468: each line ends in ASCII
        elif piece:
            pieces.append(_decode_segment(piece, mode))
    return "".join(pieces)


def _decode_segment(segment: bytes, mode: bytes) -> str:
    if mode in {b"\x1b(I", b"\x0e"}:
        return segment.translate(_TO_8_BIT).decode("cp932", "replace")
    if not mode.startswith(b"\x1b$"):
        return segment.decode("cp932", "replace")
    pieces: list[str] = []
    end = 0
    for pairs in _PAIRS.finditer(segment):
        pieces += (segment[end : pairs.start()].decode("ascii", "replace"), _decode_pairs(pairs[0], mode))
        end = pairs.end()
    return "".join([*pieces, segment[end:].decode("ascii", "replace")])


def _decode_pairs(pairs: bytes, mode: bytes) -> str:
    if mode in _OTHER_STANDARDS:
        return pairs.translate(_TO_8_BIT).decode(_OTHER_STANDARDS[mode], "replace")
    if mode == b"\x1b$(D":
        return _decode_supplement(pairs.translate(_TO_8_BIT))
    if mode in {b"\x1b$(O", b"\x1b$(P", b"\x1b$(Q"}:
        return (mode + pairs + b"\x1b(B").decode("iso2022_jp_2004", "replace")
    return _decode_jis(pairs)


def _decode_jis(pairs: bytes) -> str:
    """Decode the 7-bit double bytes of JIS X 0208 and of the additional rows of code page 932."""
    return "".join([_decode_pair(pairs[start : start + 2]) for start in range(0, len(pairs), 2)])


@cache
def _decode_pair(pair: bytes) -> str:
    row, cell = pair[0] - 0x21, pair[1] - 0x21  # each of the 94 rows has 94 cells
    first = row // 2 + (0x81 if row < 62 else 0xC1)
    second = cell + 0x9F if row % 2 else cell + 0x40 + (cell >= 63)
    return bytes((first, second)).decode("cp932", "replace")


def _decode_supplement(pairs: bytes) -> str:
    """Decode 8-bit double bytes of JIS X 0212."""
    triples = b"".join(b"\x8f" + pairs[start : start + 2] for start in range(0, len(pairs), 2))
    return triples.decode("euc_jp", "replace")


def decode_euc_jp(content: bytes) -> str:
    r"""Decode EUC-JP with all characters of code page 932. Invalid bytes become U+FFFD.

    >>> decode_euc_jp(b"\xad\xa1\xca\xd6\xb6\xe2 \x8e\xb6")
    '①返金 ｶ'
    """
    pieces: list[str] = []
    end = 0
    for match in _EUC_PAIRS.finditer(content):
        pieces.append(content[end : match.start()].decode("ascii"))
        end = match.end()
        if match[0][0] >= 0xA1 and len(match[0]) > 1:
            pieces.append(_decode_jis(match[0].translate(_TO_7_BIT)))
        else:
            pieces.append(match[0].decode("euc_jp", "replace"))
    return "".join([*pieces, content[end:].decode("ascii")])
