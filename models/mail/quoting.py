"""Separates the new text and the quoted text of a reply or a forward, line by line.

Two libraries recognize the line with which a mail program introduces a quotation: mail-parser-reply ("On …
wrote:" and blocks of "From: … Sent: …" in fourteen languages) and quotequail ("----- Original Message -----"
and similar). Their patterns take quadratic time, so they receive only a few short lines at a time. This
module handles the other lines: a reply below or between quoted lines is new text.
"""

from __future__ import annotations

import re
from functools import cache

import quotequail  # type: ignore[import-untyped]
from mailparser_reply.constants import MAIL_LANGUAGES  # type: ignore[import-untyped]
from mailparser_reply.parser import EmailMessage  # type: ignore[import-untyped]

from models.mail.limits import MAX_QUOTE_LINE_CHARS, MAX_QUOTE_LINES

_HEADER_BLOCK_LINES = 6
_WRAPPED_INTRO_LINES = 3
_FIELD = re.compile(r"[* ]*[^\W\d_][\w -]{0,20}:")
_MARKS = re.compile(r"(?: ?>)+ ?")


def split_quoted_text(text: str) -> tuple[str, str]:
    r"""Return the new text and the quoted text, without quotation marks (``>``).

    >>> split_quoted_text("Yes!\n\nOn Monday, Ann wrote:\n> Shall we?\n> Ann\nBest, Bob")
    ('Yes!\n\nBest, Bob', 'On Monday, Ann wrote:\nShall we?\nAnn')
    """
    new: list[str] = []
    quoted: list[str] = []
    lines = text.split("\n")
    n_left = MAX_QUOTE_LINES
    number = 0
    while number < len(lines):
        if is_quoted(lines[number]):
            quoted.append(_MARKS.sub("", lines[number], count=1))
            number += 1
            continue
        length = 0
        if n_left and _may_introduce(lines, number):
            n_left -= 1
            length = _introduction_length(lines, number)
        if not length:
            new.append(lines[number])
            number += 1
            continue
        quoted += lines[number : number + length]
        number += length
        following = next((line for line in lines[number:] if line.strip()), "")
        if not is_quoted(following):  # no marks: everything that follows is quoted
            quoted += [_MARKS.sub("", line, count=1) if is_quoted(line) else line for line in lines[number:]]
            break
    return tidy(new), tidy(quoted)


def is_quoted(line: str) -> bool:
    """Return whether a line begins with a quotation mark (``>``)."""
    return line.startswith((">", " >"))


def tidy(lines: list[str]) -> str:
    """Join lines, without trailing white space and with at most one blank line in a row."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in lines)).strip()


def _may_introduce(lines: list[str], number: int) -> bool:
    """Return whether a line can introduce a quotation. Cheaper than the patterns, which run only then.

    Such a line is a horizontal rule or a header field, or it or one of the next two lines ends with a colon.
    """
    line = lines[number].strip()
    if not line or len(line) > MAX_QUOTE_LINE_CHARS:
        return False
    return (
        line.startswith(("--", "__"))
        or _FIELD.match(line) is not None
        or any(near.rstrip().endswith(":") for near in lines[number : number + _WRAPPED_INTRO_LINES])
    )


def _introduction_length(lines: list[str], number: int) -> int:
    """Return how many lines from this one introduce a quotation; 0 if none do."""
    window = "\n".join(
        line.strip()[:MAX_QUOTE_LINE_CHARS] for line in lines[number : number + _HEADER_BLOCK_LINES]
    )
    match = _introductions().match(window)
    if match and match[0].strip():
        return match[0].strip("\n").count("\n") + 1
    is_new_text = quotequail.quote(lines[number].strip(), quote_intro_line=True)[0][1]
    return 0 if is_new_text else 1


@cache
def _introductions() -> re.Pattern[str]:
    pattern: re.Pattern[str] = EmailMessage(text="", languages=list(MAIL_LANGUAGES)).HEADER_REGEX
    return pattern
