"""Trainings of Covey on a corpus, whose scores several decisions share."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from models import catalog
from models.arrays import Bools, Floats
from models.base import Context, Problem
from models.calibration import fit_label_calibration
from models.data.examples import Examples
from models.decisions import HeldOut
from models.decisions.auto import LabelSetSizes
from models.decisions.tune import FittedDecision, LearnerScores, fit_decision
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.pipeline import read_documents
from models.pipeline.held_out import FoldScores, FoldStep

Json = dict[str, Any]

ROUNDS = 50
PER_LABEL = 100
N_BINS = 64
"""Largest number of bins for the thresholds of numeric features in boosting."""

ANALYZER: Json = {"drop_numbers": True, "stop_words": "english"}
PIVOTED: Json = {"kind": "text", "weighting": "pivoted", "scaling": "unit", "analyzer": ANALYZER}
SELECTED: Json = {
    "kind": "text",
    "weighting": "binary",
    "analyzer": ANALYZER,
    "selection": {"kind": "information_gain", "policy": "round_robin", "per_label": PER_LABEL},
}


@dataclass(frozen=True)
class Predictions:
    """What is predicted for the n documents of the test part.

    Attributes:
        predicted: (n, k) whether each label is predicted.
        scores: (n, k) the scores, which rank the labels.
        seconds: CPU time of the training with everything that the decision needs.
    """

    predicted: Bools
    scores: Floats
    seconds: float


@dataclass(frozen=True)
class Task:
    """A corpus, split.

    Attributes:
        training: the training part.
        test: the test part.
        labels: the k labels of the training part.
        units: whether the numeric features have different units. Otherwise they are words.
        seed: seed of folds and learners.
    """

    training: Examples
    test: Examples
    labels: list[str]
    units: bool
    seed: int

    @classmethod
    def of(cls, training: Examples, test: Examples, *, units: bool, seed: int) -> Task:
        """Return the task of a split."""
        return cls(training, test, collect_labels(training.labels), units, seed)

    @property
    def is_text(self) -> bool:
        """Whether the documents are texts."""
        return self.training.kind == "text"

    def relevant(self) -> Bools:
        """Return the label sets of the test part, (n, k), without labels that have no training example."""
        relevant: Bools = indicator_matrix(self.test.labels, self.labels).toarray() != 0
        return relevant


@dataclass(frozen=True)
class Trained:
    """The scores of a trained learner.

    Attributes:
        held_out: held-out scores of the training part; None if no decision needs them.
        learner: what a decision needs to know about the learner.
        test: (n, k) scores of the test part.
        fit_seconds: CPU time of the training without held-out scores.
        held_out_seconds: CPU time of the held-out scores.
    """

    held_out: HeldOut | None
    learner: LearnerScores
    test: Floats
    fit_seconds: float
    held_out_seconds: float


def decide(task: Task, trained: Trained, parameters: Json) -> FittedDecision:
    """Fit a decision on held-out scores."""
    return fit_decision(
        catalog.DECISION_PARAMETERS.validate_python(parameters),
        trained.held_out,
        trained.learner,
        task.labels,
        LabelSetSizes.of(indicator_matrix(task.training.labels, task.labels)),
        calibrate=fit_label_calibration,
    )


def train(task: Task, features_parameters: Json, learner_parameters: Json) -> Trained:
    """Train a learner of Covey with the parameters of its features, and hold out scores."""
    features = catalog.create_features(catalog.FEATURES_PARAMETERS.validate_python(features_parameters))
    learner = catalog.create_learner(
        catalog.LEARNER_PARAMETERS.validate_python(learner_parameters), seed=task.seed
    )
    started = time.process_time()
    Y = indicator_matrix(task.training.labels, task.labels)
    raw = features.read([read_documents(task.training.documents)])
    X = features.fit(raw, Y)
    context = Context(
        labels=task.labels,
        features=features.names_,
        candidates=features.candidates_,
        numeric_features=not task.is_text,
    )
    learner.fit(X, Y, context=context)
    fitted = time.process_time()
    held_out = FoldScores(
        features,
        learner,
        raw,
        Problem(X, Y, context),
        seed=task.seed,
        monitor=_ignore,
        resume={},
    ).run()
    assert held_out is not None, "every corpus has frequent labels"
    ended = time.process_time()
    test = np.asarray(learner.decision_function(features.transform(read_documents(task.test.documents))))
    scores = LearnerScores(
        own=catalog.own_decision(learner),
        default=catalog.default_threshold(learner, len(task.labels)),
        has_zero=catalog.has_zero_threshold(learner),
        parents=None,
    )
    return Trained(held_out, scores, test, fitted - started, ended - fitted)


def _ignore(step: FoldStep) -> None:
    """Ignore a step of a training."""
