"""Predictions of a fitted pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Bools, Floats, Labels, Matrix, Vector
from models.base import Learner
from models.decisions.apply import LabelSetRule
from models.errors import UnsuitableDataError
from models.pipeline.explanation import Explanation


@dataclass(frozen=True)
class Prediction:
    """The prediction for one document.

    Attributes:
        labels: the predicted label set, in label order.
        ranking: labels with their scores, by descending score; labels with equal scores are in label order.
        explanation: an explanation of each predicted label, in label order; empty if not requested.
        probabilities: the calibrated probability of each label in ``ranking``; None if the pipeline is not
            calibrated.
        set_probability: the probability that the whole label set is right; None as for ``probabilities``.
    """

    labels: list[str]
    ranking: list[tuple[str, float]]
    explanation: list[Explanation] = field(default_factory=list)
    probabilities: list[float] | None = None
    set_probability: float | None = None


@dataclass(frozen=True, slots=True)
class ScoredDocuments:
    """The scores of n documents.

    Attributes:
        scores: (n, k) the scores of all labels.
        empty: (n,) whether the features know nothing of a document, see ``empty_documents`` of the features.
            Its scores are those of any such document, and say nothing about this one: it gets no label.
    """

    scores: Floats
    empty: Bools

    @classmethod
    def concatenate(cls, parts: Sequence[ScoredDocuments], n_labels: int) -> ScoredDocuments:
        """Join several batches of documents."""
        return cls(
            np.concatenate([np.empty((0, n_labels)), *(part.scores for part in parts)]),
            np.concatenate([np.empty(0, dtype=np.bool_), *(part.empty for part in parts)]),
        )

    def predicted(self, rule: LabelSetRule) -> Bools:
        """Return whether each label is predicted, (n, k)."""
        predicted = rule.predicted(self.scores)
        predicted[self.empty] = False
        return predicted

    def label_sets(self, rule: LabelSetRule) -> Labels:
        """Return the predicted label sets, (n, k) sparse 0/1."""
        return csr_array(self.predicted(rule).astype(np.int8))


def full_scores(learner: Learner, X: Matrix) -> Floats:
    """Return the scores of all labels, (n, k).

    Raises:
        UnsuitableDataError: a score is not finite.
    """
    if not X.shape[0]:  # learners reject an empty X, because it usually is a mistake
        return np.empty((0, learner.n_labels_))
    with np.errstate(over="ignore", invalid="ignore"):
        scores = learner.decision_function(X)
    check_finite(scores)
    return scores


def scores_of_one(learner: Learner, x: Vector) -> Floats:
    """Return the scores of all labels for one example, (1, k), with the same bits as ``full_scores``.

    Raises:
        UnsuitableDataError: a score is not finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scores = learner.score_one(x)
    check_finite(scores)
    return scores[np.newaxis]


def check_finite(numbers: Floats) -> None:
    """Check that all scores are finite.

    Raises:
        UnsuitableDataError: a score is not.
    """
    if not np.isfinite(numbers).all():
        raise UnsuitableDataError("the values of a document are so large that its scores are not finite")
