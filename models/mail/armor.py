"""Removes the armor of OpenPGP and S/MIME from a text, so that its encoded lines do not become words.

The text of a signed message stays (RFC 9580, section 7). Keys, signatures, certificates and encrypted content
are removed.
"""

from __future__ import annotations

import re
from typing import Final

_MARK: Final = "-----BEGIN"
_LINE = re.compile(r"(?:> ?)*+-----(BEGIN|END) ([A-Z0-9][A-Z0-9 /,]{0,60}+)-----[ \t]*")
_SIGNED: Final = "PGP SIGNED MESSAGE"
_FIELD = re.compile(r"(?:> ?)*+[A-Z][A-Za-z-]{0,30}: [^\n]*+")
_ENCODED = re.compile(r"(?:> ?)*+(?:[A-Za-z0-9+/=]{1,80}+[ \t]*+|[ \t]*+)")


def remove_armor(text: str) -> str:
    r"""Return a text without armor. Content without an end is removed as far as its lines are encoded.

    >>> remove_armor("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nHi\n- -- \nAnn")
    'Hi\n-- \nAnn'
    """
    if _MARK not in text:
        return text
    lines = text.split("\n")
    kept: list[str] = []
    number = 0
    signed = False
    last_end = {
        match[2]: position
        for position, line in enumerate(lines)
        if (match := _LINE.fullmatch(line)) and match[1] == "END"
    }
    while number < len(lines):
        line = lines[number]
        match = _LINE.fullmatch(line) if "-----" in line else None
        number += 1
        if match is None:
            kept.append(line[2:] if signed and line.startswith("- ") else line)
        elif match[1] == "END":
            signed = False
        elif match[2] == _SIGNED:
            signed = True
            number = _after_fields(lines, number)
        else:
            signed = False
            number = _after_content(lines, number, match[2], has_end=last_end.get(match[2], -1) >= number)
    return "\n".join(kept)


def _after_fields(lines: list[str], number: int) -> int:
    """Return the number of the line after the fields ("Hash: SHA256") and a blank line."""
    while number < len(lines) and _FIELD.fullmatch(lines[number]):
        number += 1
    if number < len(lines) and not lines[number].strip("> \t"):
        number += 1
    return number


def _after_content(lines: list[str], number: int, kind: str, *, has_end: bool) -> int:
    """Return the number of the line after encoded content."""
    while number < len(lines):
        if has_end:
            match = _LINE.fullmatch(lines[number])
            if match and match[2] == kind:
                return number + (match[1] == "END")
        elif not (_ENCODED.fullmatch(lines[number]) or _FIELD.fullmatch(lines[number])):
            return number
        number += 1
    return number
