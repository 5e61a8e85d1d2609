"""One trial: train one learner on one split of a data set, and evaluate it on both parts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from models.arrays import Floats
from models.base import State
from models.data.examples import ExampleSource
from models.labels.indicator_matrix import indicator_matrix, unknown_matrix
from models.measures.covering import COVERING_MEASURES, covering_measure
from models.measures.evaluation import Evaluation
from models.measures.examples import example_measures
from models.pipeline import Pipeline, Progress, ScoredDocuments, TrainingSet
from models.trials.curve import Curve, Measured
from models.trials.errors import ErrorLimits, TrialErrors, find_errors
from models.trials.precomputed_features import PrecomputedFeatures


@dataclass(frozen=True)
class TrialResult:
    """The result of a trial.

    Attributes:
        pipeline: the pipeline, fitted on the training part.
        train: the evaluation of the training part.
        test: the evaluation of the test part.
        examples: measures of each test example by name (see ``measures.examples``).
        errors: the errors on the test part; None if they were not requested.
        curve_unit: what a step of the learning curve is, such as ``rounds``; None without a curve.
        fit_seconds: duration of the fit, including thresholds, without features and measures.
        score_seconds: duration of scoring the test part.
    """

    pipeline: Pipeline
    train: Evaluation
    test: Evaluation
    examples: dict[str, Floats]
    errors: TrialErrors | None
    curve_unit: str | None
    fit_seconds: float
    score_seconds: float


@dataclass(frozen=True)
class TrialStep:
    """A completed step of a trial.

    Attributes:
        progress: the progress of the training. ``run_trial`` resumes from its ``snapshot``.
        curve: measures of both parts as ``train.NAME`` and ``test.NAME``, as if the training stopped at this
            step; empty if the step is not a point of the learning curve.
        fit_seconds: duration of the fit so far, without the monitor.
    """

    progress: Progress
    curve: dict[str, float]
    fit_seconds: float


class TrialMonitor(Protocol):
    """A function that is called after every step. It can raise an exception to end the trial."""

    def __call__(self, step: TrialStep, /) -> None:
        """Process a completed step."""
        ...


def run_trial(
    pipeline: Pipeline,
    features: PrecomputedFeatures,
    training: TrainingSet,
    test: ExampleSource,
    *,
    measured: Measured | None = None,
    monitor: TrialMonitor | None = None,
    resume: State | None = None,
    n_jobs: int = 1,
) -> TrialResult:
    """Fit a pipeline on a training set and evaluate it on both parts.

    Args:
        pipeline: the pipeline to fit, with ``features.features()`` and a learner.
        features: its features, fitted on the training set.
        training: the training set.
        test: the test part.
        measured: what is measured; None for the usual measures without a curve.
        monitor: called after every step.
        resume: a snapshot of an interrupted trial. The result is the same as without interruption.
        n_jobs: number of threads that the learner may use; they never change the result.

    Raises:
        ParameterError: the parameters are invalid, alone or together.
        UnsuitableDataError: the learner cannot learn from this data.
        SnapshotError: the snapshot belongs to another training.
    """
    measured = measured or Measured()
    curve = Curve(pipeline, features, training, test, measured)
    snapshot = dict(resume or {})
    curve.set_state({name: snapshot.pop(name) for name in Curve.STATE if name in snapshot})
    monitor_seconds = 0.0

    def report(progress: Progress, /) -> None:
        nonlocal monitor_seconds
        now = time.perf_counter()
        point = curve.point(progress)
        if monitor is not None:
            pipeline_snapshot = progress.snapshot
            step = replace(progress, snapshot=lambda: {**pipeline_snapshot(), **curve.get_state()})
            monitor(TrialStep(step, point, now - start - monitor_seconds))
        monitor_seconds += time.perf_counter() - now

    start = time.perf_counter()
    pipeline.fit_training(training, features.matrices, monitor=report, resume=snapshot, n_jobs=n_jobs)
    fitted = time.perf_counter()
    of_test = ScoredDocuments(pipeline.learner_.decision_function(features.test), features.test_empty)
    scored = time.perf_counter()
    scores = pipeline.learner_.decision_function(features.matrices.training)
    of_train = ScoredDocuments(scores, features.train_empty)
    train, _, _ = _evaluate(pipeline, training.source, of_train, measured.coverings)
    evaluation, examples, errors = _evaluate(pipeline, test, of_test, measured.coverings, measured.errors)
    return TrialResult(
        pipeline=pipeline,
        train=train,
        test=evaluation,
        examples=examples,
        errors=errors,
        curve_unit=curve.unit,
        fit_seconds=fitted - start - monitor_seconds,
        score_seconds=scored - fitted,
    )


def _evaluate(
    pipeline: Pipeline,
    part: ExampleSource,
    scored: ScoredDocuments,
    coverings: Mapping[str, Any],
    error_limits: ErrorLimits | None = None,
) -> tuple[Evaluation, dict[str, Floats], TrialErrors | None]:
    """Return the measures of one part, those of each of its examples, and its errors."""
    label_sets, unknown_sets = part.label_sets(), part.unknown_sets()
    evaluation = pipeline.evaluate_scores(label_sets, scored, unknown_sets=unknown_sets)
    labels, tree = pipeline.labels_, pipeline.tree_
    Y = indicator_matrix(label_sets, labels, tree)
    unknown = unknown_matrix(unknown_sets, Y, labels, tree)
    predicted, scores = pipeline.decide(scored), scored.scores
    examples = example_measures(Y, predicted, scores, labels, tree=tree, coverings=coverings, unknown=unknown)
    if unknown is None and Y.shape[0]:
        for covering, measure in itertools.product(coverings, COVERING_MEASURES):
            name = covering_measure(measure, covering)
            evaluation.measures[name] = float(examples[name].mean())
    errors = None
    if error_limits is not None:
        errors = find_errors(label_sets, Y, predicted, scores, labels, error_limits, unknown)
    return evaluation, examples, errors
