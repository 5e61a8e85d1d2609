"""scikit-learn's usual pipelines for texts and numbers, with which the defaults are compared."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, Normalizer
from sklearn.svm import LinearSVC

from benchmarks.recipes import Task
from models.arrays import Bools, Floats
from models.features import NumericFeatures, NumericFeaturesParameters
from models.labels.indicator_matrix import indicator_matrix
from models.pipeline import read_documents

TERMS: dict[str, dict[str, Any]] = {
    "LinearSVC": {},
    "LogisticRegression": {},
    "LinearSVC, pairs": {"ngram_range": (1, 2)},
    "LinearSVC, characters": {"analyzer": "char_wb", "ngram_range": (3, 5), "min_df": 2},
}
"""Pipelines by name, and their terms of texts."""

WORDS = ("LinearSVC", "LogisticRegression")
"""The pipelines without n-grams, which suit numbers, too."""


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


def predict(task: Task, name: str) -> Predictions:
    """Train a pipeline, one classifier for each label, and predict the label sets of the test part.

    If every training example has one label, the one with the best score is predicted, as ``fit`` with
    classes does. Otherwise these are the labels with a positive score.
    """
    started = time.process_time()
    # scikit-learn numbers labels in the type of Y, and mixes up more than 128 labels of 8 bits.
    Y = indicator_matrix(task.training.labels, task.labels).astype(np.int64)
    documents: Any = task.training.documents
    test: Any = task.test.documents
    if task.is_text:
        transformer: Any = TfidfVectorizer(sublinear_tf=True, **TERMS[name])
    else:
        numbers = NumericFeatures(NumericFeaturesParameters(kind="numeric"))
        transformer = MaxAbsScaler() if task.units else Normalizer()
        documents = _narrow(numbers.fit_transform(read_documents(documents), Y))
        test = _narrow(numbers.transform(read_documents(test)))
    classifier = (
        LogisticRegression(max_iter=1000, random_state=task.seed)
        if name == "LogisticRegression"
        else LinearSVC(random_state=task.seed)
    )
    model = make_pipeline(transformer, FunctionTransformer(_narrow), OneVsRestClassifier(classifier))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(documents, Y)
    seconds = time.process_time() - started
    scores = np.asarray(model.decision_function(test))
    if (Y.sum(axis=1) == 1).all():
        predicted = np.zeros(scores.shape, dtype=np.bool_)
        predicted[np.arange(len(scores)), scores.argmax(axis=1)] = True
    else:
        predicted = scores > 0
    return Predictions(predicted, scores, seconds)


def _narrow(X: Any) -> csr_array:
    """Return a matrix with the 32-bit indices that scikit-learn requires."""
    X = csr_array(X)
    return csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
