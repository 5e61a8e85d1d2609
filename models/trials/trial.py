"""One trial: train one learner on one split of a data set, and evaluate it on both parts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from models import catalog
from models.arrays import Floats
from models.base import LearnerParameters, State
from models.data.examples import ExampleSource
from models.decisions import DecisionRule
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels, indicator_matrix, unknown_matrix
from models.measures.covering import COVERING_MEASURES, covering_measure
from models.measures.evaluation import Evaluation
from models.measures.examples import example_measures
from models.pipeline import FeatureMatrices, Pipeline, Progress, ScoredDocuments
from models.trials.curve import Curve
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
        fit_seconds: duration of the fit so far, including earlier attempts.
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
    features: PrecomputedFeatures,
    learner: LearnerParameters,
    decision: DecisionRule | None,
    training: ExampleSource,
    test: ExampleSource,
    *,
    tree: LabelTree | None = None,
    kept_labels: Sequence[str] = (),
    validation: ExampleSource | None = None,
    seed: int = 0,
    measures: Sequence[str] = (),
    coverings: Mapping[str, Any] | None = None,
    every_step_up_to: int = 1,
    error_limits: ErrorLimits | None = None,
    monitor: TrialMonitor | None = None,
    resume: State | None = None,
    earlier_fit_seconds: float = 0.0,
    memory_bytes: int | None = None,
    n_jobs: int = 1,
) -> TrialResult:
    """Train a learner on the training part and evaluate it on both parts.

    Args:
        features: features fitted on the training part.
        learner: parameters of the learner.
        decision: the decision; None selects the learner's default.
        training: the training part.
        test: the test part.
        tree: the label tree.
        kept_labels: as for ``Pipeline.fit``; the same as for the features.
        validation: examples for early stopping and ``tuned_threshold``; None if there are none.
        seed: seed of all random choices.
        measures: names of the measures of the learning curve. If thresholds are tuned after the training, the
            curve only has those among them that depend on the scores alone.
        coverings: coverings by name; each adds the measures ``covering_error.NAME`` and
            ``covering_loss.NAME``. The curve has them if they are among ``measures``.
        every_step_up_to: number of the first steps that are all points of the curve. After them, the distance
            between points grows by a tenth.
        error_limits: how many errors on the test part the result has; None if it has none.
        monitor: called after every step.
        resume: a snapshot of an interrupted trial. The result is the same as without interruption.
        earlier_fit_seconds: duration of the fit before the snapshot.
        memory_bytes: limit of the memory of the training; None if there is none.
        n_jobs: number of threads that the learner may use; they never change the result.

    Raises:
        ParameterError: the parameters are invalid, alone or together.
        UnsuitableDataError: the learner cannot learn from this data.
        MemoryLimitError: the training would need too much memory.
        SnapshotError: the snapshot belongs to another training.
    """
    unfitted = catalog.create_learner(learner, seed=seed)
    pipeline = Pipeline(features.features(), unfitted, decision, seed=seed)
    labels = collect_labels(training.label_sets(), tree, kept=kept_labels)
    curve = Curve(
        unfitted,
        decision,
        features,
        training,
        test,
        labels,
        tree,
        measures,
        coverings or {},
        every_step_up_to=every_step_up_to,
    )
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
            monitor(TrialStep(step, point, earlier_fit_seconds + now - start - monitor_seconds))
        monitor_seconds += time.perf_counter() - now

    start = time.perf_counter()
    pipeline.fit(
        training,
        tree=tree,
        kept_labels=kept_labels,
        validation=validation,
        monitor=report,
        matrices=FeatureMatrices(features.raw, features.train, features.validation),
        resume=snapshot or None,
        memory_bytes=memory_bytes,
        n_jobs=n_jobs,
    )
    fitted = time.perf_counter()
    of_test = ScoredDocuments(pipeline.learner_.decision_function(features.test), features.test_empty)
    scored = time.perf_counter()
    of_train = ScoredDocuments(pipeline.learner_.decision_function(features.train), features.train_empty)
    train, _, _ = _evaluate(pipeline, training, of_train, coverings or {})
    evaluation, examples, errors = _evaluate(pipeline, test, of_test, coverings or {}, error_limits)
    return TrialResult(
        pipeline=pipeline,
        train=train,
        test=evaluation,
        examples=examples,
        errors=errors,
        curve_unit=curve.unit,
        fit_seconds=earlier_fit_seconds + fitted - start - monitor_seconds,
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
