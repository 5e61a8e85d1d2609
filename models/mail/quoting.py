"""New text and quoted text of a reply or a forward, told apart line by line.

Two libraries know how mail programs introduce a quotation: mail-parser-reply ("On … wrote:" and blocks of
"From: … Sent: …" in fourteen languages) and quotequail ("----- Original Message -----" and its like). Their
patterns take quadratic time, so they are shown a few short lines at a time. What is done with the lines
between is our own: an answer below or between quoted lines stays new text.
"""

from __future__ import annotations

import re
from functools import cache

import quotequail  # type: ignore[import-untyped]
from mailparser_reply.constants import MAIL_LANGUAGES  # type: ignore[import-untyped]
from mailparser_reply.parser import EmailMessage  # type: ignore[import-untyped]

from models.mail.limits import MAX_QUOTE_LINE_CHARS, MAX_QUOTE_LINES

_BLOCK_LINES = 6
_WRAPPED_LINES = 3
_FIELD = re.compile(r"[* ]*[^\W\d_][\w -]{0,20}:")
_MARKS = re.compile(r"(?: ?>)+ ?")


def split_quoted_text(text: str) -> tuple[str, str]:
    r"""New text and quoted text, the marks of quotation removed.

    >>> split_quoted_text("Yes!\n\nOn Monday, Ann wrote:\n> Shall we?\n> Ann\nBest, Bob")
    ('Yes!\n\nBest, Bob', 'On Monday, Ann wrote:\nShall we?\nAnn')
    """
    new: list[str] = []
    quoted: list[str] = []
    lines = text.split("\n")
    tries = MAX_QUOTE_LINES
    number = 0
    while number < len(lines):
        if is_quoted(lines[number]):
            quoted.append(_MARKS.sub("", lines[number], count=1))
            number += 1
            continue
        length = 0
        if tries and _may_introduce(lines, number):
            tries -= 1
            length = _introduction(lines, number)
        if not length:
            new.append(lines[number])
            number += 1
            continue
        quoted += lines[number : number + length]
        number += length
        following = next((line for line in lines[number:] if line.strip()), "")
        if not is_quoted(following):  # no marks: all that follows is the other message
            quoted += [_MARKS.sub("", line, count=1) if is_quoted(line) else line for line in lines[number:]]
            break
    return tidy(new), tidy(quoted)


def is_quoted(line: str) -> bool:
    """Whether a line carries the mark of quotation."""
    return line.startswith((">", " >"))


def tidy(lines: list[str]) -> str:
    """Lines joined, without blanks at their ends and with at most one blank line between two."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in lines)).strip()


def _may_introduce(lines: list[str], number: int) -> bool:
    """A cheap look before the patterns: ends with a colon soon, is ruled off, or is a field of a header."""
    line = lines[number].strip()
    if not line or len(line) > MAX_QUOTE_LINE_CHARS:
        return False
    return (
        line.startswith(("--", "__"))
        or _FIELD.match(line) is not None
        or any(near.rstrip().endswith(":") for near in lines[number : number + _WRAPPED_LINES])
    )


def _introduction(lines: list[str], number: int) -> int:
    """How many lines from here on introduce a quotation; 0 if they do not."""
    window = "\n".join(line.strip()[:MAX_QUOTE_LINE_CHARS] for line in lines[number : number + _BLOCK_LINES])
    match = _introductions().match(window)
    if match and match[0].strip():
        return match[0].strip("\n").count("\n") + 1
    before = quotequail.quote(lines[number].strip(), quote_intro_line=True)[0][1]
    return 0 if before else 1


@cache
def _introductions() -> re.Pattern[str]:
    pattern: re.Pattern[str] = EmailMessage(text="", languages=list(MAIL_LANGUAGES)).HEADER_REGEX
    return pattern
