"""Splits runs of scripts that do not separate words by spaces into bigrams.

In Chinese, Japanese, Thai and similar texts, a run of letters is a clause rather than a word. A clause hardly
occurs twice, so nothing could be learned from it. Overlapping pairs of adjacent characters ("bigrams") are
the usual replacement for words in information retrieval: they need no dictionary, and most words of these
languages have about two characters. A character is a letter with the combining marks after it. Decimal digits
remain numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from operator import add
from typing import Final

from models.unicode import character_class

_BLOCKS = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19DF),  # Tai Le, New Tai Lue
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x3005, 0x3007),  # iteration mark, zero
    (0x3021, 0x312F),  # Hangzhou numerals, Hiragana, Katakana, Bopomofo
    (0x31A0, 0x31FF),  # Bopomofo, Katakana
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),  # Han
    (0xA9E0, 0xA9FF),  # Myanmar
    (0xAA60, 0xAADF),  # Myanmar, Tai Viet
    (0xF900, 0xFAFF),  # Han
    (0x11700, 0x1174F),  # Ahom
    (0x1AFF0, 0x1B16F),  # Kana
    (0x20000, 0x323AF),  # Han
)
"""The first and the last code point of each block. Hangul is not among them: Korean separates words."""


def _letters(last: int) -> str:
    return character_class(
        character
        for first, end in _BLOCKS
        for character in map(chr, range(first, min(end, last) + 1))
        if character.isalnum() and not character.isdecimal()
    )


_LETTERS = {True: _letters(0xFFFF), False: _letters(0x10FFFF)}
"""The letters of these scripts: those in plane 0 (true), and all (false)."""
UNSEGMENTED_LETTERS: Final = _LETTERS[False]
"""The inside of a character class of the letters of these scripts."""
_LETTER = re.compile(rf"[{_LETTERS[False]}]")
_SURROGATES = range(0xD8, 0xE0)
_OTHER_BYTES = bytes(
    sorted(
        set(range(256))
        - {byte for first, last in _BLOCKS if last < 2**16 for byte in range(first >> 8, (last >> 8) + 1)}
        - {*_SURROGATES}
    )
)
"""The high bytes in UTF-16 that no letter of these scripts has."""


def high_bytes(text: str) -> bytes:
    """Return the high bytes of a text in UTF-16: one for each character in plane 0, else two."""
    return text.encode("utf-16-le", "surrogatepass")[1::2]


def may_contain_letters(high: bytes) -> bool:
    """Return false if a text certainly has no letters of these scripts, which takes hardly any time.

    >>> may_contain_letters(high_bytes("Grüße, „привет“")), may_contain_letters(high_bytes("包裹"))
    (False, True)
    """
    return bool(high.translate(None, _OTHER_BYTES))


def begins_unsegmented(word: str) -> bool:
    """Return whether the first character of a word is a letter of these scripts."""
    return _LETTER.match(word) is not None


def split_unsegmented(text: str, marks: str, extra: str, max_length: int, *, bmp: bool) -> list[str]:
    r"""Return the words of a text in their order, with bigrams in place of the runs of these scripts.

    Args:
        text: a normalized text without underscores.
        marks: the inside of a character class of the combining marks.
        extra: the inside of a character class of further characters of words, or an empty string.
        max_length: longer words are split every ``max_length`` characters.
        bmp: whether all characters of the text and ``marks`` are in plane 0.

    >>> split_unsegmented("iphone手机壳 4711号", "\u0300", "", 100, bmp=True)
    ['iphone', '手机', '机壳', '4711', '号']
    """
    found: list[str] = []
    for word in _run_or_word(marks, extra, max_length, bmp=bmp).findall(text):
        if begins_unsegmented(word):
            found += _bigrams(word, marks, max_length, bmp=bmp)
        else:
            found.append(word)
    return found


def unsegmented_spans(
    text: str, marks: str, extra: str, max_length: int, *, bmp: bool
) -> list[tuple[int, int]]:
    """Return where the words are that ``split_unsegmented`` returns for the same arguments."""
    spans: list[tuple[int, int]] = []
    for match in _run_or_word(marks, extra, max_length, bmp=bmp).finditer(text):
        first, last = match.span()
        if begins_unsegmented(match.group()):
            characters = [one.span() for one in _character(marks, bmp=bmp).finditer(text, first, last)]
            pairs = [(one[0], two[1]) for one, two in pairwise(characters)] or [(first, last)]
            spans += [
                (start, min(start + max_length, end))
                for begin, end in pairs
                for start in range(begin, end, max_length)
            ]
        else:
            spans.append((first, last))
    return spans


@cache
def _run_or_word(marks: str, extra: str, max_length: int, *, bmp: bool) -> re.Pattern[str]:
    letters = _LETTERS[bmp]
    first = rf"[^\W{letters}]|[{extra}]" if extra else rf"[^\W{letters}]"
    word = rf"(?:{first})(?:[^\W{letters}]|[{marks}{extra}]){{0,{max_length - 1}}}+"
    return re.compile(rf"[{letters}][{letters}{marks}]*+|{word}")


@cache
def _character(marks: str, *, bmp: bool) -> re.Pattern[str]:
    return re.compile(rf"[{_LETTERS[bmp]}][{marks}]*+")


def _bigrams(run: str, marks: str, max_length: int, *, bmp: bool) -> list[str]:
    characters: Sequence[str] = run if run.isalpha() else _character(marks, bmp=bmp).findall(run)
    pairs = [*map(add, characters, characters[1:])] or [run]
    if max(map(len, pairs)) <= max_length:
        return pairs
    return [pair[start : start + max_length] for pair in pairs for start in range(0, len(pair), max_length)]
