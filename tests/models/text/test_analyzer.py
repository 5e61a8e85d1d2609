"""The analyzer, compared with an implementation that processes one word at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, get_args

import pytest
import snowballstemmer
import stop_words  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from models.mail import MailDocument
from models.text import Analyzer, AnalyzerParameters, TextDocument
from models.text.analyzer import WordAnalysis
from models.text.languages import Stemmer, StopWords, language_name
from models.text.tokens import words


@dataclass(frozen=True)
class Fields:
    """A document with weighted fields."""

    parts: tuple[tuple[str, float], ...]
    language: str | None = None

    def learning_parts(self) -> list[tuple[str, float]]:
        return list(self.parts)


def counted(parameters: AnalyzerParameters, documents: list[TextDocument]) -> list[dict[str, float]]:
    analyzer = Analyzer(parameters)
    dense = analyzer.count(documents).toarray()
    return [{term: x for term, x in zip(analyzer.terms, row, strict=True) if x} for row in dense]


def literal_count(parameters: AnalyzerParameters, document: Fields) -> dict[str, float]:
    low, high = parameters.ngrams
    counts: Counter[str] = Counter()
    for text, weight in document.parts:
        if weight <= 0:
            continue
        remaining = []
        for word in words(text, lowercase=parameters.lowercase):
            if len(word) < parameters.min_length:
                continue
            if parameters.drop_numbers and word.isdigit():
                continue
            if parameters.stop_words == "english" and word.lower() in {"the", "a", "not", "is"}:
                continue
            remaining.append(
                snowballstemmer.stemmer("porter").stemWord(word) if parameters.stemmer == "porter" else word
            )
        units = [remaining] if parameters.unit == "word" else [list(f" {word} ") for word in remaining]
        between = " " if parameters.unit == "word" else ""
        for unit in units:
            for n in range(low, high + 1):
                for start in range(len(unit) - n + 1):
                    term = between.join(unit[start : start + n])
                    if term != " ":
                        counts[term] += weight  # type: ignore[assignment]  # weights are not integers
    return dict(counts)


some_words = st.sampled_from(["The", "a", "not", "IS", "houses", "houses", "billing", "2024", "über", "x1"])
fields = st.builds(
    Fields,
    st.lists(
        st.tuples(st.lists(some_words, max_size=8).map(" ".join), st.sampled_from([1.0, 0.5, 0.0])),
        max_size=3,
    ).map(tuple),
)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(fields, max_size=5),
    st.builds(
        AnalyzerParameters,
        unit=st.sampled_from(["word", "character"]),
        lowercase=st.booleans(),
        drop_numbers=st.booleans(),
        stop_words=st.sampled_from(["none", "english"]),
        stemmer=st.sampled_from(["none", "porter"]),
        min_length=st.integers(1, 3),
        ngrams=st.sampled_from([(1, 1), (1, 3), (2, 2), (2, 4)]),
    ),
)
def test_counts_agree_with_the_literal_implementation(
    documents: list[Fields], parameters: AnalyzerParameters
) -> None:
    assert counted(parameters, list(documents)) == [literal_count(parameters, one) for one in documents]


def test_defaults_are_those_of_the_api_contract() -> None:
    assert AnalyzerParameters().model_dump() == {
        "unit": "word",
        "lowercase": True,
        "drop_numbers": False,
        "stop_words": "none",
        "stemmer": "none",
        "min_length": 1,
        "ngrams": (1, 1),
    }


@pytest.mark.parametrize(
    "bad",
    [
        {"ngrams": [2, 1]},
        {"ngrams": [0, 1]},
        {"stop_words": "klingon"},
        {"min_length": 0},
        {"stem": "porter"},
    ],
)
def test_invalid_parameters_are_rejected(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AnalyzerParameters.model_validate(bad)


def test_stop_words_are_dropped_before_stemming() -> None:
    """A word is not a stop word if only its stem is one."""
    analysis = WordAnalysis(AnalyzerParameters(stop_words="english", stemmer="porter"))
    assert analysis("the") is None
    assert analysis("thes") == "the"


def test_the_parts_of_stop_words_with_apostrophes_are_dropped() -> None:
    parameters = AnalyzerParameters(stop_words="english")
    assert counted(parameters, ["It isn't, shan’t, won't: INVOICE"]) == [{"invoice": 1.0}]


def test_stop_words_are_dropped_regardless_of_case() -> None:
    parameters = AnalyzerParameters(stop_words="english", lowercase=False)
    assert counted(parameters, ["The THE the Invoice"]) == [{"Invoice": 1.0}]


def test_numbers_are_tokens_of_digits_only() -> None:
    parameters = AnalyzerParameters(drop_numbers=True)
    assert counted(parameters, ["42 4th ٤٢ ４２ x2"]) == [{"4th": 1.0, "x2": 1.0}]


def test_ngrams_do_not_cross_fields_or_documents() -> None:
    parameters = AnalyzerParameters(ngrams=(2, 2))
    document = Fields((("red rose", 1.0), ("blue sky", 0.5)))
    assert counted(parameters, [document, "one two"]) == [
        {"red rose": 1.0, "blue sky": 0.5},
        {"one two": 1.0},
    ]


def test_quoted_text_of_a_mail_has_a_smaller_weight() -> None:
    mail = MailDocument(subject="invoice", new_text="invoice wrong", quoted_text="wrong")
    assert counted(AnalyzerParameters(), [mail]) == [{"invoice": 2.0, "wrong": 1.5}]


def test_each_document_is_analyzed_in_its_language() -> None:
    parameters = AnalyzerParameters(stop_words="auto", stemmer="auto")
    documents: list[TextDocument] = [
        Fields((("die Rechnungen", 1.0),), language="de"),
        Fields((("die invoices", 1.0),), language="en-GB"),
        Fields((("die invoices", 1.0),), language=None),
        Fields((("die invoices", 1.0),), language="xx"),
        "Die Rechnungen vom Mai stimmen leider nicht, bitte prüfen Sie sie.",
    ]
    german, english, unknown, foreign, guessed = counted(parameters, documents)
    assert german == {"rechnung": 1.0}
    assert english == {"die": 1.0, "invoic": 1.0}
    assert unknown == foreign == {"die": 1.0, "invoices": 1.0}
    assert "rechnung" in guessed
    assert "die" not in guessed


def test_a_word_is_analyzed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    analyzed: list[str] = []
    analyse = WordAnalysis.__call__

    def spy(self: WordAnalysis, word: str) -> str | None:
        analyzed.append(word)
        return analyse(self, word)

    monkeypatch.setattr(WordAnalysis, "__call__", spy)
    analyzer = Analyzer(AnalyzerParameters(stemmer="porter"))
    for _ in range(3):
        analyzer.count(["houses houses house", "Houses"])
    assert analyzed == ["houses", "house"]


@pytest.mark.parametrize("options", [{}, {"ngrams": (1, 2)}, {"unit": "character"}])
def test_the_cache_size_can_be_limited(options: dict[str, Any]) -> None:
    analyzer = Analyzer(AnalyzerParameters(**options), terms=["word1"], cache_size=10)
    for i in range(100):
        analyzer.count([f"word{i} another{i}"])
    assert len(analyzer.terms) < 50
    assert analyzer.terms[0] == "word1"


def test_initial_terms_keep_their_numbers() -> None:
    analyzer = Analyzer(AnalyzerParameters(ngrams=(1, 2)), terms=["red rose", "red"])
    counts = analyzer.count(["red rose", "a red rose red"])
    assert counts.toarray()[:, :2].tolist() == [[1, 1], [1, 2]]


def test_languages_are_those_of_the_libraries() -> None:
    assert set(get_args(get_args(StopWords.__value__)[0])) == {
        "none",
        "auto",
        *stop_words.AVAILABLE_LANGUAGES,
    }
    assert set(get_args(get_args(Stemmer.__value__)[0])) == {"none", "auto", *snowballstemmer.algorithms()}
    assert language_name("nb") == language_name("no") == "norwegian"
