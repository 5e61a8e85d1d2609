"""The words of a text are found in the text as it was given, before normalization."""

from __future__ import annotations

import numpy as np
import pytest

from models.text.alignment import align_words
from models.text.tokens import TokenRules, words
from models.unicode import normalize, normalized_segments

ALPHABET = [
    *"aAbz09 _-.,\n\"'=<éÉüßİıΟ…ő",
    *("\ufb01", "\u00bd", "\u00b2", "\u2460", "\u2121", "\u338f", "\u01c6", "\ufdfa", "\u3164"),  # expand
    *("\u0301", "\u0308", "\u0327", "\u0316", "\u0338", "\u0f73", "\uff9e", "\u3099"),  # marks
    *("\u09be", "\u09c7", "\u102e", "\U00011131", "\U00011127"),  # vowels that combine
    *("\u1100", "\u1161", "\u11a8", "\uac00", "\u3131", "\u314f", "\u1112"),  # parts of syllables
    *("\u00ad", "\u200d", "\u200b", "\ufe0f"),  # invisible
    *("我", "的", "包", "ก", "\u0e33", "が", "か", "\uff76", "\u17b7", "\u1780"),  # without spaces
    *("\U0001f642", "\U0001d400", "\ud800"),
]
"""Characters that normalization joins, expands, reorders or removes, and some that it does not change."""


def texts(n: int) -> list[str]:
    rng = np.random.default_rng(17)
    every = [chr(code) for code in range(0x20, 0x11000)]
    some = ["".join(rng.choice(every if i % 4 == 0 else ALPHABET, rng.integers(30))) for i in range(n)]
    runs = ["e" + "\u0316" * length + "\u0301x\u1161" for length in (1, 29, 30, 31, 90)]
    return [*some, *runs, "\u0316" * 40 + "a", "\ufdfa" * 200, "한글 ㅋㅋㅋ \u1112\u1161\u11ab"]


TEXTS = texts(800)


def test_segments_have_the_normalization_of_the_whole_text() -> None:
    for text in TEXTS:
        segments = [*normalized_segments(text)]
        whole = normalize(text)
        assert "".join(form for _, _, form in segments)[: len(whole)] == whole
        bounds = [0, *(end for _, end, _ in segments)]
        assert [start for start, _, _ in segments] == bounds[:-1]
        assert bounds[-1] == len(text)


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("bigrams", [True, False])
@pytest.mark.parametrize("max_length", [100, 3])
def test_aligned_words_are_the_words_of_the_text(lowercase: bool, bigrams: bool, max_length: int) -> None:
    for text in TEXTS:
        aligned = align_words(text, TokenRules(lowercase=lowercase, max_length=max_length, bigrams=bigrams))
        assert aligned.words == words(
            text, TokenRules(lowercase=lowercase, max_length=max_length, bigrams=bigrams)
        )


@pytest.mark.parametrize("bigrams", [True, False])
def test_the_place_of_a_word_contains_the_word(bigrams: bool) -> None:
    for text in TEXTS:
        aligned = align_words(text, TokenRules(lowercase=True, max_length=100, bigrams=bigrams))
        if len(normalize(text)) == max(1024, 2 * len(text)):
            continue  # the normalized text is cut, perhaps in the middle of a word
        for word, span in zip(aligned.words, aligned.spans, strict=True):
            start, end = aligned.place(*span)
            assert 0 <= start < end <= len(text)
            assert word in words(text[start:end], TokenRules(bigrams=bigrams))


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("Re: 2 Invoices!", {"re": "Re", "2": "2", "invoices": "Invoices"}),
        ("the Cafe\u0301s, o\ufb03ce", {"the": "the", "cafés": "Cafe\u0301s", "office": "o\ufb03ce"}),
        ("co\u00adop \u200e(x\u00b2)", {"coop": "co\u00adop", "x2": "x\u00b2"}),
        ("\uff29\uff4e\uff56\uff0c我的包", {"inv": "\uff29\uff4e\uff56", "我的": "我的", "的包": "的包"}),
        ("İstanbul_İ", {"i\u0307stanbul": "İstanbul", "i\u0307": "İ"}),
        ("„ㅋㅋ“ \U0001f642ja", {"ᄏᄏ": "ㅋㅋ", "ja": "ja"}),
    ],
)
def test_words_have_their_exact_places(text: str, places: dict[str, str]) -> None:
    aligned = align_words(text, TokenRules(lowercase=True, max_length=100, bigrams=True))
    found = {}
    for word, span in zip(aligned.words, aligned.spans, strict=True):
        start, end = aligned.place(*span)
        found[word] = text[start:end]
    assert found == places
