"""Learners that compare examples by inner products warn of features whose scales differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from models import catalog
from models.base.scaling import scaling_warning
from models.base.validation import as_feature_matrix
from models.data.examples import Examples, FeatureRows
from models.pipeline import Pipeline

LINEAR = ["svm", "h_svm", "h_rls", "h_m3", "mmp", "mlpp", "binary_relevance_perceptron"]
OTHERS = sorted(set(catalog.ENTRIES) - set(LINEAR))


def fit(algorithm: str, examples: Examples, features: dict[str, Any], **parameters: Any) -> list[str]:
    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python(features),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": algorithm, **parameters}),
    )
    warnings = pipeline.fit(examples).summary_.warnings
    return [warning for warning in warnings if "scaling of the features" in warning]


def texts() -> Examples:
    """Short and long documents about invoices and parcels."""
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(50)]
    labels = [("invoice",) if i % 2 else ("parcel",) for i in range(40)]
    documents = [f"{label[0]} {' '.join(rng.choice(words, 2 + 5 * i))}" for i, label in enumerate(labels)]
    return Examples("text", documents, labels)


def numbers(scale: float) -> Examples:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5)) * [1, 1, 1, 1, scale]
    labels = [("a",) if x > 0 else ("b",) for x in X[:, 0]]
    return Examples("features", FeatureRows(list("abcde"), csr_array(X)), labels)


@pytest.mark.parametrize("algorithm", LINEAR)
def test_linear_learners_warn_of_documents_of_different_lengths(algorithm: str) -> None:
    (warning,) = fit(algorithm, texts(), {"kind": "text", "weighting": "tfidf"})
    assert warning.startswith("the feature vectors of most documents have lengths from ")
    assert f"{algorithm} learns better and faster" in warning
    assert warning.endswith("set the scaling of the features to unit")


@pytest.mark.parametrize("algorithm", LINEAR)
@pytest.mark.parametrize("weighting", ["binary", "tf", "tfidf", "pivoted"])
def test_unit_length_gets_no_warning(algorithm: str, weighting: str) -> None:
    assert fit(algorithm, texts(), {"kind": "text", "weighting": weighting, "scaling": "unit"}) == []


@pytest.mark.parametrize("algorithm", OTHERS)
def test_other_learners_do_not_warn(algorithm: str) -> None:
    parameters = {} if algorithm == "naive_bayes" else {"rounds": 2}
    assert fit(algorithm, texts(), {"kind": "text", "weighting": "tfidf"}, **parameters) == []


@pytest.mark.parametrize("algorithm", ["svm", "mlpp"])
@pytest.mark.parametrize("scale", [1e5, 1e-5])
def test_linear_learners_warn_of_numeric_features_of_different_scales(algorithm: str, scale: float) -> None:
    (warning,) = fit(algorithm, numbers(scale), {"kind": "numeric"})
    assert f"or more; {algorithm} hardly uses" in warning
    assert warning.endswith("set the scaling of the features to standard or max_abs")
    for scaling in ("standard", "max_abs"):
        assert fit(algorithm, numbers(scale), {"kind": "numeric", "scaling": scaling}) == []


def test_similar_scales_and_few_examples_get_no_warning() -> None:
    assert fit("svm", numbers(30), {"kind": "numeric"}) == []
    few = as_feature_matrix(np.array([[1.0, 1e9]] * 9))
    assert scaling_warning(few, "svm", numeric=True) is None
    assert scaling_warning(few, "svm", numeric=False) is None


def test_long_vectors_of_equal_length_get_a_warning() -> None:
    equal = as_feature_matrix(np.full((20, 4), 20.0))
    assert scaling_warning(equal, "svm", numeric=False) is not None
    assert scaling_warning(as_feature_matrix(np.full((20, 4), 2.0)), "svm", numeric=False) is None


def test_empty_documents_do_not_matter() -> None:
    rows = np.vstack([np.zeros((5, 4)), np.full((20, 4), 0.5), np.zeros((3, 4))])
    assert scaling_warning(as_feature_matrix(rows), "svm", numeric=False) is None
