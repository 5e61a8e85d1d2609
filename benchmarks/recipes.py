"""Trainings of Covey on a corpus, whose scores several decisions and measures share."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np

from benchmarks.corpora import MEASUREMENTS, Json
from models import catalog
from models.arrays import Bools, Floats
from models.base import Context, Problem
from models.calibration import fit_label_calibration
from models.data.examples import Examples
from models.decisions import HeldOut
from models.decisions.auto import LabelSetSizes
from models.decisions.tune import FittedDecision, LearnerScores, fit_decision
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.pipeline import Pipeline, read_documents
from models.pipeline.held_out import FoldScores

ROUNDS = 50
N_BINS = 64
"""Largest number of bins for the thresholds of numeric features in boosting."""

ANALYZER: Json = {"drop_numbers": True, "stop_words": "english"}
PIVOTED: Json = {"kind": "text", "weighting": "pivoted", "scaling": "unit", "analyzer": ANALYZER}
SELECTED: Json = {
    "kind": "text",
    "weighting": "binary",
    "analyzer": ANALYZER,
    "selection": {"kind": "information_gain", "policy": "round_robin", "per_label": 100},
}
TF = {"kind": "text", "weighting": "tf", "analyzer": ANALYZER}

LEARNERS: dict[str, tuple[Json, Json]] = {
    "svm": ({}, PIVOTED),
    "mp_boost": ({"rounds": ROUNDS}, SELECTED),
    "adaboost_mh": ({"rounds": 100}, SELECTED),
    "naive_bayes": ({}, TF),
    "binary_relevance_perceptron": ({}, PIVOTED),
    "mmp": ({}, PIVOTED),
    "mlpp": ({}, PIVOTED),
}
"""Parameters of each learner, and its features of texts."""


def pipeline(features: Json, learner: Json, decision: Json | None = None, *, seed: int = 0) -> Pipeline:
    """Return an unfitted pipeline, from parameters as in a training request."""
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text", **features}),
        catalog.LEARNER_PARAMETERS.validate_python(learner),
        None if decision is None else catalog.DECISION_PARAMETERS.validate_python(decision),
        seed=seed,
    )


def parameters_of(corpus: str, name: str, kind: str) -> tuple[Json, Json]:
    """Return the parameters of the features and of one of ``LEARNERS``, for documents of a kind."""
    parameters, of_texts = LEARNERS[name]
    learner = {"algorithm": name, **parameters}
    if kind == "text":
        return of_texts, learner
    if of_texts is SELECTED:
        return {"kind": "numeric", "scaling": "none"}, {**learner, "bins": N_BINS}
    if of_texts is TF:
        return {"kind": "numeric", "scaling": "none"}, learner
    return {"kind": "numeric", "scaling": "max_abs" if corpus in MEASUREMENTS else "unit"}, learner


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
        held_out: held-out scores of the training part.
        learner: what a decision needs to know about the learner.
        test: (n, k) scores of the test part.
    """

    held_out: HeldOut
    learner: LearnerScores
    test: Floats


def learner_scores(parameters: Json, n_labels: int) -> LearnerScores:
    """Return what a decision needs to know about a learner."""
    learner = catalog.create_learner(catalog.LEARNER_PARAMETERS.validate_python(parameters))
    return LearnerScores(
        own=catalog.own_decision(learner),
        default=catalog.default_threshold(learner, n_labels),
        has_zero=catalog.has_zero_threshold(learner),
        parents=None,
    )


def train(task: Task, features_parameters: Json, learner_parameters: Json) -> Trained:
    """Train a learner of Covey with the parameters of its features, and hold out scores."""
    features = catalog.create_features(catalog.FEATURES_PARAMETERS.validate_python(features_parameters))
    learner = catalog.create_learner(
        catalog.LEARNER_PARAMETERS.validate_python(learner_parameters), seed=task.seed
    )
    Y = indicator_matrix(task.training.labels, task.labels)
    raw = features.read([read_documents(task.training.documents)])
    X = features.fit_raw(raw, Y)
    context = Context(
        labels=task.labels,
        features=features.names_,
        candidates=features.candidates_,
        numeric_features=not task.is_text,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.fit(X, Y, context=context)
        held_out = FoldScores(
            features,
            learner,
            raw,
            Problem(X, Y, context),
            seed=task.seed,
            monitor=lambda _: None,
            resume={},
        ).run()
    assert held_out is not None, "every corpus has frequent labels"
    test = np.asarray(learner.decision_function(features.transform(read_documents(task.test.documents))))
    return Trained(held_out, learner_scores(learner_parameters, len(task.labels)), test)


def decide(trained: Trained, parameters: Json, sizes: LabelSetSizes, labels: list[str]) -> FittedDecision:
    """Fit a decision on held-out scores."""
    return fit_decision(
        catalog.DECISION_PARAMETERS.validate_python(parameters),
        trained.held_out,
        trained.learner,
        labels,
        sizes,
        calibrate=fit_label_calibration,
    )


def decide_task(task: Task, trained: Trained, parameters: Json) -> FittedDecision:
    """Fit a decision for a task."""
    sizes = LabelSetSizes.of(indicator_matrix(task.training.labels, task.labels))
    return decide(trained, parameters, sizes, task.labels)


def quality(predicted: Bools, relevant: Bools) -> tuple[float, float]:
    """Return micro-averaged F1 (0 if nothing is relevant or predicted), and the share of wrong label sets."""
    total = int(relevant.sum()) + int(predicted.sum())
    f1 = 2 * int((relevant & predicted).sum()) / total if total else 0.0
    return f1, float((relevant != predicted).any(axis=1).mean())


def timed_fit(pipeline: Pipeline, training: Examples) -> float:
    """Fit a pipeline, and return the CPU seconds."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(training)
    return time.process_time() - started
