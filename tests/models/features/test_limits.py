"""Limits of the vocabulary by document frequency and by number of occurrences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from models.errors import UnsuitableDataError
from models.features import TextFeatures, TextFeaturesParameters

TEXTS = ["red rose red", "red sky", "red sea rose", "blue sea", "blue blue blue whale"]
Y = csr_array(np.array([[1], [1], [0], [0], [0]], dtype=np.int8))


def fitted(**options: Any) -> tuple[TextFeatures, csr_array]:
    features = TextFeatures(TextFeaturesParameters.model_validate({"kind": "text", **options}))
    return features, features.fit_transform(TEXTS, Y)


@pytest.mark.parametrize(
    "limits",
    [
        {"min_df": 2},
        {"min_df": 0.4},
        {"max_df": 2},
        {"max_df": 0.4},
        {"min_df": 2, "max_df": 0.5},
        {"max_features": 2},
        {"min_df": 2, "max_df": 2, "max_features": 1},
    ],
)
def test_limits_keep_the_terms_that_scikit_learn_keeps(limits: dict[str, Any]) -> None:
    features, X = fitted(weighting="tf", **limits)
    vectorizer = CountVectorizer(**limits)
    expected = vectorizer.fit_transform(TEXTS)
    assert features.names_ == vectorizer.get_feature_names_out().tolist()
    assert X.toarray().tolist() == expected.toarray().tolist()


def test_a_share_of_the_documents_is_exact_despite_rounding() -> None:
    """0.07 · 100 is 7.000000000000001 as a float."""
    texts = [f"all {'seven' if i < 7 else ''}" for i in range(100)]
    features = TextFeatures(TextFeaturesParameters(kind="text", weighting="tf", min_df=0.07))
    features.fit_transform(texts, csr_array(np.ones((100, 1), dtype=np.int8)))
    assert features.names_ == ["all", "seven"]


def test_among_terms_with_equal_occurrences_those_that_sort_first_stay() -> None:
    features, _ = fitted(weighting="tf", max_features=3)
    assert features.names_ == ["blue", "red", "rose"]  # and sea, which occurs as often as rose


def test_selection_sees_only_the_terms_within_the_limits() -> None:
    by_label = {"kind": "information_gain", "policy": "max", "count": 1}
    alone, _ = fitted(weighting="binary", selection=by_label)
    limited, _ = fitted(weighting="binary", selection=by_label, min_df=3)
    assert alone.names_ == ["blue"]
    assert limited.names_ == ["red"]


def test_terms_beyond_the_limits_still_count_for_the_length_of_a_document() -> None:
    features, _ = fitted(weighting="pivoted", min_df=2)
    short, long = features.transform(["red", "red lily daisy"]).toarray().tolist()
    red = features.names_.index("red")
    assert short[red] > long[red]


@pytest.mark.parametrize("scaling", ["none", "unit"])
def test_smooth_and_sublinear_weights_are_those_of_scikit_learn(scaling: str) -> None:
    _, X = fitted(weighting="tfidf", smooth_idf=True, sublinear_tf=True, scaling=scaling)
    vectorizer = TfidfVectorizer(sublinear_tf=True, norm="l2" if scaling == "unit" else None)
    np.testing.assert_allclose(X.toarray(), vectorizer.fit_transform(TEXTS).toarray(), rtol=1e-12)


def test_a_term_of_all_documents_has_a_weight_with_smooth_idf() -> None:
    texts = ["red rose", "red sky"]
    for smooth_idf, weight in ((False, 0.0), (True, 1.0)):
        features = TextFeatures(TextFeaturesParameters(kind="text", smooth_idf=smooth_idf))
        X = features.fit_transform(texts, csr_array(np.eye(2, dtype=np.int8)))
        assert X.toarray()[0, features.names_.index("red")] == weight


@pytest.mark.parametrize(
    "options",
    [
        {"weighting": "tfidf", "sublinear_tf": True, "smooth_idf": True, "scaling": "unit"},
        {"weighting": "tf", "sublinear_tf": True},
        {"weighting": "pivoted", "smooth_idf": True, "scaling": "unit", "min_df": 2, "max_df": 0.9},
        {"weighting": "tfidf", "max_features": 3, "analyzer": {"ngrams": [1, 2]}},
    ],
)
def test_one_document_gets_the_same_bits_as_in_a_batch(options: dict[str, Any]) -> None:
    features, _ = fitted(**options)
    texts = [*TEXTS, "red red red rose lily", ""]
    X = features.transform(texts)
    loaded = TextFeatures(features.parameters).set_state(features.get_state())
    for i, text in enumerate(texts):
        vector = loaded.vector(text)
        assert vector is not None
        assert vector.to_matrix(X.shape[1]).toarray().tolist() == X[[i]].toarray().tolist()


def test_a_vocabulary_without_terms_within_the_limits_is_refused() -> None:
    with pytest.raises(UnsuitableDataError, match="min_df"):
        fitted(min_df=5)


@pytest.mark.parametrize(
    "options",
    [
        {"min_df": 0},
        {"min_df": 1.0},
        {"max_df": 1.0},
        {"max_df": 0.0},
        {"min_df": 3, "max_df": 2},
        {"min_df": 0.5, "max_df": 0.4},
        {"max_features": 0},
        {"weighting": "binary", "sublinear_tf": True},
        {"weighting": "pivoted", "sublinear_tf": True},
        {"weighting": "tf", "smooth_idf": True},
    ],
)
def test_limits_and_options_without_meaning_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TextFeaturesParameters.model_validate({"kind": "text", **options})
