"""Splits texts into words, many texts at a time.

A *word* is a maximal run of letters and digits of any script (``str.isalnum``, so without the underscore),
together with the combining marks (Mn, Mc) after its letters, because many scripts write vowels as marks.
Texts are first normalized to Unicode normalization form NFKC, in which the same letter always has the same
representation. Invisible characters (soft hyphen, joiners, direction marks, variation selectors, byte-order
mark) are removed, because mail programs insert them into words. Runs of scripts without spaces between words
become bigrams on request (see :mod:`models.text.unsegmented`). Further characters can belong to words on
request. They are given as a set of characters rather than as a regular expression: matching a set takes
linear time, and an expression from outside can take exponential time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from models.text.unsegmented import (
    UNSEGMENTED_LETTERS,
    high_bytes,
    may_contain_letters,
    split_unsegmented,
    unsegmented_spans,
)
from models.unicode import PLANES_WITH_MARKS, character_class, normalize

try:
    import pyarrow as pa
except ModuleNotFoundError:
    _HAS_ARROW = False
else:
    _HAS_ARROW = True

_SPACE = 32


def _marks(codes: Iterable[int]) -> str:
    return character_class(c for c in map(chr, codes) if unicodedata.category(c) in ("Mn", "Mc"))


_MARKS = {True: _marks(range(0x10000)), False: _marks(PLANES_WITH_MARKS)}
"""The characters of marks: those in plane 0 (true), and all (false)."""

MAX_LENGTH = 100
"""Default maximum length of a word. For comparison: the longest German words in use have 80 letters."""
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
"""Unicode's default-ignorable characters, except the zero-width space U+200B, which separates words."""


def without_invisible(text: str) -> str:
    """Return a text without invisible characters."""
    return _INVISIBLE.sub("", text)


def invisible_places(text: str) -> list[int]:
    """Return where the invisible characters of a text are."""
    return [match.start() for match in _INVISIBLE.finditer(text)]


@dataclass(frozen=True)
class TokenRules:
    """How a text is split into words.

    Attributes:
        lowercase: whether letters are converted to lower case.
        max_length: longer words are split every ``max_length`` characters.
        bigrams: whether runs of scripts without spaces become bigrams, if ``max_length`` is at least 2.
        turkic: how lower case treats the letters I, ı, İ and i of Turkish and Azerbaijani. ``none``: as in
            other languages, so that ``İ`` becomes two characters and ``I`` becomes ``i``. ``lower``: as in
            these languages, ``I`` becomes ``ı``, and ``İ`` becomes ``i``. ``fold``: all become ``i``.
        inside: further characters that belong to a word if they are between two of its letters and digits.
        anywhere: further characters that are like letters.
    """

    lowercase: bool = True
    max_length: int = MAX_LENGTH
    bigrams: bool = False
    turkic: Literal["none", "lower", "fold"] = "none"
    inside: str = ""
    anywhere: str = ""

    @cached_property
    def extra(self) -> str:
        """The inside of a character class of all further characters."""
        return character_class(sorted(self.inside + self.anywhere))

    @cached_property
    def table(self) -> bytes:
        """A table for ``bytes.translate`` that replaces ASCII outside of words by spaces."""
        further = self.inside + self.anywhere
        kept = (chr(c) if c >= 128 or chr(c).isalnum() or chr(c) in further else " " for c in range(256))
        return bytes(ord(c.lower()) if self.lowercase and c.isascii() else ord(c) for c in kept)

    def are_simple_for(self, text: str) -> bool:
        """Return whether ``ascii_words`` splits a text, if no word is too long."""
        if not text.isascii() or self.extra:
            return False
        return self.turkic != "lower" or "I" not in text

    def separate(self, text: str) -> str:
        """Replace characters that belong to words only in between, but are not, by spaces."""
        return _outside(self.inside, bigrams=self.bigrams).sub(" ", text) if self.inside else text


DEFAULT_RULES: Final = TokenRules()


@cache
def _word(max_length: int, extra: str, *, bmp: bool) -> re.Pattern[str]:
    return re.compile(rf"[\w{extra}][\w{_MARKS[bmp]}{extra}]{{0,{max_length - 1}}}+")


@cache
def _outside(inside: str, *, bigrams: bool) -> re.Pattern[str]:
    between = character_class(sorted(inside))
    other = rf"\W_{UNSEGMENTED_LETTERS if bigrams else ''}"
    return re.compile(rf"(?<![^{other}])(?<![{_MARKS[False]}])[{between}]|[{between}](?![^{other}])")


def words(text: str, rules: TokenRules = DEFAULT_RULES) -> list[str]:
    """Return the words of one text, in their order.

    >>> words("Re: Ihre Rechnung_42 – GRÜSSE, naïve  co\u00adop")
    ['re', 'ihre', 'rechnung', '42', 'grüsse', 'naïve', 'coop']
    >>> words("我的包裹，请退款", TokenRules(bigrams=True))
    ['我的', '的包', '包裹', '请退', '退款']
    >>> words("C++ (v1.2): e-mail me.", TokenRules(inside="-.", anywhere="+"))
    ['c++', 'v1.2', 'e-mail', 'me']
    """
    max_length = rules.max_length
    if rules.are_simple_for(text):
        found = ascii_words(text, rules)
        if max(map(len, found), default=0) <= max_length:
            return found
        return [word[i : i + max_length] for word in found for i in range(0, len(word), max_length)]
    text = prepare(text, rules)
    high = high_bytes(text)
    bmp = len(high) == len(text)
    if rules.bigrams and max_length > 1 and may_contain_letters(high):
        return split_unsegmented(text, _MARKS[bmp], rules.extra, max_length, bmp=bmp)
    return _word(max_length, rules.extra, bmp=bmp).findall(text)


