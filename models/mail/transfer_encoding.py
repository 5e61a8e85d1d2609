"""Decodes base64 and quoted-printable (RFC 2045), and repairs single errors in them."""

from __future__ import annotations

import binascii
import re
from typing import Final

from models.mail.diagnostics import Diagnostics

_NOT_BASE64: Final = re.compile(rb"[^A-Za-z0-9+/]")
_PIECE: Final = re.compile(rb"([A-Za-z0-9+/]++)=*+")
_PIECES: Final = re.compile(
    rb"(?:(?:[A-Za-z0-9+/]{4})++(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?|[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)++"
)
"""Digits of base64 with the right padding, also in several pieces."""
_PADDED_BEFORE_TEXT: Final = re.compile(rb"([A-Za-z0-9+/]++)=++\s")
_MIN_PIECE_DIGITS: Final = 20
_MAX_FOREIGN_RATE: Final = 20
"""Text with more than one foreign character in this many is not base64."""
_SOFT_BREAK: Final = re.compile(rb"=[ \t]++(?=\n|\Z)")


def decode_transfer_encoding(body: bytes, encoding: str, diagnostics: Diagnostics) -> tuple[bytes, bool]:
    """Decode the transfer encoding of a body; return the body unchanged if that is not possible.

    Args:
        body: bytes of the body.
        encoding: name of the encoding, reduced to lower-case letters and digits.
        diagnostics: receives defects.

    Returns:
        The content, and whether parts of it are wrong because the encoding contains errors.
    """
    if encoding == "base64":
        return _decode_base64_body(body, diagnostics)
    if encoding == "quotedprintable":
        content = binascii.a2b_qp(body)
        if b"=" in content and (b"= " in body or b"=\t" in body) and _SOFT_BREAK.search(body):
            # RFC 2045, section 6.7: white space at line ends is deleted.
            content = binascii.a2b_qp(_SOFT_BREAK.sub(b"=", body))
        return content, False
    if encoding and not encoding.startswith(("7bit", "8bit", "binary")):
        diagnostics.add_defect(f"unknown transfer encoding {encoding[:40]!r}")
    return body, False


def _decode_base64_body(body: bytes, diagnostics: Diagnostics) -> tuple[bytes, bool]:
    first, padding, rest = body.partition(b"=")
    encoded = b"".join(first.split())
    is_clean = _NOT_BASE64.search(encoded) is None
    is_complete = not padding or (
        not rest.strip(b"= \t\n") and (len(encoded) + 1 + rest.count(b"=")) % 4 == 0
    )
    if is_clean and is_complete and (padding or len(encoded) % 4 == 0):
        return decode_base64(encoded), False
    if not is_clean and len(_NOT_BASE64.findall(encoded)) * _MAX_FOREIGN_RATE > len(encoded):
        diagnostics.add_defect("the text is not valid in its declared transfer encoding 'base64'")
        return body, False
    lines = [stripped for line in body.split(b"\n") if (stripped := line.strip())]
    if len(lines) > 1 and len(lines[0]) % 4 and not lines[0].endswith(b"="):
        return decode_base64(_NOT_BASE64.sub(b"", encoded)), not is_clean
    content, is_damaged = _decode_lines(lines)
    if is_damaged:
        diagnostics.add_defect("the base64 contains errors")
    return content, is_damaged


def _decode_lines(lines: list[bytes]) -> tuple[bytes, bool]:
    """Decode each line by itself, so that an error shifts nothing after its line.

    Some programs encode and pad each piece of a text by itself. Others append a text that is not encoded; it
    begins at a line after the last padding.
    """
    pieces: list[bytes] = []
    end = 0
    is_padded = is_damaged = False
    for number, line in enumerate(lines, 1):
        if is_padded and not _is_piece(line):
            return b"".join(pieces[:end]), is_damaged
        if last := _PADDED_BEFORE_TEXT.match(line):
            return b"".join([*pieces, decode_base64(last[1])]), is_damaged
        if _PIECES.fullmatch(line):
            pieces += [decode_base64(piece) for piece in _PIECE.findall(line)]
        else:
            digits = repair_base64(line)
            is_damaged = is_damaged or number < len(lines) or len(digits) < len(line)
            pieces.append(decode_base64(digits))
        if line.endswith(b"="):
            is_padded = True
            end = len(pieces)
    return b"".join(pieces), is_damaged


def _is_piece(line: bytes) -> bool:
    """Whether a line after the first padding is base64 rather than a word of a text."""
    if _PIECES.fullmatch(line) is None:
        return False
    return line.endswith(b"=") or len(line) >= _MIN_PIECE_DIGITS or decode_base64(line).isalnum()


def repair_base64(line: bytes) -> bytes:
    """Return the digits of a line of base64 without foreign characters and padding.

    If one of them replaces a character, an ``A`` takes its place, so that the rest is not shifted.

    >>> repair_base64(b"QUJ!QUJD"), repair_base64(b"QUJD!QUJD"), repair_base64(b"Q!I=")
    (b'QUJAQUJD', b'QUJDQUJD', b'QAI')
    """
    core = line.rstrip(b"=")
    digits = _NOT_BASE64.sub(b"", core)
    is_replaced = len(line) % 4 == 0 and (len(digits) + len(line) - len(core)) % 4
    return _NOT_BASE64.sub(b"A", core) if is_replaced else digits


def decode_base64(digits: bytes) -> bytes:
    """Decode the digits of base64, of which any number can be missing at the end.

    >>> decode_base64(b"QUI"), decode_base64(b"QUJDR")
    (b'AB', b'ABC')
    """
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    return binascii.a2b_base64(digits + b"=" * (-len(digits) % 4))
