"""Hashing: any number of distinct terms in a limited number of features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import HashingVectorizer

from models.errors import ArtifactError
from models.features import TextFeatures, TextFeaturesParameters
from models.text import AnalyzerParameters
from models.text.hashing import column_name, column_of_name, count_hashed

TEXTS = ["red rose red", "red sky at night grün", "red sea rose", "blue sea", "blue blue blue whale"]
Y = csr_array(np.array([[1], [1], [0], [0], [0]], dtype=np.int8))


def fitted(n_features: int = 2**18, **options: Any) -> tuple[TextFeatures, csr_array]:
    features = TextFeatures(
        TextFeaturesParameters.model_validate(
            {"kind": "text", "hashing": {"n_features": n_features}, **options}
        )
    )
    return features, features.fit_raw(features.read([TEXTS[:2], TEXTS[2:]]), Y)


@pytest.mark.parametrize("n_features", [2, 7, 2**18])
@pytest.mark.parametrize("ngrams", [(1, 1), (1, 2)])
def test_columns_and_counts_are_those_of_scikit_learn(n_features: int, ngrams: tuple[int, int]) -> None:
    counts = count_hashed(TEXTS, AnalyzerParameters(ngrams=ngrams), n_features)
    vectorizer = HashingVectorizer(
        n_features=n_features,
        alternate_sign=False,
        norm=None,
        ngram_range=ngrams,
        tokenizer=str.split,
        token_pattern=None,
    )
    assert counts.toarray().tolist() == vectorizer.transform(TEXTS).toarray().tolist()


def test_a_hash_stays_the_same_in_all_versions() -> None:
    """A model that was saved must find its terms again."""
    counts = count_hashed(["invoice grün 包裹"], AnalyzerParameters(), 2**18)
    assert sorted(counts.indices.tolist()) == sorted([211708, 98502, 173465])


def test_features_have_numbers_and_keep_no_terms() -> None:
    features, X = fitted()
    assert all(name.startswith("#") for name in features.names_)
    assert features.names_ == sorted(features.names_)
    assert X.shape == (5, 9)
    stored = b"".join(array.tobytes() for array in features.get_state().values())
    assert b"red" not in stored
    assert b"rose" not in stored


@pytest.mark.parametrize("n_features", [3, 2**18])
@pytest.mark.parametrize(
    "options",
    [
        {"weighting": "pivoted", "scaling": "unit"},
        {"weighting": "binary"},
        {"weighting": "tfidf", "analyzer": {"stop_words": "english", "stemmer": "porter"}},
        {"weighting": "pivoted", "analyzer": {"ngrams": [1, 2]}},
        {"weighting": "pivoted", "analyzer": {"unit": "character", "ngrams": [2, 4]}},
        {"weighting": "tf", "selection": {"kind": "document_frequency", "count": 2}},
    ],
)
def test_one_document_gets_the_same_bits_as_in_a_batch(options: dict[str, Any], n_features: int) -> None:
    features, X = fitted(n_features, **options)
    loaded = TextFeatures(features.parameters).set_state(features.get_state())
    assert loaded.transform(TEXTS).toarray().tolist() == X.toarray().tolist()
    texts = [*TEXTS, "an unknown red whale", "", "日本語"]
    expected = features.transform(texts)
    for i, text in enumerate(texts):
        vector = loaded.vector(text)
        assert vector is not None
        assert vector.to_matrix(X.shape[1]).toarray().tolist() == expected[[i]].toarray().tolist()


def test_naive_bayes_can_use_hashed_features() -> None:
    _, X = fitted(2, weighting="tf")
    assert X.data.min() > 0


def test_names_of_columns_that_do_not_exist_are_refused() -> None:
    assert column_of_name(column_name(42, 1000), 1000) == 42
    for name in ("42", "#42", "#1000", "#-42", "#٠٤٢", "#"):
        with pytest.raises(ValueError, match="column"):
            column_of_name(name, 1000)
    features, _ = fitted(100)
    other = TextFeatures(
        TextFeaturesParameters.model_validate({"kind": "text", "hashing": {"n_features": 5}})
    )
    with pytest.raises(ArtifactError):
        other.set_state(features.get_state())


@pytest.mark.parametrize("n_features", [1, 2**22 + 1, 2.5])
def test_the_number_of_features_is_limited(n_features: float) -> None:
    with pytest.raises(ValidationError):
        TextFeaturesParameters.model_validate({"kind": "text", "hashing": {"n_features": n_features}})


def test_explanations_state_the_words_of_the_document() -> None:
    features, _ = fitted(weighting="binary", analyzer={"stemmer": "porter"})
    name = features.names_[features.transform(["roses"]).indices[0]]
    assert features.sources("Two Roses and a whale", [name])[name].words == ["Roses"]
