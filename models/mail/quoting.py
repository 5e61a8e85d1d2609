"""Separates the new text and the quoted text of a reply or a forward, line by line.

Two libraries recognize the line with which a mail program introduces a quotation: mail-parser-reply ("On …
wrote:" and blocks of "From: … Sent: …" in fourteen languages) and quotequail ("----- Original Message -----"
and similar). Their patterns take quadratic time, so they receive only a few short lines at a time. This
module handles the other lines: a reply below or between quoted lines is new text.
"""

from __future__ import annotations

import re

from mailparser_reply.constants import (  # type: ignore[import-untyped]
    GENERIC_MAIL_SEPARATOR,
    MAIL_LANGUAGES,
)
from quotequail._patterns import COMPILED_PATTERNS  # type: ignore[import-untyped]

from models.mail.limits import MAX_QUOTE_LINE_CHARS, MAX_QUOTE_LINES

_HEADER_BLOCK_LINES = 6
_WRAPPED_INTRO_LINES = 3
_FIELD = re.compile(r"[* ]*[^\W\d_][\w -]{0,20}:")
_QUOTED = (">", " >")
_RULE = re.compile(r"\n[^\S\n]*+(?:--|__)")
_MARKS = re.compile(r"(?: ?>)+ ?")
_BLANK_LINES = re.compile(r"\n\n\n+")


def _pattern_of_languages(key: str, *others: str) -> re.Pattern[str]:
    alternatives = [str(language[key]) for language in MAIL_LANGUAGES.values() if key in language]
    return re.compile("|".join([*alternatives, *others]), re.MULTILINE | re.IGNORECASE)


_SENTENCE = _pattern_of_languages("wrote_header")
_SENTENCE_START = re.compile(
    r"(?:> ?)*(?:(?:On|Am|Dne|El|Le|Il|Op|Dnia)(?:\s|\Z)"
    r"|Den|Man|Tir|Ons|Tor|Fre|Lør|Søn|Mån|Tis|Lör|Sön|\d)",
    re.IGNORECASE,
)
"""How the first line of a match of ``_SENTENCE`` begins."""
_HEADER_BLOCK = _pattern_of_languages("from_header", GENERIC_MAIL_SEPARATOR)
_HEADER_BLOCK_START = re.compile(r"-{5}|[* ]*+(?:보낸|받는|[^:]{0,20}:)| *(?:> ?)*\[?Original", re.IGNORECASE)
"""How the first line of a match of ``_HEADER_BLOCK`` begins."""
_LINE = re.compile("|".join(f"(?:{pattern.pattern})" for pattern in COMPILED_PATTERNS))
_LINE_ENDS = (":", ">", "-", "_")
"""How a match of ``_LINE`` ends."""


def split_quoted_text(text: str) -> tuple[str, str]:
    r"""Return the new text and the quoted text, without quotation marks (``>``).

    >>> split_quoted_text("Yes!\n\nOn Monday, Ann wrote:\n> Shall we?\n> Ann\nBest, Bob")
    ('Yes!\n\nBest, Bob', 'On Monday, Ann wrote:\nShall we?\nAnn')
    """
    lines = text.split("\n")
    new: list[str] = []
    quoted: list[str] = []
    has_marks = text.startswith(_QUOTED) or "\n>" in text or "\n >" in text
    n_left = MAX_QUOTE_LINES
    end = 0  # number of lines that are in one of the lists
    for number in _candidates(text, lines):
        line = lines[number].strip()
        if number < end or not line or len(line) > MAX_QUOTE_LINE_CHARS or is_quoted(lines[number]):
            continue
        if not n_left:
            break
        n_left -= 1
        length = _introduction_length(line, lines, number)
        if not length:
            continue
        _separate(lines[end:number], new, quoted, has_marks=has_marks)
        end = number + length
        quoted += lines[number:end]
        following = next((lines[n] for n in range(end, len(lines)) if lines[n].strip()), "")
        if not is_quoted(following):  # no marks: everything that follows is quoted
            quoted += [_without_marks(line) if is_quoted(line) else line for line in lines[end:]]
            end = len(lines)
            break
    _separate(lines[end:], new, quoted, has_marks=has_marks)
    return tidy(new), tidy(quoted)


def is_quoted(line: str) -> bool:
    """Return whether a line begins with a quotation mark (``>``)."""
    return line.startswith(_QUOTED)


def tidy(lines: list[str]) -> str:
    """Join lines, without trailing white space and with at most one blank line in a row."""
    text = "\n".join([line.rstrip() for line in lines])
    if "\n\n\n" in text:
        text = _BLANK_LINES.sub("\n\n", text)
    return text.strip()


def _without_marks(line: str) -> str:
    """Return a quoted line without its quotation marks."""
    if line.startswith("> ") and not line.startswith(">", 2):  # most lines
        return line[2:]
    return _MARKS.sub("", line, count=1)


def _separate(lines: list[str], new: list[str], quoted: list[str], *, has_marks: bool) -> None:
    """Add lines to the new or the quoted lines, by their quotation marks, if the text has any."""
    if not has_marks:
        new += lines
        return
    for line in lines:
        if line.startswith(_QUOTED):
            quoted.append(_without_marks(line))
        else:
            new.append(line)


def _candidates(text: str, lines: list[str]) -> list[int]:
    """Return the numbers of the lines that can introduce a quotation.

    Such a line is a horizontal rule or a header field, or it or one of the next two lines ends with a colon.
    Only these lines are matched with the patterns of the libraries, which are much slower.
    """
    numbers: set[int] = set()
    with_colon = [number for number, line in enumerate(lines) if ":" in line] if ":" in text else []
    for number in with_colon:
        line = lines[number].strip()
        if line.endswith(":"):
            numbers.update(range(max(0, number - _WRAPPED_INTRO_LINES + 1), number + 1))
        elif _FIELD.match(line):
            numbers.add(number)
    if "--" not in text and "__" not in text:  # most texts
        return sorted(numbers)
    text = "\n" + text
    number = position = 0
    for rule in _RULE.finditer(text):
        number += text.count("\n", position, rule.start())
        position = rule.start()
        numbers.add(number)
    return sorted(numbers)


def _introduction_length(line: str, lines: list[str], number: int) -> int:
    """Return how many lines from this one introduce a quotation; 0 if none do.

    Args:
        line: the line without white space around it.
        lines: all lines.
        number: number of the line.
    """
    patterns = []
    if _SENTENCE_START.match(line):
        patterns.append(_SENTENCE)
    if _HEADER_BLOCK_START.match(line):
        patterns.append(_HEADER_BLOCK)
    if patterns:
        window = "\n".join(
            [line.strip()[:MAX_QUOTE_LINE_CHARS] for line in lines[number : number + _HEADER_BLOCK_LINES]]
        )
        for pattern in patterns:
            match = pattern.match(window)
            if match:
                return match[0].strip("\n").count("\n") + 1
    return 1 if _introduces_alone(line) else 0


def _introduces_alone(line: str) -> bool:
    """Return whether quotequail recognizes a line. Its function ``quote`` takes ten times longer."""
    if not line.endswith(_LINE_ENDS):
        return False
    if line.startswith(">"):
        line = line[1:].strip()
    return _LINE.match(line) is not None
