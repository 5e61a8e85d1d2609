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
_MAX_FOREIGN_RATE: Final = 20
"""Text with more than one foreign character in this many is not base64."""
_SOFT_BREAK: Final = re.compile(rb"=[ \t]++(?=\n|\Z)")


def decode_transfer_encoding(body: bytes, encoding: str, diagnostics: Diagnostics) -> bytes:
    """Decode the transfer encoding of a body; return the body unchanged if that is not possible.

    Args:
        body: bytes of the body.
        encoding: name of the encoding, reduced to lower-case letters and digits.
        diagnostics: receives defects.
    """
    if encoding == "base64":
        return _decode_base64_body(body, diagnostics)
    if encoding == "quotedprintable":
        if b"= " in body or b"=\t" in body:
            body = _SOFT_BREAK.sub(b"=", body)  # RFC 2045, section 6.7: white space at line ends is deleted
        return binascii.a2b_qp(body)
    if encoding and not encoding.startswith(("7bit", "8bit", "binary")):
        diagnostics.add_defect(f"unknown transfer encoding {encoding[:40]!r}")
    return body


def _decode_base64_body(body: bytes, diagnostics: Diagnostics) -> bytes:
    first, _, rest = body.partition(b"=")
    encoded = b"".join(first.split())
    is_clean = _NOT_BASE64.search(encoded) is None
    if is_clean and not rest.strip(b"= \t\n"):
        return decode_base64(encoded)
    if not is_clean and len(_NOT_BASE64.findall(encoded)) * _MAX_FOREIGN_RATE > len(encoded):
        diagnostics.add_defect("the text is not valid in its declared transfer encoding 'base64'")
        return body
    lines = [stripped for line in body.split(b"\n") if (stripped := line.strip())]
    if len(lines) > 1 and len(lines[0].rstrip(b"=")) % 4 and not lines[0].endswith(b"="):
        return decode_base64(_NOT_BASE64.sub(b"", encoded))  # the lines are no multiples of four digits
    if not is_clean:
        diagnostics.add_defect("the base64 contains characters that are not base64")
    return _decode_lines(lines)


def _decode_lines(lines: list[bytes]) -> bytes:
    """Decode each line by itself, so that an error shifts nothing after its line.

    Some programs encode and pad each piece of a text by itself. Others append a text that is not encoded; it
    begins at a line after the last padding.
    """
    pieces: list[bytes] = []
    end = 0
    is_padded = False
    for line in lines:
        if is_padded and _PIECES.fullmatch(line) is None:
            return b"".join(pieces[:end])
        if last := _PADDED_BEFORE_TEXT.match(line):
            return b"".join([*pieces, decode_base64(last[1])])
        if _PIECES.fullmatch(line):
            pieces += [decode_base64(piece) for piece in _PIECE.findall(line)]
        else:
            pieces.append(decode_base64(repair_base64(line.rstrip(b"="))))
        if line.endswith(b"="):
            is_padded = True
            end = len(pieces)
    return b"".join(pieces)


def repair_base64(line: bytes) -> bytes:
    """Return a line of base64 without foreign characters.

    If one of them replaces a character, an ``A`` takes its place, so that the rest is not shifted.

    >>> repair_base64(b"QUJ!QUJD"), repair_base64(b"QUJD!QUJD")
    (b'QUJAQUJD', b'QUJDQUJD')
    """
    digits = _NOT_BASE64.sub(b"", line)
    return _NOT_BASE64.sub(b"A", line) if len(digits) % 4 and len(line) % 4 == 0 else digits


def decode_base64(digits: bytes) -> bytes:
    """Decode the digits of base64, of which any number can be missing at the end.

    >>> decode_base64(b"QUI"), decode_base64(b"QUJDR")
    (b'AB', b'ABC')
    """
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    return binascii.a2b_base64(digits + b"=" * (-len(digits) % 4))
