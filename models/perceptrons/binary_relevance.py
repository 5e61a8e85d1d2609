"""Binary relevance: one independent perceptron for each label.

Section II-B of Loza Mencía and Fürnkranz, "Pairwise Learning of Multilabel Classifications with Perceptrons"
(2008).
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from models.arrays import Floats, Ints, Labels, Matrix, Vector
from models.base import LearnerParameters
from models.perceptrons.initial_weights import Initial
from models.perceptrons.one_per_label import OnePerLabelPerceptrons


class BinaryRelevancePerceptronParameters(LearnerParameters):
    """Parameters of ``binary_relevance_perceptron``."""

    algorithm: Literal["binary_relevance_perceptron"]
    epochs: int = Field(1, ge=1, le=1_000)
    """Number of passes over the training examples."""
    margin: float = Field(0.0, ge=0, le=1e6)
    """Also update a perceptron whose inner product is on the right side, but closer to 0 than this number
    (Krauth and Mézard, 1987). Try 1 to 4 for features of unit length and several epochs."""
    initial: Initial = "zeros"
    """Initial weights: zeros, or random from a normal distribution with standard deviation 1e-3."""
    shuffle: bool = False
    """Present the examples in random order, drawn with the seed for each epoch, instead of the order of the
    data set."""

    def trains_labels_separately(self) -> bool:
        """Return true: each label has its own perceptron."""
        return True


class BinaryRelevancePerceptron(OnePerLabelPerceptrons):
    """One perceptron for each label: o = sgn(w·x) with sgn(0) = +1, and w ← w + (y - o)·x (eqs. 1 to 3).

    The score is the inner product. A label of every example seen so far has the constant score +1. A
    perceptron does not see the examples for which its label is unknown.

    Attributes:
        weights_: (r, k) weights.
        operations_: perceptron operations of the training: k inner products for each example, and one update
            for each wrong prediction of a label, or one within the margin (table I).

    >>> X, Y = [[1.0, 0], [0, 1]], [[1, 0], [0, 1]]
    >>> BinaryRelevancePerceptron(epochs=2).fit(X, Y).decision_function([[1.0, 0.0]])
    array([[ 0., -2.]])
    """

    parameters: ClassVar[type[LearnerParameters]] = BinaryRelevancePerceptronParameters
    algorithm: ClassVar[str] = "binary_relevance_perceptron"
    randomized: ClassVar[bool] = True
    needs_scaled_features: ClassVar[bool] = True

    def _learn_chunk(
        self,
        X: Matrix,
        Y: Labels,
        unknown: Labels | None,
        _weights: Floats | None,
        parameters: BinaryRelevancePerceptronParameters,
        first_time: bool,
        /,
    ) -> tuple[None, Floats]:
        W, margin = self.weights_, parameters.margin
        k, n = W.shape[1], X.shape[0]
        flat = W.reshape(-1)
        scores, relevance = np.empty((n, k)), Y.toarray().astype(np.bool_)
        known = None if unknown is None else ~unknown.toarray().astype(np.bool_)
        begin, features, values = X.indptr.tolist(), X.indices.astype(np.intp), X.data
        updates = 0
        for i in range(n):
            x, f = values[begin[i] : begin[i + 1]], features[begin[i] : begin[i + 1]]
            rows = W.take(f, axis=0)
            s = np.einsum("i,ij->j", x, rows, out=scores[i])
            mistakes = (s >= 0) != relevance[i]
            if margin:
                mistakes |= np.abs(s) < margin
            wrong = (mistakes if known is None else mistakes & known[i]).nonzero()[0]
            if len(wrong):
                step = np.where(relevance[i, wrong], 2.0, -2.0)
                cells = f[:, np.newaxis] * k + wrong
                flat[cells] = rows.take(wrong, axis=1) + x[:, np.newaxis] * step
                updates += len(wrong)
        self.updates_ += updates
        self.operations_ += n * k - (0 if unknown is None else int(unknown.nnz)) + updates
        before = np.vstack([np.zeros((1, k), dtype=np.int64), np.cumsum(relevance, axis=0)[:-1]])
        if first_time:
            seen = self._known_counts() + (
                np.arange(n)[:, np.newaxis]
                if known is None
                else np.vstack([np.zeros((1, k), dtype=np.int64), np.cumsum(known, axis=0)[:-1]])
            )
            scores[(self.label_counts_ + before == seen) & (seen > 0)] = 1.0
        else:
            scores[:, self._in_every_example()] = 1.0
        return None, scores

    def _scores(self, X: Matrix | Vector) -> Floats:
        scores = super()._scores(X)
        scores[:, self._in_every_example()] = 1.0
        return scores

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """Return the terms w_f·x_f of the inner product; none for a label with a constant score."""
        if self._in_every_example()[label]:
            return np.empty(0, dtype=np.int64), np.empty(0)
        return super().explain(x, label)

    def _summarize(self) -> None:
        super()._summarize()
        self._warn_constant_labels()
