"""What ``load`` gives back of what ``save`` got: the form of labels and of columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.preprocessing import MultiLabelBinarizer

import covey
from covey import errors
from models.artifact import read_manifest

TEXTS = ["the invoice is wrong", "my parcel is late", "a late parcel and a wrong invoice"] * 6
SETS = [("billing",), ("shipping",), ("billing", "shipping")] * 6
MATRIX = MultiLabelBinarizer().fit_transform(SETS)


class Table:
    """A table with named columns, such as a data frame."""

    def __init__(self, columns: list[Any], values: Any) -> None:
        self.columns, self.values, self.shape, self.ndim = columns, values, values.shape, 2

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values, dtype=dtype)


LABELS = {
    "sets": SETS,
    "matrix": MATRIX,
    "sparse": csr_array(MATRIX),
    "columns": Table(["shipping", "billing"], MATRIX[:, ::-1]),
    "many columns": np.hstack([MATRIX, np.zeros((18, 10), dtype=int)])[:, ::-1],
    "texts": ["billing", "shipping", "both"] * 6,
    "objects": np.array(["billing", "shipping", "both"] * 6, dtype=object),
    "numbers": [3, 20, 100] * 6,
    "small numbers": np.array([3, 20, 100] * 6, dtype=np.int8),
    "floats": np.array([0.0, 1.0, 2.0] * 6, dtype=np.float32),
    "booleans": [True, False, False] * 6,
}


def saved(pipeline: covey.Pipeline, folder: Path) -> covey.Pipeline:
    covey.save(pipeline, folder / "model")
    return covey.load(folder / "model")


@pytest.mark.parametrize("name", LABELS)
def test_a_loaded_pipeline_predicts_in_the_form_of_its_training(name: str, tmp_path: Path) -> None:
    y = LABELS[name]
    fitted = covey.Pipeline(covey.TextFeatures(), covey.SVM()).fit(TEXTS, y)
    loaded = saved(fitted, tmp_path)
    predicted, expected = loaded.predict(TEXTS), fitted.predict(TEXTS)
    assert type(predicted) is type(expected)
    assert getattr(predicted, "dtype", None) == getattr(expected, "dtype", None)
    np.testing.assert_array_equal(np.asarray(predicted, object), np.asarray(expected, object))
    np.testing.assert_array_equal(loaded.classes_, fitted.classes_)
    assert loaded.classes_.dtype == fitted.classes_.dtype
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    np.testing.assert_array_equal(loaded.decision_function(TEXTS), fitted.decision_function(TEXTS))
    assert loaded.score(TEXTS, y) == fitted.score(TEXTS, y)
    assert loaded.get_feature_names_out().tolist() == fitted.get_feature_names_out().tolist()
    again = (tmp_path / "model").read_bytes()
    covey.save(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == again


def test_a_model_of_a_job_predicts_label_sets(tmp_path: Path) -> None:
    fitted = covey.Pipeline().fit(covey.Examples("text", TEXTS, SETS))
    assert saved(fitted, tmp_path).predict(TEXTS) == fitted.predict(TEXTS)
    assert read_manifest(tmp_path / "model").target.form == "sets"


def test_classes_that_no_file_can_contain_are_refused(tmp_path: Path) -> None:
    days = np.array(["2026-01-01", "2026-01-02", "2026-01-02"] * 6, dtype="datetime64[D]")
    with pytest.raises(errors.ParameterError, match="cannot be saved"):
        saved(covey.Pipeline(covey.TextFeatures(), covey.SVM()).fit(TEXTS, days), tmp_path)


def test_a_loaded_pipeline_of_a_matrix_matches_columns_by_position(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 11))
    fitted = covey.Pipeline(covey.NumericFeatures(), covey.SVM()).fit(X, X[:, 0] > 0)
    loaded = saved(fitted, tmp_path)
    assert loaded.n_features_in_ == fitted.n_features_in_ == 11
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    with pytest.raises(ValueError, match="X has 3 features, but Pipeline is expecting 11"):
        loaded.predict(X[:, :3])
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        named = loaded.predict(Table([f"column{j}" for j in range(11)], X))
    np.testing.assert_array_equal(named, loaded.predict(X))


@pytest.mark.parametrize(
    ("learner", "decision"),
    [
        *((covey.SVM(), decision) for decision in (None, "auto", "single_label")),
        # Its scores have no threshold, which `auto` could tune.
        *((covey.NaiveBayes(label_mode="single_label"), decision) for decision in (None, "single_label")),
    ],
)
def test_one_class_per_document_has_probabilities(learner: Any, decision: str | None, tmp_path: Path) -> None:
    classes = ["billing", "shipping", "both"] * 6
    fitted = covey.Pipeline(covey.TextFeatures(), learner, decision).fit(TEXTS, classes)
    for pipeline in (fitted, saved(fitted, tmp_path)):
        p = pipeline.predict_proba(TEXTS)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert pipeline.classes_[p.argmax(axis=1)].tolist() == pipeline.predict(TEXTS).tolist()
    more = covey.Pipeline(covey.TextFeatures(), learner, "single_label").fit(TEXTS, SETS)
    assert not hasattr(more, "predict_proba")  # nothing is held out for label sets
