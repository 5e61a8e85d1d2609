"""Features that are too large are refused, and what trains on large features can be saved and loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from models import catalog
from models.artifact import check_saved, save
from models.artifact import load as load_artifact
from models.base.incremental import IncrementalLearner
from models.base.validation import MAX_MAGNITUDE
from models.catalog import ENTRIES
from models.data.examples import Examples, FeatureRows
from models.errors import ArtifactError, UnsuitableDataError
from models.pipeline import Pipeline

SHORT: dict[str, dict[str, Any]] = {
    "adaboost_mh": {"rounds": 3},
    "mp_boost": {"rounds": 3},
    "adaboost_lc": {"rounds": 3},
    "h_m3": {"passes": 3},
}
every_learner = pytest.mark.parametrize("algorithm", sorted(ENTRIES))


def examples(magnitude: float, n_features: int = 5) -> Examples:
    rng = np.random.default_rng(0)
    X = rng.random((30, n_features))
    X[:, 2] *= magnitude / X[:, 2].max()
    names = ["height", "length", "width", *(f"x{j}" for j in range(3, n_features))]
    labels = [tuple(label for label in "abc" if rng.random() < 0.4) for _ in range(30)]
    return Examples("features", FeatureRows(names, csr_array(X)), labels)


def pipeline(algorithm: str, **parameters: Any) -> Pipeline:
    learner = catalog.LEARNER_PARAMETERS.validate_python(
        {"algorithm": algorithm, **SHORT.get(algorithm, {}), **parameters}
    )
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "numeric"}),
        learner,
        catalog.own_decision(learner),
    )


@every_learner
@pytest.mark.parametrize("magnitude", [2e19, 1e100, 1e155, 1e308])
def test_a_feature_that_is_too_large_is_refused_by_name(algorithm: str, magnitude: float) -> None:
    with pytest.raises(UnsuitableDataError, match=r"the feature 'width' has the value .* scaling max_abs"):
        pipeline(algorithm).fit(examples(magnitude))
    learner = ENTRIES[algorithm].learner()
    if isinstance(learner, IncrementalLearner):
        with pytest.raises(UnsuitableDataError, match="the feature '0' has the value"):
            learner.partial_fit([[magnitude]], [[1]])


@every_learner
@pytest.mark.parametrize("n_features", [5, 60])
def test_what_trains_on_the_largest_features_can_be_loaded(
    algorithm: str, n_features: int, tmp_path: Path
) -> None:
    source = examples(MAX_MAGNITUDE, n_features)
    if algorithm == "h_rls" and n_features > source.n_examples:
        with pytest.raises(UnsuitableDataError, match="use the scaling unit, or a larger ridge"):
            pipeline(algorithm).fit(source)
        return
    fitted = pipeline(algorithm).fit(source)
    save(fitted, tmp_path / "model")
    check_saved(tmp_path / "model", fitted, source)


def test_a_kernel_that_is_not_finite_is_refused() -> None:
    learner = {"kernel": {"kind": "polynomial", "degree": 16}}
    with pytest.raises(UnsuitableDataError, match="the kernel of two training examples is not finite"):
        pipeline("h_m3", **learner).fit(examples(MAX_MAGNITUDE))


def test_a_model_that_cannot_be_loaded_or_has_other_scores_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = examples(1.0)
    fitted, other = pipeline("svm").fit(source), pipeline("svm", C=2.0).fit(source)
    save(fitted, tmp_path / "model")
    check_saved(tmp_path / "model", fitted, source)
    with pytest.raises(UnsuitableDataError, match="scores change"):
        check_saved(tmp_path / "model", other, source)
    fitted.learner_.coef_[0, 0] = np.inf
    save(fitted, tmp_path / "infinite")
    with pytest.raises(ArtifactError):
        load_artifact(tmp_path / "infinite")
    with pytest.raises(UnsuitableDataError, match=r"cannot be loaded: array 'learner\.coef' contains NaN"):
        check_saved(tmp_path / "infinite", fitted, source)
