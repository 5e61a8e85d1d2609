"""Multiclass multilabel perceptrons (MMP): perceptrons that are trained together to rank the labels.

Crammer and Singer, "A Family of Additive Online Algorithms for Category Ranking" (2003), in the form of
section III and figure 1 of Loza Mencía and Fürnkranz, "Pairwise Learning of Multilabel Classifications with
Perceptrons" (2008).
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import numpy as np
from pydantic import Field

from models.arrays import Bools, Floats, Labels, Matrix
from models.base import LearnerParameters
from models.perceptrons.initial_weights import Initial
from models.perceptrons.one_per_label import OnePerLabelPerceptrons

Loss: TypeAlias = Literal["is_error", "error_set_size", "margin", "average_precision"]
Penalty: TypeAlias = Literal["uniform", "proportional", "max"]


class MMPParameters(LearnerParameters):
    """Parameters of ``mmp``."""

    algorithm: Literal["mmp"]
    epochs: int = Field(1, ge=1, le=1_000)
    """Number of passes over the training examples. Many passes tend to overfit (figure 7)."""
    loss: Loss = "is_error"
    """The ranking loss δ that sets the size of an update: ``is_error``, 1 for any wrong ranking;
    ``error_set_size`` (eq. 5); ``margin`` (eq. 7); or ``average_precision``, 1 - AvgP (eq. 8)."""
    penalty: Penalty = "uniform"
    """How an update is distributed over the misordered pairs of labels: equally, in proportion to the
    difference of their scores, or only to the pair with the largest difference (among equals, that whose
    labels sort first)."""
    margin: float = Field(0.0, ge=0, le=1e6)
    """Also update if a relevant label is above an irrelevant label by this number or less. Try 1 to 4 for
    features of unit length and several epochs."""
    initial: Initial = "zeros"
    """Initial weights: zeros, or random from a normal distribution with standard deviation 1e-3."""
    shuffle: bool = False
    """Present the examples in random order, drawn with the seed for each epoch, instead of the order of the
    data set."""


class MMP(OnePerLabelPerceptrons):
    """One perceptron for each label, updated so that relevant labels rank above irrelevant labels.

    The scores w_c·x rank the labels of an example x. If the ranking is wrong (loss δ > 0), each misordered
    pair (c, c') of a relevant and an irrelevant label adds its penalty to τ_c and subtracts it from τ_c'.
    With σ the sum of the penalties, w_c ← w_c + δ·(τ_c/σ)·x (figure 1, line 11). So the relevant labels move
    by δ in total, and the irrelevant labels by -δ.

    In training, a relevant label that ties with an irrelevant label is misordered: among equal scores,
    irrelevant labels rank first. An example with no labels or all labels changes nothing.

    Attributes:
        weights_: (r, k) weights.
        operations_: perceptron operations of the training: k inner products for each example, and one update
            for each label that moves (table I).

    >>> X, Y = [[1.0, 0], [0, 1], [1, 1]], [[1, 0], [0, 1], [1, 1]]
    >>> mmp = MMP(epochs=2).fit(X, Y)
    >>> mmp.decision_function([[1.0, 0.0]])
    array([[ 1., -1.]])
    """

    parameters: ClassVar[type[LearnerParameters]] = MMPParameters
    algorithm: ClassVar[str] = "mmp"
    randomized: ClassVar[bool] = True
    needs_scaled_features: ClassVar[bool] = True

    def _learn_chunk(
        self,
        X: Matrix,
        Y: Labels,
        _unknown: Labels | None,
        _weights: Floats | None,
        parameters: MMPParameters,
        _first_time: bool,
        /,
    ) -> tuple[None, Floats]:
        W, loss, penalty, margin = self.weights_, parameters.loss, parameters.penalty, parameters.margin
        k, n = W.shape[1], X.shape[0]
        flat = W.reshape(-1)
        scores, relevance = np.empty((n, k)), Y.toarray().astype(np.bool_)
        begin, features, values = X.indptr.tolist(), X.indices.astype(np.intp), X.data
        begin_labels, labels = Y.indptr.tolist(), Y.indices.astype(np.intp)
        updates = 0
        for i in range(n):
            x, f = values[begin[i] : begin[i + 1]], features[begin[i] : begin[i + 1]]
            rows = W.take(f, axis=0)
            s = np.einsum("i,ij->j", x, rows, out=scores[i])
            relevant = labels[begin_labels[i] : begin_labels[i + 1]]
            m = len(relevant)
            if m in (0, k):
                continue
            required = s[relevant] - margin
            candidates = (s >= required.min()).nonzero()[0]
            if len(candidates) == m:  # no irrelevant label reaches the lowest score of a relevant label
                continue
            irrelevant = candidates[~relevance[i, candidates]]
            up, down = update_sizes(required, s[irrelevant], loss, penalty)
            moved = np.concatenate([relevant[up > 0], irrelevant[down > 0]])
            step = np.concatenate([up[up > 0], -down[down > 0]])
            cells = f[:, np.newaxis] * k + moved
            flat[cells] = rows.take(moved, axis=1) + x[:, np.newaxis] * step
            updates += len(moved)
        self.updates_ += updates
        self.operations_ += n * k + updates
        return None, scores


def update_sizes(relevant: Floats, irrelevant: Floats, loss: Loss, penalty: Penalty) -> tuple[Floats, Floats]:
    """Return the size δ·|τ_c|/σ of the update of each label of a wrong ranking.

    Args:
        relevant: scores of all relevant labels, in label order.
        irrelevant: scores of the misordered irrelevant labels, in label order: those with at least the lowest
            score of a relevant label.
        loss: δ.
        penalty: the penalty of a misordered pair.

    Returns:
        The sizes for the relevant and for the irrelevant labels; each array sums to δ.

    >>> update_sizes(np.array([0.0]), np.array([2.0, 1.0, 0.0]), "is_error", "uniform")
    (array([1.]), array([0.33333333, 0.33333333, 0.33333333]))
    """
    difference = irrelevant - relevant[:, np.newaxis]
    wrong = difference >= 0
    p = wrong.astype(np.float64)
    if penalty == "proportional" and (difference[wrong] > 0).any():
        p = np.where(wrong, difference, 0.0)
    elif penalty == "max":
        p = np.zeros(wrong.shape)
        p.flat[difference.argmax()] = 1.0
    delta, sigma = _ranking_loss(wrong, loss), p.sum()
    return delta * (p.sum(axis=1) / sigma), delta * (p.sum(axis=0) / sigma)


def _ranking_loss(wrong: Bools, loss: Loss) -> float:
    """Return δ of a wrong ranking.

    Args:
        wrong: (relevant labels, irrelevant labels) whether each pair is misordered. Irrelevant labels that
            are not in any misordered pair may be missing, because they do not change the loss.
        loss: δ.
    """
    if loss == "is_error":
        return 1.0
    if loss == "error_set_size":
        return float(np.count_nonzero(wrong))
    # Number of irrelevant labels above the best relevant label, above the second best, and so on.
    above = np.sort(wrong.sum(axis=1))
    m = len(above)
    if loss == "margin":
        return float(above[-1] + m - (np.count_nonzero(above == 0) + 1))
    position = np.arange(1, m + 1)
    return float(1.0 - (position / (position + above)).mean())
