"""Recipes: features, learner and decision together, and how well they do on a corpus.

Recipes with the same features and learner share one training; those of a corpus and a seed share the split.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, Normalizer
from sklearn.svm import LinearSVC

from models import catalog
from models.arrays import Bools, Floats, Labels
from models.base import Context
from models.calibration import fit_label_calibration
from models.data.examples import Examples
from models.decisions import N_FOLDS, HeldOut
from models.decisions.auto import LabelSetSizes
from models.decisions.score_scale import ScoreScale
from models.decisions.tuning import FittedDecision, LearnerScores, fit_decision
from models.features import NumericFeatures, NumericFeaturesParameters
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.pipeline import read_documents
from models.pipeline.alignment import align
from models.pipeline.held_out import FoldScores, FoldStep
from models.splits import stratified_folds

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
OF_SVM = {
    "svm, auto": {"kind": "auto"},
    "svm, tuned_threshold": {"kind": "tuned_threshold"},
    "svm, sign": {"kind": "sign"},
}
OF_BOOSTING = {"mp_boost, auto": {"kind": "auto"}, "mp_boost, sign": {"kind": "sign"}}
OF_WORDS = {"LinearSVC, auto": {"kind": "auto"}, "LinearSVC": {"kind": "sign"}}
OF_N_GRAMS = {"LinearSVC with n-grams, auto": {"kind": "auto"}, "LinearSVC with n-grams": {"kind": "sign"}}

DEFAULT = "svm, auto"
FORMER = "mp_boost, sign"


@dataclass(frozen=True)
class Predictions:
    """The label sets that a recipe predicts for the test part.

    Attributes:
        predicted: (n, k) whether each label is predicted.
        seconds: CPU time of the training with everything that the decision needs.
    """

    predicted: Bools
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


def predict(task: Task, *, n_grams: dict[str, Json]) -> Iterator[tuple[str, Predictions]]:
    """Yield the predictions of each recipe by its name.

    Args:
        task: the task.
        n_grams: those of ``OF_N_GRAMS`` to include if documents are texts; they take longest.
    """
    linear: Json = {"kind": "numeric", "scaling": "max_abs" if task.units else "unit"}
    boosting: Json = {"kind": "numeric", "scaling": "none"}
    boost: Json = {"algorithm": "mp_boost", "rounds": ROUNDS}
    if task.is_text:
        linear, boosting = PIVOTED, SELECTED
    else:
        boost = {**boost, "bins": N_BINS}
    yield from _decide(task, train(task, linear, {"algorithm": "svm"}), OF_SVM)
    yield from _decide(task, train(task, boosting, boost), OF_BOOSTING)
    yield from _decide(task, linear_svc(task), OF_WORDS)
    if n_grams and task.is_text:
        hold_out = len(n_grams) == len(OF_N_GRAMS)
        yield from _decide(task, linear_svc(task, with_n_grams=True, hold_out=hold_out), n_grams)


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


def _decide(task: Task, trained: Trained, decisions: dict[str, Json]) -> Iterator[tuple[str, Predictions]]:
    for name, parameters in decisions.items():
        started = time.process_time()
        fitted = decide(task, trained, parameters)
        seconds = trained.fit_seconds
        if parameters["kind"] != "sign":
            seconds += trained.held_out_seconds + time.process_time() - started
        yield name, Predictions(fitted.rule.predicted(trained.test), seconds)


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
        X,
        Y,
        context=context,
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


def linear_svc(task: Task, *, with_n_grams: bool = False, hold_out: bool = True) -> Trained:
    """Train one linear SVM per label, on TF-IDF of words, with or without n-grams, or on scaled numbers."""
    started = time.process_time()
    # scikit-learn numbers labels in the type of Y, and mixes up more than 128 labels of 8 bits.
    Y = indicator_matrix(task.training.labels, task.labels).astype(np.int64)
    documents: Any = task.training.documents
    test: Any = task.test.documents
    if task.is_text:
        words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2) if with_n_grams else (1, 1))
        characters = TfidfVectorizer(sublinear_tf=True, analyzer="char_wb", ngram_range=(3, 5), min_df=2)
        transformer = FeatureUnion([("w", words), ("c", characters)]) if with_n_grams else words
        documents = np.array(documents, dtype=object)
    else:
        numbers = NumericFeatures(NumericFeaturesParameters(kind="numeric"))
        transformer = MaxAbsScaler() if task.units else Normalizer()
        documents = _narrow(numbers.fit_transform([read_documents(documents)], Y))
        test = _narrow(numbers.transform(read_documents(test)))
    model = make_pipeline(
        transformer, FunctionTransformer(_narrow), OneVsRestClassifier(LinearSVC(random_state=task.seed))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)  # a fold without an example of a label
        model.fit(documents, Y)
        fitted = time.process_time()
        held_out = _held_out(model, documents, Y, task.seed) if hold_out else None
    ended = time.process_time()
    scores = LearnerScores(
        own=catalog.DECISION_PARAMETERS.validate_python({"kind": "sign"}),
        default=0.0,
        has_zero=True,
        parents=None,
    )
    return Trained(held_out, scores, model.decision_function(test), fitted - started, ended - fitted)


def _held_out(model: Pipeline, X: Any, Y: Labels, seed: int) -> HeldOut:
    """Score each document by features and SVMs that were fitted on the other folds, as Covey does."""
    folds = stratified_folds(Y, N_FOLDS, seed=seed)
    tunable = Y.sum(axis=0) >= N_FOLDS
    scores, scales = np.zeros(Y.shape), []
    for fold in range(N_FOLDS):
        training = folds != fold
        trained = Y[training].sum(axis=0) > 0
        tunable &= trained
        of_fold = clone(model).fit(X[training], Y[training])
        # scikit-learn's score of a label without examples is 0, the threshold itself.
        scores[~training] = np.where(trained, of_fold.decision_function(X[~training]), -1.0)
        scales.append(ScoreScale.of(of_fold.decision_function(X[training]), None))
    scale = ScoreScale.of(model.decision_function(X), None)
    return align(HeldOut(scores, Y, None, folds, tunable), scale, scales)


def _narrow(X: Any) -> csr_array:
    """Return a matrix with the 32-bit indices that scikit-learn requires."""
    X = csr_array(X)
    return csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
