"""Validation examples take the place of training examples that are held out for decisions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models import catalog
from models.data.examples import Examples
from models.decisions import HeldOut
from models.decisions.tune import tuned_thresholds
from models.errors import SnapshotError
from models.labels.indicator_matrix import indicator_matrix
from models.pipeline import Pipeline, Progress, TrainingSet
from models.trials import PrecomputedFeatures, run_trial

STOPPING = {"algorithm": "mp_boost", "rounds": 30, "early_stopping": {"patience": 2}}


def texts(seed: int, n: int = 60) -> Examples:
    rng = np.random.default_rng(seed)
    words = rng.random((n, 6)) < 0.4
    labels = [tuple(name for j, name in enumerate("abc") if row[j] != (rng.random() < 0.15)) for row in words]
    return Examples("text", [" ".join(f"word{j}" for j in np.flatnonzero(row)) for row in words], labels)


def pipeline(learner: dict[str, Any], decision: str = "sign") -> Pipeline:
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text", "weighting": "binary"}),
        catalog.LEARNER_PARAMETERS.validate_python(learner),
        catalog.DECISION_PARAMETERS.validate_python({"kind": decision}),
    )


TRAINING, VALIDATION = texts(0), texts(1)


@pytest.mark.parametrize("algorithm", ["svm", "mmp", "mlpp"])
def test_thresholds_are_tuned_on_the_validation_examples(algorithm: str) -> None:
    steps: list[Progress] = []
    model = pipeline({"algorithm": algorithm}, "tuned_threshold")
    model.fit_training(TrainingSet(TRAINING, VALIDATION), monitor=steps.append)
    known = VALIDATION.where(np.diff(model.feature_matrix(VALIDATION.documents).indptr) > 0)
    scores = model.scores(known)
    zero = 0.0 if algorithm == "svm" else None
    Y = indicator_matrix(known.labels, model.labels_)
    examples = HeldOut(scores, Y, None, np.arange(len(scores)) % 3, np.ones(3, dtype=bool))
    expected = tuned_thresholds(examples, default=zero, fbr=model.decision_.fbr)  # type: ignore[union-attr]
    np.testing.assert_array_equal(model.thresholds_, expected)
    assert "thresholds" not in {step.phase for step in steps}
    assert model.summary_.facts["validation_examples"] == 60


def test_a_label_with_too_few_validation_examples_keeps_the_default_threshold() -> None:
    rare = replace(VALIDATION, labels=[("a",) if i < 2 else ("b",) for i in range(60)])
    model = pipeline({"algorithm": "svm"}, "tuned_threshold").fit(TRAINING, validation=rare)
    assert model.thresholds_[0] == model.thresholds_[2] == 0
    assert model.thresholds_[1] != 0


def test_early_stopping_measures_the_validation_examples_and_holds_nothing_out() -> None:
    stopped = pipeline(STOPPING).fit(TRAINING, validation=VALIDATION)
    rounds = stopped.summary_.facts["rounds"]
    assert rounds < 30
    assert rounds == pipeline(STOPPING).fit(TRAINING, validation=VALIDATION).summary_.facts["rounds"]
    # The first round is that of a training on all training examples.
    complete = pipeline({"algorithm": "mp_boost", "rounds": 1}).fit(TRAINING)
    one_round = pipeline({**STOPPING, "rounds": 1}).fit(TRAINING, validation=VALIDATION)
    np.testing.assert_array_equal(one_round.scores(TRAINING), complete.scores(TRAINING))


def test_a_learner_that_needs_no_held_out_examples_ignores_the_validation_examples() -> None:
    one, other = pipeline({"algorithm": "svm"}).fit(TRAINING), pipeline({"algorithm": "svm"})
    other.fit(TRAINING, validation=VALIDATION)
    np.testing.assert_array_equal(one.scores(VALIDATION), other.scores(VALIDATION))
    assert "validation_examples" not in other.summary_.facts


def test_features_are_fitted_on_the_training_examples_only() -> None:
    validation = replace(VALIDATION, documents=["unseen"] * 60)
    model = pipeline({"algorithm": "svm"}, "tuned_threshold").fit(TRAINING, validation=validation)
    assert "unseen" not in model.features_.names_


def test_a_snapshot_belongs_to_the_validation_examples_of_its_training() -> None:
    steps: list[Progress] = []
    pipeline(STOPPING).fit_training(TrainingSet(TRAINING, VALIDATION), monitor=steps.append)
    snapshot = next(step for step in steps if step.phase == "training").snapshot()
    pipeline(STOPPING).fit_training(TrainingSet(TRAINING, VALIDATION), resume=snapshot)
    with pytest.raises(SnapshotError):
        pipeline(STOPPING).fit_training(TrainingSet(TRAINING, texts(2)), resume=snapshot)


def test_a_trial_uses_the_validation_examples(tmp_path: Any) -> None:
    model = pipeline(STOPPING, "tuned_threshold").fit(TRAINING, validation=VALIDATION)
    test = texts(3)
    training = TrainingSet(TRAINING, VALIDATION)
    PrecomputedFeatures.fit(model.features_.parameters, training, test).save(tmp_path / "features")
    shared = PrecomputedFeatures.load(tmp_path / "features")
    learner = catalog.create_learner(catalog.LEARNER_PARAMETERS.validate_python(STOPPING))
    result = run_trial(Pipeline(shared.features(), learner, model.decision_), shared, training, test)
    np.testing.assert_array_equal(result.pipeline.scores(test), model.scores(test))
    np.testing.assert_array_equal(result.pipeline.thresholds_, model.thresholds_)
