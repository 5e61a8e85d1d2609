"""Character n-grams beside words, and character n-grams across words."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.sparse import csr_array

from models.features import TextFeatures, TextFeaturesParameters
from models.mail.document import MailDocument
from models.mail.fields import DEFAULT_FIELDS
from models.text import Analyzer, AnalyzerParameters, TextDocument
from models.text.occurrences import find_occurrences
from models.text.tokens import words

MIXED = {"character_ngrams": [3, 4]}
SPECTRUM = {"unit": "spectrum", "ngrams": [2, 4]}
KINDS: list[dict[str, Any]] = [
    MIXED,
    {"character_ngrams": [3, 3], "ngrams": [1, 2]},
    {"character_ngrams": [1, 2], "stop_words": "english", "stemmer": "porter"},
    SPECTRUM,
    {"unit": "spectrum", "ngrams": [3, 3], "drop_numbers": True},
]
QUOTED = MailDocument(subject="Red roses", new_text="x" * 20 + " the rose", quoted_text="red ros 12")
DOCUMENTS: list[TextDocument] = ["a red rose", "Rosengarten im Garten", "rose rose", "", QUOTED]


def counts_of(document: TextDocument, options: dict[str, Any]) -> dict[str, float]:
    analyzer = Analyzer(AnalyzerParameters.model_validate(options))
    row = analyzer.count([document]).toarray()[0]
    return {term: count for term, count in zip(analyzer.terms, row, strict=True) if count}


def test_character_ngrams_are_terms_beside_the_words() -> None:
    assert counts_of("ab ab", {"character_ngrams": [3, 3]}) == {"ab": 2, "~ ab": 2, "~ab ": 2}


def test_an_ngram_is_another_term_than_the_same_word() -> None:
    assert counts_of("xrosex rose", {"character_ngrams": [4, 4]})["~rose"] == 2
    assert counts_of("xrosex rose", {"character_ngrams": [4, 4]})["rose"] == 1


def test_parts_of_compounds_match() -> None:
    compound, part = counts_of("Rechnungskorrektur", MIXED), counts_of("Rechnung", MIXED)
    assert not {term for term in compound if "~" not in term} & {term for term in part if "~" not in term}
    assert {"~ rec", "~echn", "~nung"} <= compound.keys() & part.keys()


@settings(max_examples=50, deadline=None)
@given(st.text(st.sampled_from("aZß_0 .-é手机🙂"), max_size=30), st.integers(2, 4), st.integers(0, 3))
def test_a_spectrum_has_all_substrings_of_the_words(text: str, shortest: int, more: int) -> None:
    options = {"unit": "spectrum", "ngrams": [shortest, shortest + more]}
    found = words(text, AnalyzerParameters.model_validate(options).token_rules(None))
    line = f" {' '.join(found)} " if found else ""
    expected = Counter(
        line[start : start + length]
        for length in range(shortest, shortest + more + 1)
        for start in range(len(line) - length + 1)
    )
    assert counts_of(text, options) == expected


def test_a_spectrum_does_not_extend_across_fields() -> None:
    counts = counts_of(MailDocument(subject="ab", new_text="cd"), {"unit": "spectrum", "ngrams": [3, 3]})
    assert counts == {" ab": 1, "ab ": 1, " cd": 1, "cd ": 1}


def test_terms_of_quoted_text_begin_with_one_mark() -> None:
    for options, expected in ((MIXED, {">~ red", ">~ros ", ">red"}), (SPECTRUM, {">red ", ">d ro"})):
        features = TextFeatures(
            TextFeaturesParameters.model_validate(
                {"kind": "text", "weighting": "binary", "analyzer": options}
            )
        )
        features.fit_transform([QUOTED], csr_array(np.ones((1, 1), dtype=np.int8)))
        assert expected <= {*features.names_}


@pytest.mark.parametrize("weighting", ["tf", "binary", "pivoted"])
@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize("hashing", [None, {"n_features": 50}])
def test_one_document_gets_the_same_bits_as_in_a_batch(
    options: dict[str, Any], weighting: str, hashing: dict[str, Any] | None
) -> None:
    features = TextFeatures(
        TextFeaturesParameters.model_validate(
            {"kind": "text", "weighting": weighting, "analyzer": options, "hashing": hashing, "min_df": 2}
        )
    )
    X = features.fit_raw(
        features.read([DOCUMENTS[:2], DOCUMENTS[2:]]), csr_array(np.ones((5, 1), dtype=np.int8))
    )
    loaded = TextFeatures(features.parameters).set_state(features.get_state())
    assert loaded.vectors(DOCUMENTS).toarray().tolist() == X.toarray().tolist()
    others = [*DOCUMENTS, "an unknown prose, zebra 12", "日本語"]
    expected = loaded.vectors(others)
    for i, document in enumerate(others):
        vector = loaded.vector(document)
        assert vector is not None
        assert vector.to_matrix(X.shape[1]).toarray().tolist() == expected[[i]].toarray().tolist()


@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_term_is_found_in_the_document(options: dict[str, Any], document: TextDocument) -> None:
    parameters = AnalyzerParameters.model_validate(options)
    counts = counts_of(document, options)
    features = {term: number for number, term in enumerate(counts)}
    found = find_occurrences(document, features.get, parameters, DEFAULT_FIELDS)
    assert found.keys() == {*range(len(counts))}


def test_a_term_across_words_extends_across_words() -> None:
    parameters = AnalyzerParameters.model_validate(SPECTRUM)
    found = find_occurrences("A red, red rose", {"d ro": 1, " a": 2}.get, parameters, DEFAULT_FIELDS)
    assert [place[1:] for place in found[1].occurrences] == [(9, 13)]
    assert found[1].words == ["red rose"]
    assert found[2].words == ["A"]


@pytest.mark.parametrize(
    "options",
    [
        {"unit": "spectrum"},
        {"unit": "spectrum", "ngrams": [1, 3]},
        {"unit": "spectrum", "ngrams": [3, 9]},
        {"unit": "spectrum", "ngrams": [3, 3], "character_ngrams": [3, 3]},
        {"unit": "character", "character_ngrams": [3, 3]},
        {"character_ngrams": [4, 3]},
        {"character_ngrams": [3, 9]},
    ],
)
def test_options_without_meaning_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AnalyzerParameters.model_validate(options)
