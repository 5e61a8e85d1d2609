"""Finds the words of a text in the text as it was given, before normalization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Ints
from models.text.tokens import TokenRules, invisible_places, prepare, without_invisible, word_spans
from models.unicode import normalize, normalized_segments


@dataclass(frozen=True, slots=True)
class AlignedWords:
    """The words of a text, and where they are in it.

    Attributes:
        words: the words, as :func:`models.text.tokens.words` returns them.
        spans: where each word is in the prepared text.
        starts: where each character of the prepared text begins in the given text; None if both are aligned.
        ends: where it ends.
    """

    words: Sequence[str]
    spans: Sequence[tuple[int, int]]
    starts: Ints | None
    ends: Ints | None

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return where a part of the prepared text is in the given text, in code points."""
        if self.starts is None or self.ends is None:
            return start, end
        return int(self.starts[start]), int(self.ends[end - 1])


def align_words(text: str, rules: TokenRules) -> AlignedWords:
    r"""Return the words of a text and their places, in time proportional to its length.

    Normalization can change the length of a text: a letter and a combining mark become one letter, a ligature
    becomes several letters, and invisible characters are removed.

    Args:
        text: the text.
        rules: how it is split into words.

    >>> aligned = align_words("Cafe\u0301: o\ufb03ce", TokenRules())
    >>> [(word, aligned.place(*span)) for word, span in zip(aligned.words, aligned.spans)]
    [('café', (0, 5)), ('office', (7, 11))]
    """
    prepared = prepare(text, rules)
    spans = word_spans(prepared, rules)
    starts, ends = _places(text, prepared)
    return AlignedWords([prepared[start:end] for start, end in spans], spans, starts, ends)


def _places(text: str, prepared: str) -> tuple[Ints, Ints] | tuple[None, None]:
    """Return where each character of a prepared text begins and ends in the given text."""
    if text.isascii():
        return None, None
    normalized = normalize(text)
    invisible = invisible_places(normalized)
    if normalized == text and not invisible and len(prepared) == len(text):
        return None, None
    starts: list[int] = []
    ends: list[int] = []
    for start, end, form in normalized_segments(text):
        if len(form) == end - start and form == text[start:end] and form.isascii():
            starts += range(start, end)
            ends += range(start + 1, end + 1)
        else:
            starts += [start] * len(form)
            ends += [end] * len(form)
    places = np.array([starts, ends], dtype=np.int64)[:, : len(normalized)]
    if invisible:
        places = np.delete(places, invisible, axis=1)
    visible = without_invisible(normalized)
    if len(prepared) != len(visible):  # a letter has two letters in lower case
        places = np.repeat(places, [len(character.lower()) for character in visible], axis=1)
    return places[0], places[1]
