"""The cache of the terms of words, which all models of a process share."""

from __future__ import annotations

from typing import Any

import pytest

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
