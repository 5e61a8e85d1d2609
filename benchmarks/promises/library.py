"""Every call of Covey that a promise is measured with."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from app.registry.schemas import IfBetter
from app.routing.policies import effective_thresholds
from app.routing.schemas import RouterPut
from benchmarks.corpora import Json
from benchmarks.promises.corpora import Parts
from benchmarks.recipes import N_BINS, ROUNDS
from models import catalog
from models.arrays import Bools, Floats, Ints, Labels
from models.base import Monitor, Problem, State
from models.base.weighted import WeightedLearner
from models.baselines.svm import SVM
from models.boosting.mp_boost import MPBoost
from models.data.examples import Examples
from models.decisions import LabelSetRule
from models.decisions.apply import NEVER
from models.labels.indicator_matrix import indicator_matrix
from models.measures.attempts import level_of_attempt
from models.measures.directions import is_better
from models.measures.paired import compare
from models.measures.paired_measures import Outcomes, paired_sums
from models.pipeline import Pipeline, ScoredDocuments
from models.pipeline.partial_fit import partial_fit as continue_training


class _Remembered(WeightedLearner):
    """A learner that is trained once for each set of examples, also by other decisions."""

    trained: ClassVar[dict[tuple[bytes, ...], dict[str, Any]]] = {}

    def fit_problem(
        self, problem: Problem, *, monitor: Monitor | None = None, resume: State | None = None
    ) -> Self:
        """Take over the training on the same examples, or learn from them."""
        X, Y = problem.X, problem.Y
        arrays = [X.indptr, X.indices, X.data, Y.indptr, Y.indices]
        if problem.weights is not None:
            arrays.append(problem.weights)
        key = (repr(self).encode(), *(array.tobytes() for array in arrays))
        if key not in self.trained:
            super().fit_problem(problem, monitor=monitor, resume=resume)
            self.trained[key] = {**self.__dict__}
        self.__dict__.update(self.trained[key])
        return self


class _SVM(_Remembered, SVM):
    """``svm``, trained once."""


class _MPBoost(_Remembered, MPBoost):
    """``mp_boost``, trained once."""


INCREMENTAL = ("naive_bayes", "binary_relevance_perceptron", "mmp", "mlpp")
"""The learners with partial fits."""

LEARNERS: dict[str, tuple[type[_Remembered], Json]] = {
    "svm": (_SVM, {}),
    "mp_boost": (_MPBoost, {"rounds": ROUNDS}),
}
"""The learners of the benchmark, with parameters that are not the defaults."""


def forget() -> None:
    """Forget all trained learners."""
    _Remembered.trained.clear()


@dataclass(frozen=True)
class Outcome:
    """What is predicted for documents, and what is true.

    Attributes:
        relevant: (n, k) whether each document has each label.
        predicted: (n, k) whether each label is predicted.
        p: (n, k) the probability of each label.
        of_sets: (n,) the probability of each label set.
    """

    relevant: Bools
    predicted: Bools
    p: Floats
    of_sets: Floats

    @property
    def right(self) -> Bools:
        """(n,) whether each label set is exactly right."""
        right: Bools = (self.predicted == self.relevant).all(axis=1)
        return right

    def where(self, keep: Bools) -> Outcome:
        """Return the outcome of some documents."""
        return Outcome(self.relevant[keep], self.predicted[keep], self.p[keep], self.of_sets[keep])


@dataclass(frozen=True)
class Trained:
    """A pipeline with the default features and the decision ``auto``, and its scores of test documents.

    Attributes:
        pipeline: the pipeline.
        training: its examples.
        test: the test documents.
        scored: their scores.
        seed: seed of the training.
    """

    pipeline: Pipeline
    training: Examples
    test: Examples
    scored: ScoredDocuments
    seed: int

    @classmethod
    def of(cls, training: Examples, test: Examples, learner: str, *, seed: int) -> Self:
        """Train with the defaults."""
        class_, parameters = LEARNERS[learner]
        if training.kind == "features" and learner == "mp_boost":
            parameters = {**parameters, "bins": N_BINS}
        pipeline = Pipeline(learner=class_(**parameters, random_state=seed), seed=seed)
        _fit(pipeline, training)
        return cls(pipeline, training, test, pipeline.scored(test), seed)

    def relevant(self) -> Bools:
        """Return the label sets of the test documents, without labels that have no training example."""
        relevant: Bools = indicator_matrix(self.test.labels, self.pipeline.labels_).toarray() != 0
        return relevant

    def known(self) -> Bools:
        """Return for each test document whether all of its labels have a training example."""
        labels = {*self.pipeline.labels_}
        return np.array([labels.issuperset(each) for each in self.test.labels])

    def outcome(self) -> Outcome | None:
        """Return what is predicted; None without probabilities."""
        calibration, predicted = self.pipeline.calibration_, self.scored.predicted(self.pipeline.rule_)
        if calibration is None:
            return None
        found = calibration.probabilities(self.scored.scores, predicted, self.scored.empty)
        return Outcome(self.relevant(), predicted, *found)

    def with_decision(self, decision: Mapping[str, Any] | None, *, seed: int | None = None) -> Bools:
        """Return what another decision, or another seed of the same, predicts for the test documents."""
        pipeline = self._same(decision, seed=self.seed if seed is None else seed)
        _fit(pipeline, self.training)
        return self.scored.predicted(pipeline.rule_)

    def resampled(self, times: Ints) -> Version:
        """Return what a version predicts if each training example counts several times, or not at all."""
        drawn = times > 0
        training = replace(self.training.where(drawn), weights=times[drawn].tolist())
        pipeline, labels = self._same(None, seed=self.seed), self.pipeline.labels_
        _fit(pipeline, training, kept_labels=labels)
        scored = pipeline.scored(self.test)
        return Version(pipeline.decide(scored), scored.scores, labels)

    def _same(self, decision: Mapping[str, Any] | None, *, seed: int) -> Pipeline:
        """Return an unfitted pipeline with the same features and learner."""
        return Pipeline(clone(self.pipeline.features_), clone(self.pipeline.learner_), decision, seed=seed)

    def with_policy(self, target_precision: float) -> Bools:
        """Return what a router with a policy predicts for the test documents."""
        config = RouterPut(model="m", fallback="nobody@example.org", target_precision=target_precision)
        thresholds = {
            item.label: NEVER if item.threshold is None else item.threshold
            for item in effective_thresholds(self.pipeline, config)
        }
        rule: LabelSetRule = replace(self.pipeline.rule_with(thresholds), at_least=0)
        return self.scored.predicted(rule)


@dataclass(frozen=True)
class Cell:
    """A corpus with a number of training examples and a seed.

    Attributes:
        parts: the corpus, divided.
        size: number of training examples.
        seed: the seed.
        learner: name of the learner.
        measurements: whether documents are measurements rather than words.
    """

    parts: Parts
    size: int
    seed: int
    learner: str
    measurements: bool

    @cached_property
    def trained(self) -> Trained:
        """The pipeline with the default decision."""
        return self.train(self.parts.training(0, self.size))

    def train(self, training: Examples) -> Trained:
        """Train on other examples."""
        return Trained.of(training, self.parts.test, self.learner, seed=self.seed)


@dataclass(frozen=True)
class Version:
    """What a version predicts for test documents, for all labels of several versions.

    Attributes:
        predicted: (n, k) the label sets.
        scores: (n, k) the scores.
        labels: the k labels.
    """

    predicted: Labels
    scores: Floats
    labels: list[str]

    def first(self, n: int) -> Version:
        """Return the predictions for the first documents."""
        return Version(self.predicted[:n], self.scores[:n], self.labels)


def is_promoted(new: Version, live: Version, relevant: Bools, *, attempt: int) -> bool:
    """Return whether ``if_better`` with its defaults promotes a version, compared on these documents."""
    rule, Y = IfBetter(metric="f1_micro"), csr_array(relevant.astype(np.int8))
    level = level_of_attempt(rule.alpha, attempt)
    (first, statistic), (second, _) = (
        paired_sums(rule.metric, Y, Outcomes(each.predicted, each.scores), each.labels)
        for each in (new, live)
    )
    result = compare(first, second, statistic, confidence=1 - level)
    return is_better(rule.metric, result.first, result.second) and result.p_value <= level


def incremental(learner: str, training: Examples, *, seed: int) -> Pipeline:
    """Train a learner with partial fits."""
    parameters = catalog.LEARNER_PARAMETERS.validate_python({"algorithm": learner})
    pipeline = Pipeline(learner=catalog.create_learner(parameters, seed=seed), seed=seed)
    _fit(pipeline, training)
    return pipeline


def label_sets(pipeline: Pipeline, test: Examples) -> tuple[Bools, Bools]:
    """Return the label sets that a pipeline predicts and the true ones, (n, k) each."""
    relevant: Bools = indicator_matrix(test.labels, pipeline.labels_).toarray() != 0
    return pipeline.scored(test).predicted(pipeline.rule_), relevant


def partial_fit(pipeline: Pipeline, further: Examples) -> Pipeline:
    """Continue the training with more examples."""
    return continue_training(pipeline, further.documents, further.labels)


def predictions(
    pipeline: Pipeline, examples: Examples, certain: float
) -> tuple[list[tuple[str, ...]], Bools]:
    """Return the predicted label sets of documents, and whether each is as probable as ``certain``."""
    found = pipeline.predictions(examples.documents, top=0)
    probabilities = np.array([each.set_probability or 0.0 for each in found])
    return [tuple(each.labels) for each in found], probabilities >= certain


def _fit(pipeline: Pipeline, training: Examples, *, kept_labels: Sequence[str] = ()) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(training, kept_labels=kept_labels)