def prepare(text: str, rules: TokenRules) -> str:
    """Return the text in which words are found: normalized, without invisible characters and underscores."""
    text = without_invisible(normalize(text))
    if rules.lowercase:
        if rules.turkic != "none":
            text = text.replace("İ", "i")
        if rules.turkic == "lower":
            text = text.replace("I", "ı")
        text = text.lower()
        if rules.turkic == "fold":
            text = text.replace("ı", "i")
    if "_" not in rules.inside + rules.anywhere:
        text = text.replace("_", " ")
    return rules.separate(text)


def word_spans(text: str, rules: TokenRules = DEFAULT_RULES) -> list[tuple[int, int]]:
    """Return where the words of a text are that ``prepare`` returned. :func:`words` returns the same words.

    >>> word_spans("re 我的包"), word_spans("re 我的包", TokenRules(bigrams=True))
    ([(0, 2), (3, 6)], [(0, 2), (3, 5), (4, 6)])
    """
    high = high_bytes(text)
    bmp = len(high) == len(text)
    if rules.bigrams and rules.max_length > 1 and may_contain_letters(high):
        return unsegmented_spans(text, _MARKS[bmp], rules.extra, rules.max_length, bmp=bmp)
    return [match.span() for match in _word(rules.max_length, rules.extra, bmp=bmp).finditer(text)]


def ascii_words(text: str, rules: TokenRules = DEFAULT_RULES) -> list[str]:
    """Return the words of a text of ASCII characters, which can be of any length."""
    return text.encode().translate(rules.table).decode().split()


@dataclass(frozen=True)
class SplitTexts:
    """The words of n texts, with each distinct word stored once.

    Attributes:
        distinct: the distinct words, in order of their first appearance.
        codes: the index in ``distinct`` of each word of all texts.
        bounds: (n + 1,) bounds of the texts: the words of text i are ``codes[bounds[i]:bounds[i + 1]]``.
    """

    distinct: list[str]
    codes: NDArray[np.int32]
    bounds: NDArray[np.int64]


def split(texts: Sequence[str], rules: TokenRules = DEFAULT_RULES) -> SplitTexts:
    """Split many texts into words, several times faster than :func:`words`.

    All texts are joined as bytes, with one separator byte between them. A word is a run of bytes between
    separators, and Arrow assigns numbers to the distinct words if it is installed. Only texts with non-ASCII
    characters use the regular expression.

    >>> split(["one two", "two"]).codes.tolist()
    [0, 1, 1]
    """
    encoded = [
        (text if rules.are_simple_for(text) else " ".join(words(text, rules))).encode() for text in texts
    ]
    joined = b" ".join([b"", *encoded, b""]).translate(rules.table)
    inside = np.frombuffer(joined, dtype=np.uint8) != _SPACE
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    starts, ends = _split_long_runs(joined, edges[::2], edges[1::2], rules.max_length)

    offsets = np.zeros(len(starts) + 1, dtype=np.int64)
    np.cumsum(ends - starts, out=offsets[1:])
    distinct, codes = _numbered(joined.translate(None, b" "), offsets)

    first = np.ones(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) + 1 for text in encoded], out=first[1:])
    first[1:] += 1
    return SplitTexts(
        distinct=distinct,
        codes=codes,
        bounds=np.searchsorted(starts, first).astype(np.int64),
    )


def _numbered(letters: bytes, offsets: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int32]]:
    """Return the distinct words in order of their first appearance, and the number of each word.

    Args:
        letters: the words without separators.
        offsets: (words + 1,) the bounds of the words in ``letters``.
    """
    if not _HAS_ARROW:
        return _numbered_by_dictionary(letters, offsets)
    numbered = pa.LargeStringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets.data), pa.py_buffer(letters)
    ).dictionary_encode()
    return numbered.dictionary.to_numpy(zero_copy_only=False).tolist(), numbered.indices.to_numpy()


def _numbered_by_dictionary(
    letters: bytes, offsets: NDArray[np.int64]
) -> tuple[list[str], NDArray[np.int32]]:
    """Return the result of ``_numbered`` without Arrow, in about twice the time."""
    numbers: dict[bytes, int] = {}
    bounds = pairwise(offsets.tolist())
    codes = [numbers.setdefault(letters[start:end], len(numbers)) for start, end in bounds]
    return [word.decode() for word in numbers], np.array(codes, dtype=np.int32)


def _split_long_runs(
    joined: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64], max_length: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split long words of ASCII texts. The function ``words`` has already split the words of other texts."""
    long = [
        i
        for i in np.flatnonzero(ends - starts > max_length).tolist()
        if joined[starts[i] : ends[i]].isascii()
    ]
    if not long:
        return starts, ends
    cuts = np.concatenate([np.arange(starts[i] + max_length, ends[i], max_length) for i in long])
    return np.sort(np.concatenate([starts, cuts])), np.sort(np.concatenate([ends, cuts]))
