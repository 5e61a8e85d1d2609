"""Separates the new text and the quoted text of a reply or a forward, line by line.

Quoted text is what follows an introduction (see :mod:`models.mail.introductions`), and lines with quotation
marks. A reply below or between quoted lines is new text. The signature after a line ``-- `` (RFC 3676,
section 4.3) is not about the topic either, and counts as quoted text; a postscript after it is new text.
"""

from __future__ import annotations

import re

from models.mail.armor import remove_armor
from models.mail.introductions import find_introduction, possible_introductions
from models.mail.limits import MAX_QUOTE_LINE_CHARS

_QUOTED = (">", " >")
_MARKS = re.compile(r"(?: ?>)+ ?")
_BLANK_LINES = re.compile(r"\n\n\n+")
_SIGNATURE = "-- "
_SIGNATURE_LINES = 25
"""Lines of a signature. If more follow a line ``-- ``, it separates parts of the text."""
_POSTSCRIPT = re.compile(
    r"\s*+[*_]{0,2}+(?:"
    r"(?i:(?:p[.\s-]{0,2})?p[.\s-]{0,2}s|n\.?\s?b|u\.?\s?i|υ\.?\s?γ|п\.?\s?с|נ\.?\s?ב|post\s?scriptum|postscript|nachtrag"
    r"|追伸|追記|附言|又及|추신)(?:\.?\s?[:,;!\uff1a]|\.?\s[\u2013\u2014-]++\s|\.\s|\s(?=[a-zà-öø-ÿа-я])|\.?\s*\Z)"
    r"|(?i:p\.?\s?d\.?|posdata)\s?:)"
)
"""The beginning of a text after a signature: "PS: …", also in other languages."""


def split_quoted_text(text: str) -> tuple[str, str]:
    r"""Return the new text and the quoted text, without quotation marks (``>``) and armor.

    >>> split_quoted_text("Yes!\n\nOn Monday, Ann wrote:\n> Shall we?\n> Ann\nBest, Bob")
    ('Yes!\n\nBest, Bob', 'On Monday, Ann wrote:\nShall we?\nAnn')
    """
    text = remove_armor(text)
    lines = text.split("\n")
    new: list[str] = []
    quoted: list[str] = []
    has_marks = text.startswith(_QUOTED) or "\n>" in text or "\n >" in text
    has_signature = f"\n{_SIGNATURE}\n" in text or text.endswith(f"\n{_SIGNATURE}")
    end = 0  # number of lines that are in one of the lists
    for number in possible_introductions(text, lines):
        line = lines[number]
        if number < end or len(line) > MAX_QUOTE_LINE_CHARS or is_quoted(line):
            continue
        introduction = find_introduction(lines, number)
        if introduction is None:
            continue
        start_of_text = number + introduction.length
        marks_follow = _next_is_quoted(lines, start_of_text)
        if not introduction.certain and not marks_follow:
            continue
        _separate(lines[end:number], new, quoted, has_marks=has_marks, has_signature=has_signature)
        end = start_of_text
        quoted += lines[number:end]
        if not marks_follow:  # no marks: everything that follows is quoted
            quoted += [_without_marks(line) if is_quoted(line) else line for line in lines[end:]]
            end = len(lines)
            break
    _separate(lines[end:], new, quoted, has_marks=has_marks, has_signature=has_signature)
    return tidy(new), tidy(quoted)


def is_quoted(line: str) -> bool:
    """Return whether a line begins with a quotation mark (``>``)."""
    return line.startswith(_QUOTED)


def _next_is_quoted(lines: list[str], number: int) -> bool:
    """Return whether the first line with text, from this one, is quoted."""
    while number < len(lines) and not lines[number].strip():
        number += 1
    return number < len(lines) and is_quoted(lines[number])


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


def _separate(
    lines: list[str], new: list[str], quoted: list[str], *, has_marks: bool, has_signature: bool
) -> None:
    """Add lines to the new or the quoted lines, by their quotation marks and the signature.

    Args:
        lines: lines without introductions.
        new: receives the new lines.
        quoted: receives the quoted lines.
        has_marks: whether any line of the text has quotation marks.
        has_signature: whether the text has a signature.
    """
    if not has_marks:
        unquoted = lines
    else:
        unquoted = [] if has_signature else new
        for line in lines:
            if not line.startswith(_QUOTED):
                unquoted.append(line)
                continue
            if has_signature and unquoted:
                _separate_signature(unquoted, new, quoted)
                unquoted = []
            quoted.append(_without_marks(line))
    if unquoted is not new:
        _separate_signature(unquoted, new, quoted)


def _separate_signature(lines: list[str], new: list[str], quoted: list[str]) -> None:
    """Add adjacent lines without marks to the new lines, except for a short signature after new text."""
    if _SIGNATURE not in lines:
        new += lines
        return
    start = len(lines) - 1 - lines[::-1].index(_SIGNATURE)
    end = next(
        filter(lambda number: _POSTSCRIPT.match(lines[number]), range(start + 1, len(lines))), len(lines)
    )
    if end - start > _SIGNATURE_LINES or not any(map(str.strip, [*new, *lines[:start]])):
        start = end = len(lines)
    new += lines[:start] + lines[end:]
    quoted += lines[start + 1 : end]
