"""Copies of fitted pipelines: pickles, deep copies, and scikit-learn's tools that make them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.preprocessing import MultiLabelBinarizer

import covey
from models import catalog

TEXTS = ["the invoice is wrong", "my parcel is late", "a late parcel and a wrong invoice"] * 6
SETS = [("billing",), ("shipping",), ("billing", "shipping")] * 6
CLASSES = ["billing", "shipping", "shipping"] * 6
SHORT: dict[str, dict[str, Any]] = {
    "adaboost_mh": {"rounds": 3},
    "mp_boost": {"rounds": 3},
    "adaboost_lc": {"rounds": 3},
    "h_m3": {"passes": 3},
}


def pickled(value: Any) -> Any:
    """Return what another process would read."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - this process has written it


WAYS = pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])


def assert_same_predictions(one: covey.Pipeline, other: covey.Pipeline) -> None:
    for texts in (TEXTS, TEXTS[:1], ["an unknown hello"]):
        assert str(one.predict(texts)) == str(other.predict(texts))
        np.testing.assert_array_equal(one.decision_function(texts), other.decision_function(texts))
        np.testing.assert_array_equal(one.predict_proba(texts), other.predict_proba(texts))
    assert one.predictions(TEXTS[:2], explain=True) == other.predictions(TEXTS[:2], explain=True)


@WAYS
@pytest.mark.parametrize("algorithm", sorted(catalog.ENTRIES))
def test_a_copy_of_a_pipeline_that_has_predicted_predicts_the_same(
    algorithm: str, copied: Callable[[covey.Pipeline], covey.Pipeline]
) -> None:
    learner = catalog.ENTRIES[algorithm].learner(**SHORT.get(algorithm, {}))
    fitted = covey.Pipeline(covey.TextFeatures(), learner, "auto").fit(TEXTS, SETS)
    fitted.predict(TEXTS)
    fitted.rank(TEXTS[:1])
    other = copied(fitted)
    for texts in (TEXTS, TEXTS[:1]):
        assert fitted.predict(texts) == other.predict(texts)
        np.testing.assert_array_equal(fitted.predict_proba(texts), other.predict_proba(texts))


@WAYS
@pytest.mark.parametrize(
    "features",
    [
        {"analyzer": {"ngrams": [1, 2], "character_ngrams": [2, 3], "stemmer": "porter"}},
        {"hashing": {"n_features": 64}},
        {"weighting": "pivoted", "analyzer": {"stop_words": "auto"}},
    ],
)
def test_a_copy_has_the_caches_of_no_thread(
    features: dict[str, Any], copied: Callable[[covey.Pipeline], covey.Pipeline]
) -> None:
    fitted = covey.Pipeline(covey.TextFeatures(**features), covey.SVM()).fit(TEXTS, CLASSES)
    fitted.rank(TEXTS[:1])
    size = len(pickle.dumps(fitted))
    fitted.rank([" ".join(f"word{n}" for n in range(500))])
    assert len(pickle.dumps(fitted)) == size
    assert_same_predictions(fitted, copied(fitted))


def test_a_loaded_pipeline_can_be_copied(tmp_path: Any) -> None:
    covey.save(covey.Pipeline().fit(TEXTS, SETS), tmp_path / "model")
    loaded = covey.load(tmp_path / "model")
    loaded.predict(TEXTS[:1])
    assert_same_predictions(loaded, pickled(loaded))


def test_scikit_learn_fits_pipelines_in_several_processes() -> None:
    Y = MultiLabelBinarizer().fit_transform(SETS)
    pipeline = covey.Pipeline(covey.TextFeatures(), covey.SVM(), "sign").fit(TEXTS, Y)
    pipeline.predict(TEXTS)
    results = cross_validate(pipeline, TEXTS, Y, cv=2, n_jobs=2, return_estimator=True, scoring="f1_micro")
    assert [estimator.predict(TEXTS).shape for estimator in results["estimator"]] == [Y.shape] * 2
    grid = {"learner__C": [0.1, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=2, n_jobs=2, scoring="f1_micro").fit(TEXTS, Y)
    assert pickled(search).best_params_ == search.best_params_
