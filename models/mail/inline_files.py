"""Finds files that are written into the text of a message, as before MIME (uuencode)."""

from __future__ import annotations

import re
from typing import Final

_BEGIN: Final = re.compile(r"begin(-base64)? [0-7]{3,4} (\S.{0,249})")
_MIN_CODE, _MAX_CODE = 32, 96
_BASE64_LINE: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def extract_inline_files(text: str) -> tuple[str, list[str]]:
    r"""Return the text without uuencoded files, and the names of the files.

    >>> extract_inline_files("Photo:\nbegin 644 a.jpg\n#0V%T\n`\nend\nBye")
    ('Photo:\nBye', ['a.jpg'])
    """
    if "\nbegin" not in text and not text.startswith("begin"):
        return text, []
    names: list[str] = []
    kept: list[str] = []
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        begin = _BEGIN.fullmatch(lines[number].rstrip()) if lines[number].startswith("begin") else None
        end = _find_end(lines, number + 1, is_base64=begin[1] is not None) if begin else number
        if begin and end > number + 1:
            names.append(begin[2].strip())
            number = end
        else:
            kept.append(lines[number])
            number += 1
    return ("\n".join(kept), names) if names else (text, [])


def _find_end(lines: list[str], start: int, is_base64: bool) -> int:
    """Return the number of the line after the file whose first line of data is ``start``."""
    number = start
    while number < len(lines):
        line = lines[number]
        if is_base64:
            if line.startswith("===="):
                return number + 1
            if not _BASE64_LINE.fullmatch(line.strip()):
                return number
        elif not _is_data(line, is_first=number == start):
            if number > start and line.strip() == "end":
                return number + 1
            if line.strip(" `") or not any(near.strip() == "end" for near in lines[number + 1 : number + 3]):
                return number
        number += 1
    return number


def _is_data(line: str, is_first: bool) -> bool:
    """Whether a line is data: its first character states the number of bytes, so its length is known.

    Programs can append a checksum, or remove spaces at the end, but not of the first line.
    """
    if not line or not all(_MIN_CODE <= ord(character) <= _MAX_CODE for character in line):
        return False
    n_bytes = (ord(line[0]) - _MIN_CODE) & 63
    length = 1 + 4 * ((n_bytes + 2) // 3)
    return n_bytes > 0 and (length if is_first else 2) <= len(line) <= length + 2
