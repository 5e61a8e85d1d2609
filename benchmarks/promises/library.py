"""Every call of Covey that a promise is measured with."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from app.console.training import FIRST_TEXT_FEATURES
from app.registry.schemas import IfBetter
from app.routing.policies import effective_thresholds
from app.routing.schemas import RouterPut
from benchmarks.papers.recipes import N_BINS, ROUNDS, SELECTED, Json
from models import catalog
from models.arrays import Bools, Floats, Ints, Labels, Matrix
from models.base import Context, Monitor, State
from models.base.weighted import WeightedLearner
from models.baselines.svm import SVM
from models.boosting.mp_boost import MPBoost
from models.data.examples import Examples
from models.decisions import LabelSetRule
from models.decisions.cuts import NEVER
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.measures.directions import is_better
from models.measures.paired import compare
from models.measures.paired_measures import Outcomes, paired_sums
from models.pipeline import Pipeline, read_documents
from models.pipeline.fitting import Features
from models.pipeline.further_training import train_further


class _Remembered(WeightedLearner):
    """A learner that is trained once for each set of examples, also by other decisions."""

    trained: ClassVar[dict[tuple[bytes, ...], dict[str, Any]]] = {}

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        context: Context | None = None,
        monitor: Monitor | None = None,
        resume: State | None = None,
    ) -> Self:
        """Take over the training on the same examples, or learn from them."""
        arrays = [X.indptr, X.indices, X.data, y.indptr, y.indices]
        if context is not None and context.weights is not None:
            arrays.append(context.weights)
        key = (repr(self).encode(), *(array.tobytes() for array in arrays))
        if key not in self.trained:
            super().fit(X, y, sample_weight, context=context, monitor=monitor, resume=resume)
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
    """A pipeline with the decision ``auto``, and its scores of test documents.

    Attributes:
        pipeline: the pipeline.
        training: its examples.
        X: their features.
        test: the test documents.
        X_test: their features.
        scores: (n, k) the scores of the test documents.
        seed: seed of the training.
    """

    pipeline: Pipeline
    training: Examples
    X: Matrix
    test: Examples
    X_test: Matrix
    scores: Floats
    seed: int

    @classmethod
    def of(cls, training: Examples, test: Examples, learner: str, *, units: bool, seed: int) -> Self:
        """Train with the default decision."""
        class_, parameters = LEARNERS[learner]
        features = catalog.create_features(
            catalog.FEATURES_PARAMETERS.validate_python(features_of(learner, training.kind, units=units))
        )
        if training.kind == "features" and learner == "mp_boost":
            parameters = {**parameters, "bins": N_BINS}
        pipeline = Pipeline(features, class_(**parameters, random_state=seed), seed=seed)
        _fit(pipeline, training)
        X, X_test = (pipeline.feature_matrix(part.documents) for part in (training, test))
        return cls(pipeline, training, X, test, X_test, _scores(pipeline, X_test), seed)

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
        calibration, predicted = self.pipeline.calibration_, self.pipeline.rule_.predicted(self.scores)
        if calibration is None:
            return None
        return Outcome(self.relevant(), predicted, *calibration.probabilities(self.scores, predicted))

    def with_decision(self, decision: Mapping[str, Any] | None, *, seed: int | None = None) -> Bools:
        """Return what another decision, or another seed of the same, predicts for the test documents."""
        pipeline = Pipeline(
            self.pipeline.features,
            self.pipeline.learner,
            decision,
            seed=self.seed if seed is None else seed,
        )
        _fit(pipeline, self.training, matrix=self.X)
        return pipeline.rule_.predicted(self.scores)

    def resampled(self, times: Ints) -> Version:
        """Return what a version predicts if each training example counts several times, or not at all."""
        drawn = times > 0
        training = replace(self.training.where(drawn), weights=times[drawn].tolist())
        pipeline = Pipeline(self.pipeline.features, clone(self.pipeline.learner), seed=self.seed)
        labels = self.pipeline.labels_
        _fit(pipeline, training, matrix=self.X[drawn], kept_labels=labels)
        scores = _scores(pipeline, self.X_test)
        return Version(pipeline.decide(scores), scores, labels)

    def with_policy(self, target_precision: float) -> Bools:
        """Return what a router with a policy predicts for the test documents."""
        config = RouterPut(model="m", fallback="nobody@example.org", target_precision=target_precision)
        thresholds = {
            item.label: NEVER if item.threshold is None else item.threshold
            for item in effective_thresholds(self.pipeline, config)
        }
        rule: LabelSetRule = replace(self.pipeline.rule_with(thresholds), at_least=0)
        return rule.predicted(self.scores)


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


def is_promoted(new: Version, live: Version, relevant: Bools) -> bool:
    """Return whether ``if_better`` with its defaults promotes a version."""
    rule, Y = IfBetter(metric="f1_micro"), csr_array(relevant.astype(np.int8))
    (first, statistic), (second, _) = (
        paired_sums(rule.metric, Y, Outcomes(each.predicted, each.scores), each.labels)
        for each in (new, live)
    )
    result = compare(first, second, statistic, confidence=1 - rule.alpha)
    return is_better(rule.metric, result.first, result.second) and result.p_value <= rule.alpha


class Incremental:
    """Learners with partial fits, trained on the same examples.

    Args:
        training: the examples.
        test: the test documents.
        units: whether numeric features have different units.
        seed: seed of the trainings.
    """

    def __init__(self, training: Examples, test: Examples, *, units: bool, seed: int) -> None:
        self._training = training
        self._test = test
        self._units = units
        self._seed = seed
        self._computed: dict[str, tuple[Features, Matrix, Matrix]] = {}

    def fit(self, learner: str) -> Pipeline:
        """Train a learner."""
        features, X, _ = self._features(learner)
        parameters = catalog.LEARNER_PARAMETERS.validate_python({"algorithm": learner})
        pipeline = Pipeline(features, catalog.create_learner(parameters, seed=self._seed), seed=self._seed)
        _fit(pipeline, self._training, matrix=X)
        return pipeline

    def sets_of(self, pipeline: Pipeline) -> tuple[Bools, Bools]:
        """Return the true label sets of the test documents and those that a pipeline predicts, (n, k) each.

        Args:
            pipeline: a result of ``fit``, or of partial fits of it.
        """
        relevant: Bools = indicator_matrix(self._test.labels, pipeline.labels_).toarray() != 0
        X_test = self._features(pipeline.learner.algorithm)[2]
        return relevant, pipeline.rule_.predicted(_scores(pipeline, X_test))

    def _features(self, learner: str) -> tuple[Features, Matrix, Matrix]:
        """Return the fitted features of a learner, and those of both parts."""
        parameters = features_of(learner, self._training.kind, units=self._units)
        key = repr(parameters)
        if key not in self._computed:
            features = catalog.create_features(catalog.FEATURES_PARAMETERS.validate_python(parameters))
            labels = collect_labels(self._training.labels)
            X, X_test = (read_documents(part.documents) for part in (self._training, self._test))
            matrix = features.fit_transform([X], indicator_matrix(self._training.labels, labels))
            self._computed[key] = features, matrix, features.transform(X_test)
        return self._computed[key]


def partial_fit(pipeline: Pipeline, further: Examples) -> Pipeline:
    """Continue the training with more examples."""
    return train_further(pipeline, further.documents, further.labels)


def predictions(
    pipeline: Pipeline, examples: Examples, certain: float
) -> tuple[list[tuple[str, ...]], Bools]:
    """Return the predicted label sets of documents, and whether each is as probable as ``certain``."""
    found = pipeline.predictions(examples.documents, top=0)
    probabilities = np.array([each.set_probability or 0.0 for each in found])
    return [tuple(each.labels) for each in found], probabilities >= certain


def features_of(learner: str, kind: str, *, units: bool) -> Json:
    """Return the parameters of the features: those that the console proposes, if they suit the learner."""
    if kind != "features":
        if learner == "naive_bayes":
            return {**FIRST_TEXT_FEATURES, "weighting": "tf", "scaling": "none"}
        return SELECTED if learner == "mp_boost" else FIRST_TEXT_FEATURES
    unscaled = learner in {"mp_boost", "naive_bayes"}
    return {"kind": "numeric", "scaling": "none" if unscaled else "max_abs" if units else "unit"}


def _fit(
    pipeline: Pipeline, training: Examples, *, matrix: Matrix | None = None, kept_labels: Sequence[str] = ()
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(training, matrix=matrix, kept_labels=kept_labels)


def _scores(pipeline: Pipeline, X: Matrix) -> Floats:
    scores: Floats = pipeline.learner.decision_function(X)
    return scores
