"""Plain vectorised rounds of AdaBoost.MH and MP-Boost, with which the learners are compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arrays import Floats, Ints, Labels, Matrix

TIE = 1e-12
"""Largest difference of Z by which terms are tied."""


class PlainRounds:
    """The plain round: two sparse-dense products, and Z for every term and label.

    Args:
        X: (g, r) which terms the documents have.
        Y: (g, k) their labels.
        together: whether all labels share a pivot, as in AdaBoost.MH.
    """

    def __init__(self, X: Matrix, Y: Labels, *, together: bool) -> None:
        self.terms: Any = X.T.tocsr()
        self.relevant = Y.toarray().astype(bool)
        self.together = together
        self.smoothing = 1 / (Y.shape[0] * Y.shape[1])
        g, positives = Y.shape[0], self.relevant.sum(axis=0)
        frequency = np.diff(self.terms.indptr)[:, None]
        n_positive = np.asarray(self.terms @ self.relevant.astype(float))
        n_negative = frequency - n_positive
        counts = (positives - n_positive, g - positives - n_negative, n_positive, n_negative)
        self.empty = [count == 0 for count in counts]
        self.D: Floats = np.full(Y.shape, 1 / g)
        self.W: list[Floats] = []
        self.Z: Floats = np.zeros((X.shape[1], 1))

    def choose_pivots(self) -> Ints:
        """Return the pivot of each search."""
        positive = self.D * self.relevant
        negative = self.D - positive
        present_positive, present_negative = self.terms @ positive, self.terms @ negative
        absent_positive = positive.sum(axis=0) - present_positive
        absent_negative = negative.sum(axis=0) - present_negative
        self.W = [absent_positive, absent_negative, present_positive, present_negative]
        for side, empty in zip(self.W, self.empty, strict=True):
            side[empty] = 0
            np.maximum(side, 0, out=side)
        Z = 2 * (np.sqrt(absent_positive * absent_negative) + np.sqrt(present_positive * present_negative))
        self.Z = Z.sum(axis=1, keepdims=True) if self.together else Z
        return np.asarray((self.Z.min(axis=0) + TIE >= self.Z).argmax(axis=0))

    def constants(self, pivots: Ints) -> tuple[Floats, Floats]:
        """Return the predictions of each label's pivot for documents without and with the term."""
        chosen = [side[pivots, np.arange(len(pivots))] + self.smoothing for side in self.W]
        return 0.5 * np.log(chosen[0] / chosen[1]), 0.5 * np.log(chosen[2] / chosen[3])

    def boost(self, pivots: Ints) -> None:
        """Multiply the weights, and divide them by their sums."""
        pivot = np.broadcast_to(pivots, self.D.shape[1])
        absent, present = self.constants(pivot)
        present_documents = self.terms[pivot].toarray().T != 0
        self.D *= np.exp(np.where(self.relevant, -1, 1) * np.where(present_documents, present, absent))
        self.D /= self.D.sum() if self.together else self.D.sum(axis=0)


class RandomTies(PlainRounds):
    """The round of MP-Boost in which each label draws one of the terms with the smallest Z.

    A study: no learner has this option.
    """

    def __init__(self, X: Matrix, Y: Labels, rng: np.random.Generator) -> None:
        super().__init__(X, Y, together=False)
        self.rng = rng

    def choose_pivots(self) -> Ints:
        """Return a random one of each label's best terms."""
        super().choose_pivots()
        tied = self.Z.min(axis=0) + TIE >= self.Z
        terms, labels = tied.nonzero()
        order = np.lexsort((self.rng.random(len(terms)), labels))
        first = np.unique(labels[order], return_index=True)[1]
        return np.asarray(terms[order[first]])
