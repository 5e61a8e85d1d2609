"""Every call of Covey that a promise is measured with."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from app.console.training import FIRST_TEXT_FEATURES
from app.routing.policies import effective_thresholds
from app.routing.schemas import RouterPut
from benchmarks.papers.recipes import N_BINS, ROUNDS, SELECTED, Json
from models import catalog
from models.arrays import Bools, Floats, Matrix
from models.base import Context, Monitor, State
from models.base.weighted import WeightedLearner
from models.baselines.svm import SVM
from models.boosting.mp_boost import MPBoost
from models.data.examples import Examples
from models.decisions import LabelSetRule
from models.decisions.cuts import NEVER
from models.labels.indicator_matrix import indicator_matrix
from models.pipeline import Pipeline


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
        arrays = (X.indptr, X.indices, X.data, y.indptr, y.indices)
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


@dataclass(frozen=True)
class Trained:
    """A pipeline with the decision ``auto``, and its scores of test documents.

    Attributes:
        pipeline: the pipeline.
        training: its examples.
        X: their features.
        test: the test documents.
        scores: (n, k) the scores of the test documents.
        seed: seed of the training.
    """

    pipeline: Pipeline
    training: Examples
    X: Matrix
    test: Examples
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
        X = pipeline.feature_matrix(training.documents)
        return cls(pipeline, training, X, test, pipeline.scores(test), seed)

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

    def with_policy(self, target_precision: float) -> Bools:
        """Return what a router with a policy predicts for the test documents."""
        config = RouterPut(model="m", fallback="nobody@example.org", target_precision=target_precision)
        thresholds = {
            item.label: NEVER if item.threshold is None else item.threshold
            for item in effective_thresholds(self.pipeline, config)
        }
        rule: LabelSetRule = replace(self.pipeline.rule_with(thresholds), at_least=0)
        return rule.predicted(self.scores)


def features_of(learner: str, kind: str, *, units: bool) -> Json:
    """Return the parameters of the features: for ``svm`` those that the console proposes."""
    if kind != "features":
        return FIRST_TEXT_FEATURES if learner == "svm" else SELECTED
    scaling = "none" if learner == "mp_boost" else "max_abs" if units else "unit"
    return {"kind": "numeric", "scaling": scaling}


def _fit(pipeline: Pipeline, training: Examples, matrix: Matrix | None = None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(training, matrix=matrix)
