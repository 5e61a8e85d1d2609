"""Multiclass multilabel perceptrons (MMP): perceptrons trained together, to rank.

Crammer and Singer, "A Family of Additive Online Algorithms for Category Ranking" (2003), as given in section
III and figure 1 of Loza Mencía and Fürnkranz, "Pairwise Learning of Multilabel Classifications with
Perceptrons" (2008).
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import numpy as np
from pydantic import Field

from models.arrays import Bools, Floats, Labels, Matrix
from models.base import LearnerParameters
from models.perceptrons.linear import LinearPerceptrons

Loss: TypeAlias = Literal["is_error", "error_set_size", "margin", "average_precision"]
Penalty: TypeAlias = Literal["uniform", "proportional", "max"]


class MMPParameters(LearnerParameters):
    """Parameters of ``mmp``."""

    algorithm: Literal["mmp"]
    epochs: int = Field(1, ge=1, le=1_000)
    """How often the training examples are presented. More than a few tend to overfit (figure 7)."""
    loss: Loss = "is_error"
    """The ranking loss δ that sets the size of an update."""
    penalty: Penalty = "uniform"
    """How an update is shared out among the misordered pairs of labels: equally, in proportion to the
    difference of their scores, or all to the pair with the largest difference."""
    initial: Literal["zeros", "random"] = "zeros"
    """The weights before the first example: zeros, or drawn from a normal of deviation 1e-3."""
    shuffle: bool = False
    """Present the examples in an order drawn with the seed, anew each epoch, instead of the data set's."""


class MMP(LinearPerceptrons):
    """Perceptrons, one a label, that are updated so that relevant labels rank above irrelevant ones.

    An example x is ranked by the scores w_c·x. If the ranking is wrong (loss δ > 0), the misordered pairs
    (c, c') of a relevant and an irrelevant label share out penalties τ, normalised by their sum σ, and
    w_c ← w_c + δ·(τ_c/σ)·x (figure 1, line 11): the relevant labels move by δ in total, the irrelevant by -δ.

    While training, a relevant label that ties with an irrelevant one is misordered: irrelevant labels rank
    first among equals. An example with no labels, or all of them, teaches nothing.

    Args:
        epochs: passes over the training examples.
        loss: δ: ``is_error`` (1 for any wrong ranking), ``error_set_size`` (eq. 5), ``margin`` (eq. 7) or
            ``average_precision`` (1 - AvgP, eq. 8).
        penalty: ``uniform`` (1 for each misordered pair), ``proportional`` (the difference of the two scores;
            uniform where all differences are 0) or ``max`` (only the pair with the largest difference; among
            equals the one whose labels sort first).
        initial: ``zeros`` or ``random`` weights (normal, deviation 1e-3).
        shuffle: draw the order of the examples for each epoch.
        random_state: seed of the order and of the random weights.

    Attributes:
        weights_: (r, k) weights.
        operations_: perceptron operations of the training: k inner products an example, and one update for
            each label that moves (table I).

    >>> X, Y = [[1.0, 0], [0, 1], [1, 1]], [[1, 0], [0, 1], [1, 1]]
    >>> mmp = MMP(epochs=2).fit(X, Y)
    >>> mmp.decision_function([[1.0, 0.0]])
    array([[ 1., -1.]])
    """

    parameters: ClassVar[type[LearnerParameters]] = MMPParameters
    algorithm: ClassVar[str] = "mmp"

    def __init__(
        self,
        epochs: int = 1,
        loss: Loss = "is_error",
        penalty: Penalty = "uniform",
        initial: Literal["zeros", "random"] = "zeros",
        shuffle: bool = False,
        random_state: int = 0,
    ) -> None:
        self.epochs = epochs
        self.loss = loss
        self.penalty = penalty
        self.initial = initial
        self.shuffle = shuffle
        self.random_state = random_state

    def _first_weights(self, r: int, k: int, parameters: MMPParameters, /) -> Floats:
        if parameters.initial == "zeros":
            return np.zeros((r, k))
        # Labels that come later draw other numbers than those that were there at first.
        seen = getattr(self, "n_presented_", 0)
        return np.random.default_rng([self.random_state, seen]).normal(scale=1e-3, size=(r, k))

    def _learn_chunk(
        self, X: Matrix, Y: Labels, parameters: MMPParameters, _first_time: bool, /
    ) -> tuple[None, Floats]:
        W, loss, penalty = self.weights_, parameters.loss, parameters.penalty
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
            candidates = (s >= s[relevant].min()).nonzero()[0]
            if len(candidates) == m:  # only the relevant labels reach the score of the worst of them
                continue
            irrelevant = candidates[~relevance[i, candidates]]
            up, down = shares(s[relevant], s[irrelevant], loss, penalty)
            moved = np.concatenate([relevant[up > 0], irrelevant[down > 0]])
            step = np.concatenate([up[up > 0], -down[down > 0]])
            cells = f[:, np.newaxis] * k + moved
            flat[cells] = rows.take(moved, axis=1) + x[:, np.newaxis] * step
            updates += len(moved)
        self.updates_ += updates
        self.operations_ += n * k + updates
        return None, scores


def shares(relevant: Floats, irrelevant: Floats, loss: Loss, penalty: Penalty) -> tuple[Floats, Floats]:
    """How far each label of a wrong ranking is moved: δ·|τ_c|/σ.

    Args:
        relevant: scores of all relevant labels, in label order.
        irrelevant: scores of the irrelevant labels that are misordered (with the worst relevant label, at
            least), in label order.
        loss: δ.
        penalty: p.

    Returns:
        the shares of the relevant and of the irrelevant labels; each sums to δ.

    >>> shares(np.array([0.0]), np.array([2.0, 1.0, 0.0]), "is_error", "uniform")
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
    delta, sigma = _loss(wrong, loss), p.sum()
    return delta * (p.sum(axis=1) / sigma), delta * (p.sum(axis=0) / sigma)


def _loss(wrong: Bools, loss: Loss) -> float:
    """δ of a wrong ranking, from which relevant label (rows) stands under which irrelevant one (columns).

    Irrelevant labels rank first among equals; irrelevant labels that are ordered well against every relevant
    one may be absent: they change no rank that counts.
    """
    if loss == "is_error":
        return 1.0
    if loss == "error_set_size":
        return float(np.count_nonzero(wrong))
    above = np.sort(
        wrong.sum(axis=1)
    )  # irrelevant labels above the best relevant label, the second best, ...
    m = len(above)
    if loss == "margin":
        return float(above[-1] + m - (np.count_nonzero(above == 0) + 1))
    position = np.arange(1, m + 1)
    return float(1.0 - (position / (position + above)).mean())
