"""The cache of the terms of words, which all models of a process share."""

from __future__ import annotations

from typing import Any

import pytest

from models.mail import MailDocument
from models.text import AnalyzerParameters, word_terms
from models.text.analyzer import WordAnalysis
from models.text.vocabulary import Vocabulary
from models.text.word_terms import WordTerms, shared_word_terms


@pytest.fixture
def analyzed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words that were analyzed, in their order."""
    words: list[str] = []
    analyse = WordAnalysis.__call__

    def spy(self: WordAnalysis, word: str) -> str | None:
        words.append(word)
        return analyse(self, word)

    monkeypatch.setattr(WordAnalysis, "__call__", spy)
    return words


def test_a_word_is_analyzed_once_for_all_models(analyzed: list[str]) -> None:
    """So the first request to a new version is not slower because its words must be stemmed."""
    word_terms._shared.cache_clear()
    parameters = AnalyzerParameters(stemmer="porter", stop_words="english")
    first = Vocabulary(parameters, ["zebroid", "invoic"])
    second = Vocabulary(AnalyzerParameters(**{**parameters.model_dump(), "lowercase": False}), ["zebroid"])
    for vocabulary in (first, second, first):
        counts = vocabulary.count_one("the zebroids zebroid zebroids")
        assert counts is not None
        assert (counts.terms.tolist(), counts.counts.tolist(), counts.distinct) == ([0], [3.0], 1)
    assert sorted(analyzed) == ["the", "zebroid", "zebroids"]


def test_a_full_cache_of_numbers_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.text.vocabulary._CACHED_NUMBERS", 10)
    vocabulary = Vocabulary(AnalyzerParameters(stemmer="porter"), ["a1", "invoic"])
    for i in range(100):
        counts = vocabulary.count_one(f"invoices a1 a{i} invoices", unknown=False)
        assert counts is not None
        assert (counts.terms.tolist(), counts.counts.tolist()) == ([0, 1], [1.0 + (i == 1), 2.0])
        assert all(len(numbers) <= 10 for numbers in vocabulary._numbers_of.values())


@pytest.mark.parametrize("text", ["abcabcab xy", "x abcabcab \u00fc abcab", "abc", ""])
def test_known_terms_are_counted_as_with_unknown_terms_also_if_words_are_too_long(text: str) -> None:
    vocabulary = Vocabulary(AnalyzerParameters(max_length=3), ["ab", "abc", "xy", "\u00fc"])
    for document in (text, MailDocument(subject="xy", new_text=text, quoted_text=text), text):
        known, all_terms = vocabulary.count_one(document, unknown=False), vocabulary.count_one(document)
        assert known is not None
        assert all_terms is not None
        assert known.terms.tolist() == all_terms.terms.tolist()
        assert known.counts.tolist() == all_terms.counts.tolist()


@pytest.mark.parametrize(
    "other",
    [{"stemmer": "german"}, {"stop_words": "english"}, {"min_length": 2}, {"drop_numbers": True}],
    ids=str,
)
def test_other_analyses_have_other_terms(other: dict[str, Any]) -> None:
    parameters = AnalyzerParameters()
    assert shared_word_terms(parameters, None) is shared_word_terms(parameters, None)
    assert shared_word_terms(AnalyzerParameters(**other), None) is not shared_word_terms(parameters, None)
    auto = AnalyzerParameters(stemmer="auto")
    assert shared_word_terms(auto, "german")["rechnungen"] == "rechnung"
    assert shared_word_terms(auto, "english")["rechnungen"] == "rechnungen"


def test_a_full_cache_keeps_frequent_words(monkeypatch: pytest.MonkeyPatch, analyzed: list[str]) -> None:
    monkeypatch.setattr("models.text.word_terms.CACHED_WORDS", 10)
    terms = WordTerms(AnalyzerParameters(stemmer="porter"), None)
    for i in range(200):
        assert terms["invoices"] == "invoic"
        assert terms[f"word{i}"] == f"word{i}"
        assert len(terms) <= 10
        assert len(terms._old) <= 10
    assert analyzed.count("invoices") == 1
