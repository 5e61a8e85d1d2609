"""Trials on precomputed features give the same results as separate pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from models.base import LearnerParameters, State
from models.catalog import DECISION_PARAMETERS, FEATURES_PARAMETERS, LEARNER_PARAMETERS, create_learner
from models.data.examples import Examples, ExampleSource, FeatureRows
from models.decisions import DecisionRule
from models.errors import StopTraining, UnsuitableDataError
from models.pipeline import Pipeline, TrainingSet
from models.trials import Measured, PrecomputedFeatures, TrialResult, TrialStep, run_trial

TEXT = {"kind": "text", "weighting": "tfidf", "scaling": "unit"}
LOCAL = {
    "kind": "text",
    "weighting": "binary",
    "selection": {"kind": "information_gain", "policy": "local", "per_label": 6},
}
MEASURES = ["f1_micro", "one_error", "hamming_loss"]


class Unreadable(Examples):
    """Examples whose documents must not be read."""

    def batches(self) -> Any:
        raise AssertionError("a document was read")


def texts(n: int, seed: int) -> Examples:
    rng = np.random.default_rng(seed)
    documents, labels = [], []
    for _ in range(n):
        topics = sorted({int(t) for t in rng.integers(0, 3, 2)})
        words = [f"t{topics[k % len(topics)]}w{rng.integers(6)}" for k in range(6)]
        documents.append(" ".join([*words, f"n{rng.integers(20)}"]))
        labels.append(tuple(f"topic{t}" for t in topics))
    return Examples("text", documents, labels)


def numbers(values: list[list[float]], labels: list[tuple[str, ...]]) -> Examples:
    return Examples("features", FeatureRows(["a", "b"], csr_array(np.array(values))), labels)


def run(
    shared: PrecomputedFeatures,
    learner: LearnerParameters,
    decision: DecisionRule | None,
    training: ExampleSource,
    test: ExampleSource,
    *,
    seed: int = 0,
    **options: Any,
) -> TrialResult:
    pipeline = Pipeline(shared.features(), create_learner(learner, seed=seed), decision, seed=seed)
    return run_trial(pipeline, shared, TrainingSet(training), test, **options)


def saved(shared: PrecomputedFeatures, path: Path) -> PrecomputedFeatures:
    shared.save(path)
    return PrecomputedFeatures.load(path)


@pytest.mark.parametrize(
    ("features", "learner", "decision"),
    [
        (TEXT, {"algorithm": "svm"}, {"kind": "tuned_threshold"}),
        (TEXT, {"algorithm": "mmp", "epochs": 2}, {"kind": "top_k", "k": 2}),
        (LOCAL, {"algorithm": "mp_boost", "rounds": 8}, None),
    ],
)
def test_precomputed_features_give_the_same_model_as_a_pipeline(
    features: Any, learner: Any, decision: Any, tmp_path: Path
) -> None:
    nothing = Examples("text", ["unseen", ""], [("topic0",), ()])
    training, test = texts(60, 0), Examples.concatenate([texts(30, 1), nothing])
    training = Examples.concatenate([training, nothing])
    parameters = FEATURES_PARAMETERS.validate_python(features)
    learner_parameters = LEARNER_PARAMETERS.validate_python(learner)
    how = None if decision is None else DECISION_PARAMETERS.validate_python(decision)
    shared = saved(PrecomputedFeatures.fit(parameters, TrainingSet(training), test), tmp_path / "features")
    unread: list[ExampleSource] = [
        Unreadable(part.kind, part.documents, part.labels) for part in (training, test)
    ]
    trial = run(shared, learner_parameters, how, *unread, seed=3, measured=Measured(MEASURES))
    alone = Pipeline.from_parameters(parameters, learner_parameters, how, seed=3).fit(training)
    assert trial.train.measures == alone.evaluate(training).measures
    assert trial.test.measures == alone.evaluate(test).measures
    state = trial.pipeline.get_state()  # with thresholds and probabilities, which held-out scores give
    for name, array in alone.get_state().items():
        assert np.array_equal(state[name], array), name
    assert trial.pipeline.summary_ == alone.summary_
    assert trial.pipeline.decision_report_ == alone.decision_report_
    for name in ("hamming_loss", "one_error"):
        assert np.nanmean(trial.examples[name]) == pytest.approx(trial.test.measures[name])


def test_numeric_features_can_be_precomputed(tmp_path: Path) -> None:
    values = [[1.0, 0.0], [0.0, 2.0], [3.0, 1.0], [0.0, 0.0]]
    part = numbers(values, [("a",), ("b",), ("a", "b"), ("a",)])
    other = FeatureRows(["a", "c"], csr_array(np.eye(2)))
    test = Examples("features", other, [("a",), ("a",)])
    parameters = FEATURES_PARAMETERS.validate_python({"kind": "numeric", "interactions": 2})
    shared = saved(PrecomputedFeatures.fit(parameters, TrainingSet(part), test), tmp_path / "features")
    learner = LEARNER_PARAMETERS.validate_python({"algorithm": "binary_relevance_perceptron"})
    decision = DECISION_PARAMETERS.validate_python({"kind": "at_least_one"})
    trial = run(shared, learner, decision, part, test)
    alone = Pipeline.from_parameters(parameters, learner, decision).fit(part)
    assert np.array_equal(trial.pipeline.scores(part), alone.scores(part))
    assert trial.train.measures == alone.evaluate(part).measures
    assert trial.test.measures == alone.evaluate(test).measures


@pytest.mark.parametrize(("algorithm", "own"), [("mp_boost", "sign"), ("mmp", "tuned_threshold")])
def test_the_curve_of_an_automatic_decision_is_that_of_the_learners_own(algorithm: str, own: str) -> None:
    training, test = texts(30, 0), texts(10, 1)
    shared = PrecomputedFeatures.fit(FEATURES_PARAMETERS.validate_python(TEXT), TrainingSet(training), test)
    more = {"rounds": 3} if algorithm == "mp_boost" else {}
    learner = LEARNER_PARAMETERS.validate_python({"algorithm": algorithm, **more})
    curves: list[list[dict[str, float]]] = []
    for kind in ("auto", own):
        curve: list[dict[str, float]] = []

        def monitor(step: TrialStep, /, curve: list[dict[str, float]] = curve) -> None:
            curve.append(step.curve)

        decision = DECISION_PARAMETERS.validate_python({"kind": kind})
        run(shared, learner, decision, training, test, measured=Measured(MEASURES), monitor=monitor)
        curves.append([point for point in curve if point])
    assert curves[0] == curves[1] != []
    assert ("test.f1_micro" in curves[0][0]) == (own == "sign")


def test_the_curve_ends_with_the_training() -> None:
    training, test = texts(60, 0), texts(30, 1)
    shared = PrecomputedFeatures.fit(FEATURES_PARAMETERS.validate_python(TEXT), TrainingSet(training), test)
    learner = LEARNER_PARAMETERS.validate_python({"algorithm": "mp_boost", "rounds": 30})
    sign = DECISION_PARAMETERS.validate_python({"kind": "sign"})
    coverings = {"one": {"kind": "zero_one"}, "two": {"kind": "two_sets"}}
    curve: dict[int, dict[str, float]] = {}

    def monitor(step: TrialStep, /) -> None:
        if step.curve:
            curve[step.progress.completed] = step.curve

    measures = (*MEASURES, "covering_error.one", "covering_error.two", "covering_loss.two")
    measured = Measured(measures, coverings)
    trial = run(shared, learner, sign, training, test, measured=measured, monitor=monitor)
    last = max(curve)
    assert last == trial.pipeline.summary_.facts["rounds"]
    assert list(curve)[:10] == list(range(1, 11))
    assert len(curve) < last or last <= 11
    for name in measures:
        assert curve[last][f"train.{name}"] == pytest.approx(trial.train.measures[name])
        assert curve[last][f"test.{name}"] == pytest.approx(trial.test.measures[name])


def test_with_tuned_thresholds_the_curve_only_has_measures_of_the_scores() -> None:
    training, test = texts(40, 0), texts(20, 1)
    shared = PrecomputedFeatures.fit(FEATURES_PARAMETERS.validate_python(TEXT), TrainingSet(training), test)
    learner = LEARNER_PARAMETERS.validate_python({"algorithm": "mp_boost", "rounds": 3})
    tuned = DECISION_PARAMETERS.validate_python({"kind": "tuned_threshold"})
    names: set[str] = set()

    def monitor(step: TrialStep, /) -> None:
        names.update(step.curve)

    coverings = {"one": {"kind": "zero_one"}}
    measures = (*MEASURES, "covering_error.one", "covering_loss.one")
    measured = Measured(measures, coverings)
    run(shared, learner, tuned, training, test, measured=measured, monitor=monitor)
    assert names == {
        f"{part}.{name}" for part in ("train", "test") for name in ("one_error", "covering_loss.one")
    }


def test_coverings_are_measures_of_every_learner() -> None:
    training, test = texts(40, 0), texts(20, 1)
    shared = PrecomputedFeatures.fit(FEATURES_PARAMETERS.validate_python(TEXT), TrainingSet(training), test)
    learner = LEARNER_PARAMETERS.validate_python({"algorithm": "svm"})
    coverings = {"one": {"kind": "zero_one"}, "each": {"kind": "hamming"}}
    measures = run(
        shared, learner, None, training, test, measured=Measured(coverings=coverings)
    ).test.measures
    assert measures["covering_error.one"] == measures["subset_zero_one"]
    assert measures["covering_error.each"] == pytest.approx(3 * measures["hamming_loss"])
    assert measures["covering_loss.one"] >= np.log(2) * measures["covering_error.one"]


def test_unsuitable_data_is_rejected() -> None:
    part = numbers([[1.0, -2.0], [0.0, 1.0]], [("a",), ("b",)])
    shared = PrecomputedFeatures.fit(
        FEATURES_PARAMETERS.validate_python({"kind": "numeric"}), TrainingSet(part), part
    )
    learner = LEARNER_PARAMETERS.validate_python({"algorithm": "naive_bayes"})
    with pytest.raises(UnsuitableDataError, match="negative"):
        run(shared, learner, None, part, part)


def test_a_monitor_can_end_a_trial() -> None:
    part = texts(30, 0)
    shared = PrecomputedFeatures.fit(FEATURES_PARAMETERS.validate_python(TEXT), TrainingSet(part), part)
    learner = LEARNER_PARAMETERS.validate_python({"algorithm": "mp_boost", "rounds": 30})

    def monitor(step: TrialStep, /) -> None:
        if step.progress.completed == 2:
            raise StopTraining

    with pytest.raises(StopTraining):
        run(shared, learner, None, part, part, monitor=monitor)


@pytest.mark.parametrize(
    ("learner", "decision", "phase", "stop"),
    [
        ({"algorithm": "mp_boost", "rounds": 40}, {"kind": "sign"}, "training", 17),
        ({"algorithm": "mp_boost", "rounds": 10}, {"kind": "tuned_threshold"}, "thresholds", 15),
        ({"algorithm": "mlpp", "epochs": 3}, {"kind": "tuned_threshold"}, "training", 60),
    ],
)
def test_a_resumed_trial_gives_an_identical_model_and_curve(
    learner: Any, decision: Any, phase: str, stop: int
) -> None:
    training, test = texts(60, 0), texts(30, 1)
    shared = PrecomputedFeatures.fit(FEATURES_PARAMETERS.validate_python(TEXT), TrainingSet(training), test)
    left: dict[str, State] = {}

    def attempt(
        curve: dict[int, dict[str, float]], at: int | None = None, resume: State | None = None
    ) -> TrialResult:
        def monitor(step: TrialStep, /) -> None:
            if step.curve:
                curve[step.progress.completed] = step.curve
            if at is not None and step.progress.phase == phase and step.progress.completed >= at:
                left["state"] = step.progress.snapshot()
                raise StopTraining

        return run(
            shared,
            LEARNER_PARAMETERS.validate_python(learner),
            DECISION_PARAMETERS.validate_python(decision),
            training,
            test,
            measured=Measured(["one_error"]),
            monitor=monitor,
            resume=resume,
        )

    whole: dict[int, dict[str, float]] = {}
    broken: dict[int, dict[str, float]] = {}
    expected = attempt(whole)
    with pytest.raises(StopTraining):
        attempt(broken, stop)
    resumed = attempt(broken, resume=left["state"])
    assert broken == whole
    assert resumed.curve_unit == expected.curve_unit is not None
    assert resumed.test.measures == expected.test.measures
    assert np.array_equal(resumed.pipeline.scores(test), expected.pipeline.scores(test))
    assert np.array_equal(resumed.pipeline.thresholds_, expected.pipeline.thresholds_)


def test_a_matrix_of_other_features_is_rejected() -> None:
    training, test = texts(30, 0), texts(20, 1)
    shared = PrecomputedFeatures.fit(FEATURES_PARAMETERS.validate_python(TEXT), TrainingSet(training), test)
    learner = LEARNER_PARAMETERS.validate_python({"algorithm": "svm"})
    with pytest.raises(ValueError, match="does not have the shape"):
        run(shared, learner, None, test, training)
