"""Unicode normalization in linear time and memory, for text from outside.

``unicodedata.normalize`` sorts every run of combining marks by insertion. A run of n marks takes n² steps, in
which no other thread runs. A single compatibility character can also expand to 18 characters. This module
removes the marks after the first 30 of a run, the limit of Unicode's stream-safe text format (UAX #15,
section 13), limits the length of the result, and normalizes one short piece after another, so that other
threads can run in between.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final, Literal

MAX_MARKS: Final = 30
"""Marks in a row that are kept. No language uses more than a few."""

_PIECE_CHARS: Final = 2**14
"""Characters that are normalized at once. This takes about a millisecond."""

_MIN_LIMIT: Final = 2**10
"""Result characters that a text of any length can have."""
_MAX_EXPANSION: Final = 2
"""Result characters for each character of a longer text."""


def character_class(characters: Iterable[str]) -> str:
    """Return the inside of a regular-expression character class for characters in code point order."""
    ranges: list[list[int]] = []
    for code in map(ord, characters):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


# Unicode has marks in planes 0, 1 and 14 only. Looking at all planes would take a third of a second.
PLANES_WITH_MARKS: Final = (*range(0x20000), *range(0xE0000, 0xF0000))

_BMP: Final = range(0x10000)


def is_in_bmp(text: str) -> bool:
    r"""Return whether all characters of a text are in Unicode's basic multilingual plane, plane 0.

    Regular expressions with many characters are several times faster if all of these are in plane 0.

    >>> is_in_bmp("día"), is_in_bmp("\U0001f642")
    (True, False)
    """
    return len(text.encode("utf-16-le", "surrogatepass")) == 2 * len(text)


_STARTS_WITH_MARK: Final = "\u0f73\u0f75\u0f81\uff9e\uff9f"
"""Characters that are no marks, but expand to a mark first."""
_NON_STARTERS: Final = (
    character_class(c for c in map(chr, PLANES_WITH_MARKS) if unicodedata.combining(c)) + _STARTS_WITH_MARK
)
_BMP_NON_STARTERS: Final = (
    character_class(c for c in map(chr, _BMP) if unicodedata.combining(c)) + _STARTS_WITH_MARK
)
_LONG_RUN: Final = re.compile(rf"([{_NON_STARTERS}]{{{MAX_MARKS}}})[{_NON_STARTERS}]+")
_BMP_LONG_RUN: Final = re.compile(rf"([{_BMP_NON_STARTERS}]{{{MAX_MARKS}}})[{_BMP_NON_STARTERS}]+")
_FIRST_MARKS: Final = re.compile(rf"[{_NON_STARTERS}]*")
_LAST_MARKS: Final = re.compile(rf"[{_NON_STARTERS}]*\Z")

_JOINS_PREVIOUS: Final = (
    "\u09be\u09d7\u0b3e\u0b56\u0b57\u0bbe\u0bd7\u0cc2\u0cd5\u0cd6\u0d3e\u0d57\u0dcf\u0ddf\u102e\u1b35"
    "\u1161-\u1175\u11a8-\u11c2\u3131-\u3163\uffa1-\uffdc"
    "\U00011127\U0001133e\U00011357\U000114b0\U000114ba\U000114bd\U000115af\U00011930"
)
"""Other characters that can combine with the character before them: vowels, and parts of Hangul syllables."""
_BOUNDARY: Final = re.compile(rf"[^{_NON_STARTERS}{_JOINS_PREVIOUS}]")
_SEGMENT: Final = re.compile(
    rf"[\x00-\x7f]+(?![{_NON_STARTERS}{_JOINS_PREVIOUS}])|(?s:.)[{_NON_STARTERS}{_JOINS_PREVIOUS}]*"
)
_JOINING: Final = re.compile(rf"[{_JOINS_PREVIOUS}]")


def normalize(text: str, form: Literal["NFC", "NFKC"] = "NFKC") -> str:
    r"""Return a text in a Unicode normalization form, in time and memory proportional to its length.

    The result equals that of ``unicodedata.normalize``, except for text that no language uses: of a run of
    more than 30 combining marks, only the first 30 are kept; and a result that is longer than 1,024
    characters and twice the text is cut.

    >>> normalize("ﬁ e\u0301"), len(normalize("e" + "\u0316" * 1_000_000))
    ('fi é', 31)
    """
    if text.isascii():
        return text
    left = max(_MIN_LIMIT, _MAX_EXPANSION * len(text))
    results: list[str] = []
    run = ""
    for piece in _pieces(text):
        kept = _without_long_runs(piece, run)
        run = _run_at_end(run, kept)
        result = unicodedata.normalize(form, kept)[:left]
        results.append(result)
        left -= len(result)
        if not left:
            break
    return "".join(results)


def normalized_segments(text: str, form: Literal["NFC", "NFKC"] = "NFKC") -> Iterator[tuple[int, int, str]]:
    r"""Split a text into short segments that are normalized independently of each other.

    A segment is ASCII text, which does not change, or a character with the marks and other characters that
    can combine with it.

    Returns:
        The start, the end and the normalization form of each segment. Joined, the forms are the result of
        ``normalize``, except that it can be cut.

    >>> [*normalized_segments("no. e\u0301\ufb01")]
    [(0, 4, 'no. '), (4, 6, 'é'), (6, 7, 'fi')]
    """
    for match in _SEGMENT.finditer(text):
        segment, start = match.group(), match.start()
        if segment.isascii():
            yield start, match.end(), segment
            continue
        first = 0
        for joining in _JOINING.finditer(segment, 1):  # most do not combine, so that each is a segment
            at = joining.start()
            before, after = _normalized(segment[first:at], form), _normalized(segment[at], form)
            if _normalized(segment[first : at + 1], form) == before + after:
                yield start + first, start + at, before
                first = at
        yield start + first, match.end(), _normalized(segment[first:], form)


def _normalized(segment: str, form: Literal["NFC", "NFKC"]) -> str:
    return unicodedata.normalize(form, _LONG_RUN.sub(r"\1", segment))


def _without_long_runs(piece: str, run: str) -> str:
    """Return a piece without the marks after the first 30 of a run that may begin in an earlier piece."""
    if run:
        marks = _matched(_FIRST_MARKS.match(piece))
        piece = marks[: MAX_MARKS - len(run)] + piece[len(marks) :]
    if len(piece.encode("utf-8", "surrogatepass")) - len(piece) <= MAX_MARKS:
        return piece  # a longer run would need more bytes, because a mark takes at least two
    long_run = _BMP_LONG_RUN if is_in_bmp(piece) else _LONG_RUN
    return long_run.sub(r"\1", piece)


def _run_at_end(run: str, piece: str) -> str:
    """Return the marks at the end of a text that ends in a run, after a piece without long runs is added."""
    marks = _matched(_LAST_MARKS.search(piece[-MAX_MARKS:]))
    return run + marks if len(marks) == len(piece) else marks


def _matched(match: re.Match[str] | None) -> str:
    assert match is not None, "the expression matches no character, too"  # noqa: S101
    return match.group()


def _pieces(text: str) -> Iterator[str]:
    """Split a text before characters that cannot combine with the character before them."""
    start = 0
    while len(text) - start > _PIECE_CHARS:
        end = start + _PIECE_CHARS
        boundary = _BOUNDARY.search(text, end, end + _PIECE_CHARS)
        end = boundary.start() if boundary else end + _PIECE_CHARS
        yield text[start:end]
        start = end
    yield text[start:]
