"""The analyzer, compared with an implementation that processes one word at a time."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections import Counter
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pytest
import snowballstemmer
import stop_words  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from models.mail import MailDocument
from models.mail.fields import MailFields, MailFieldsParameters, Part
from models.text import Analyzer, AnalyzerParameters, TextDocument
from models.text.analyzer import WordAnalysis
from models.text.languages import Stemmer, StopWords, language_name
from models.text.tokens import TokenRules, words
from models.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Fields:
    """A document with weighted fields."""

    parts: tuple[tuple[str, float], ...]
    language: str | None = None

    def learning_parts(self, fields: MailFields) -> list[Part]:
        prefixes = {use.field: use.prefix for use in fields.usual}
        return [
            Part(text, weight, prefix=prefixes["quoted_text" if weight < 1 else "new_text"])
            for text, weight in self.parts
            if weight > 0
        ]


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
        for word in words(text, parameters.token_rules(None)):
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
        "character_ngrams": None,
        "unsegmented": "bigrams",
        "lowercase": True,
        "fold_turkic_i": True,
        "token_characters": {"inside": "", "anywhere": ""},
        "drop_numbers": False,
        "stop_words": "none",
        "stemmer": "none",
        "min_length": 1,
        "max_length": 100,
        "ngrams": (1, 1),
    }


@pytest.mark.parametrize(
    "bad",
    [
        {"ngrams": [2, 1]},
        {"ngrams": [0, 1]},
        {"stop_words": "klingon"},
        {"min_length": 0},
        {"max_length": 0},
        {"min_length": 20, "max_length": 10},
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


def test_a_clause_without_spaces_is_counted_as_its_bigrams() -> None:
    text = "退款，请退款 now"
    assert counted(AnalyzerParameters(), [text]) == [{"退款": 2.0, "请退": 1.0, "now": 1.0}]
    assert counted(AnalyzerParameters(unsegmented="none"), [text]) == [
        {"退款": 1.0, "请退款": 1.0, "now": 1.0}
    ]
    assert counted(AnalyzerParameters(min_length=3), [text]) == counted(AnalyzerParameters(), [text])
    characters = AnalyzerParameters(unit="character", ngrams=(3, 3))
    assert counted(characters, ["请退款"]) == [{" 请退": 1.0, "请退款": 1.0, "退款 ": 1.0}]


@pytest.mark.parametrize("options", [{}, {"unsegmented": "none"}, {"ngrams": (1, 2)}, {"max_length": 3}])
def test_bigrams_of_one_document_are_those_of_many(options: dict[str, Any]) -> None:
    parameters = AnalyzerParameters(**options)
    texts: list[str] = ["退款，请退款 now", "คืนเงิน" * 3, "ascii only", "Größe 包"]
    analyzer = Analyzer(parameters)
    counts = analyzer.count(texts).toarray()
    vocabulary = Vocabulary(parameters, analyzer.terms)
    for text, row in zip(texts, counts, strict=True):
        for unknown in (False, True):
            one = vocabulary.count_one(text, unknown=unknown)
            assert one is not None
            assert dict(zip(one.terms.tolist(), one.counts.tolist(), strict=True)) == {
                number: count for number, count in enumerate(row.tolist()) if count
            }


def test_ngrams_do_not_cross_fields_or_documents() -> None:
    parameters = AnalyzerParameters(ngrams=(2, 2))
    document = Fields((("red rose", 1.0), ("blue sky", 0.5)))
    assert counted(parameters, [document, "one two"]) == [
        {"red rose": 1.0, "blue sky": 0.5},
        {"one two": 1.0},
    ]


def test_quoted_text_of_a_mail_has_a_smaller_weight() -> None:
    mail = MailDocument(subject="invoice", new_text="invoice wrong wrong wrong", quoted_text="wrong")
    assert counted(AnalyzerParameters(), [mail]) == [{"invoice": 2.0, "wrong": 3.5}]


MARKED_OPTIONS: list[dict[str, Any]] = [
    {},
    {"stemmer": "porter", "stop_words": "english"},
    {"ngrams": (1, 2)},
    {"unit": "character", "ngrams": (2, 3)},
]


@pytest.mark.parametrize("options", MARKED_OPTIONS)
def test_terms_of_quoted_text_can_be_terms_of_their_own(options: dict[str, Any]) -> None:
    parameters = AnalyzerParameters(**options)
    documents: list[TextDocument] = [
        Fields((("the invoices wrong", 1.0), ("the invoices wrong invoices", 0.5), ("häuser", 0.5))),
        Fields((("wrong", 0.5),)),
        "wrong invoices",
    ]
    separate = [
        Fields(((text, 1.0),)) for text in ("the invoices wrong", "the invoices wrong invoices", "häuser")
    ]
    new, quoted, other = counted(parameters, list(separate))
    fields = MailFields(MailFieldsParameters(), binary=True)
    analyzer = Analyzer(parameters, fields)
    matrix = analyzer.count(documents).toarray()
    terms = analyzer.terms
    found = {term: x for term, x in zip(terms, matrix[0].tolist(), strict=True) if x}

    def mark(term: str) -> str:
        between = " " if parameters.unit == "word" else ""
        return between.join(f">{part}" for part in term.split(between)) if between else f">{term}"

    assert found == new | {mark(term): count / 2 for term, count in (quoted | other).items()}
    vocabulary = Vocabulary(parameters, terms, fields)
    for document, row in zip(documents, matrix.tolist(), strict=True):
        assert vocabulary.count([document]).toarray()[0, : len(terms)].tolist() == row
        for unknown in (False, True):
            one = vocabulary.count_one(document, unknown=unknown)
            assert one is not None
            counts = dict(zip(one.terms.tolist(), one.counts.tolist(), strict=True))
            assert counts == {number: count for number, count in enumerate(row) if count}


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


VOCABULARY_OPTIONS: list[dict[str, Any]] = [
    {},
    {"stemmer": "porter"},
    {"ngrams": (1, 2)},
    {"ngrams": (2, 3)},
    {"unit": "character", "ngrams": (1, 3)},
]


@settings(max_examples=30, deadline=None)
@given(st.lists(fields, min_size=1, max_size=5), st.sampled_from(VOCABULARY_OPTIONS), st.integers(0, 30))
def test_a_vocabulary_counts_its_terms_and_the_number_of_others(
    documents: list[Fields], options: dict[str, Any], n_terms: int
) -> None:
    parameters = AnalyzerParameters(**options)
    analyzer = Analyzer(parameters)
    counts = analyzer.count(documents)
    terms = analyzer.terms[:n_terms]
    n_terms = len(terms)
    vocabulary = Vocabulary(parameters, terms)
    for _ in range(2):  # the second time from the cache
        others = vocabulary.count(documents)
        assert others.toarray()[:, :n_terms].tolist() == counts.toarray()[:, :n_terms].tolist()
        assert np.diff(others.indptr).tolist() == np.diff(counts.indptr).tolist()
        assert others.sum(axis=1).tolist() == counts.sum(axis=1).tolist()


@pytest.mark.parametrize("options", VOCABULARY_OPTIONS)
def test_a_vocabulary_does_not_store_other_terms(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.text.word_terms.CACHED_WORDS", 100)
    monkeypatch.setattr("models.text.vocabulary._CACHED_NGRAMS", 100)
    vocabulary = Vocabulary(AnalyzerParameters(**options), ["word1"])
    gc.collect()
    tracemalloc.start()
    vocabulary.count([" ".join(f"word{i}" for i in range(200))])
    before = tracemalloc.get_traced_memory()[0]
    for i in range(60):
        vocabulary.count([f"word{1000 * i + j} another{j}" for j in range(20)])
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 100_000


def test_terms_of_a_vocabulary_keep_their_numbers() -> None:
    vocabulary = Vocabulary(AnalyzerParameters(ngrams=(1, 2)), ["red rose", "red"])
    counts = vocabulary.count(["red rose", "a red rose red"])
    assert counts.toarray()[:, :2].tolist() == [[1, 1], [1, 2]]


@pytest.mark.parametrize("text", ["x" * 25 + "!", "é" * 25 + " y" * 3, "xé" * 12 + "x"])
def test_long_words_are_split(text: str) -> None:
    parameters = AnalyzerParameters(max_length=10)
    distinct = counted(parameters, [text])[0]
    assert distinct == Counter(words(text, TokenRules(max_length=10)))
    assert max(map(len, distinct)) == 10
    assert sum(len(word) * count for word, count in distinct.items()) == sum(map(str.isalnum, text))


def test_long_words_are_split_in_ascii_texts_next_to_other_texts() -> None:
    parameters = AnalyzerParameters(max_length=4)
    assert counted(parameters, ["éééé abcdefghij", "abcdefghij abc abcd", "éééé"]) == [
        {"éééé": 1.0, "abcd": 1.0, "efgh": 1.0, "ij": 1.0},
        {"abcd": 2.0, "efgh": 1.0, "ij": 1.0, "abc": 1.0},
        {"éééé": 1.0},
    ]


@pytest.mark.parametrize(("unit", "kept"), [("word", 5), ("character", 2)])
def test_words_after_the_limit_of_ngrams_are_ignored(
    unit: Any, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two words of three letters have 2 · (3 + 4) n-grams of one and two characters."""
    monkeypatch.setattr("models.text.counting.MAX_NGRAMS", 14)
    parameters = AnalyzerParameters(unit=unit, ngrams=(1, 2) if unit == "character" else (1, 3))
    texts = ["one two abc def ghi jkl mno", "one one two"]
    expected = counted(parameters, [" ".join(texts[0].split()[: 4 if unit == "word" else kept]), texts[1]])
    assert counted(parameters, list(texts)) == expected
    known = Vocabulary(parameters, Analyzer(parameters).terms)
    assert known.count(list(texts)).sum() == sum(sum(one.values()) for one in expected)


def test_a_stemmer_runs_while_another_thread_stems() -> None:
    """Threads that share a model never wait for each other's words."""
    vocabulary = Vocabulary(AnalyzerParameters(stemmer="german"), ["rechnung"])
    counts = []

    class Word(str):
        def __hash__(self) -> int:
            other = threading.Thread(
                target=lambda: counts.append(vocabulary.count(["Rechnungen"]).toarray().tolist())
            )
            other.start()
            other.join(300)
            return super().__hash__()

    vocabulary.analyzed([Word("rechnungen")], None, "")
    assert counts
    assert counts[0] == [[1.0]]


def test_languages_are_those_of_the_libraries() -> None:
    assert set(get_args(get_args(StopWords.__value__)[0])) == {
        "none",
        "auto",
        "smart",
        *stop_words.AVAILABLE_LANGUAGES,
    }
    assert set(get_args(get_args(Stemmer.__value__)[0])) == {"none", "auto", *snowballstemmer.algorithms()}
    assert language_name("nb") == language_name("no") == "norwegian"
