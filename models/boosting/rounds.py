"""What the rounds of AdaBoost.MH and MP-Boost share: the signed weights D, their totals, and their growth."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from models.arrays import AnyArray, Floats, Ints
from models.boosting.hypothesis import WeakHypothesis, group_sums
from models.boosting.loss_bounds import TOTALS_ERROR, summation_error
from models.boosting.positive_pairs import PositivePairs
from models.boosting.stumps import Stumps
from models.boosting.variants import BoostingVariant


class Rounds(ABC):
    """The state of a training between two rounds.

    Args:
        stumps: the candidates.
        variant: the variant.
        smoothing: ε of equation 4.
        positives: the rows of the positive examples of each of the k labels.
        weights: |D|, of documents and labels in either order.
        places: where the pairs of ``positives`` are in the flat weights, label by label.
        excluded: for each label, the candidates that it may not use; None if it may use all.

    Attributes:
        weights: D with the sign of Φ: negative if the label is irrelevant.
    """

    def __init__(
        self,
        stumps: Stumps,
        variant: BoostingVariant,
        smoothing: float,
        positives: list[AnyArray],
        weights: Floats,
        places: Ints,
        *,
        excluded: list[AnyArray] | None = None,
    ) -> None:
        self._stumps = stumps
        self._variant: BoostingVariant = variant
        self._smoothing = smoothing
        self._n_labels = len(positives)
        self._positive_labels = labels_of(positives)
        self._places = places
        self.weights: Floats = np.negative(weights, out=weights)
        self.weights.flat[places] *= -1
        self._listed = np.zeros(weights.size // max(1, self._n_labels), dtype=np.bool_)
        if stumps.by_presence:
            self._rows_of_stumps = stumps.matrix().T.tocsr()
            self._pairs = PositivePairs(self._rows_of_stumps, positives, excluded)
            self._totals_error = TOTALS_ERROR + summation_error(self._pairs.longest)

    @abstractmethod
    def choose_pivots(self) -> Ints | None:
        """The candidates for the next pivots; None if no candidate reduces Z."""

    @abstractmethod
    def boost(self, pivots: Ints) -> tuple[WeakHypothesis, Floats]:
        """Take a round with these candidates as pivots.

        Returns:
            The weak hypothesis, and Z* for each pivot.
        """

    @abstractmethod
    def stop(self, labels: Ints) -> None:
        """End the training of labels, if each label has its own pivot."""

    @abstractmethod
    def _sum_negatives(self) -> Floats:
        """(k,) the total negative weight of each label, while the positive weights are 0.

        This is also the moment to compute the sums of candidates again.
        """

    def _update_totals(self) -> None:
        """Compute the totals of the current weights."""
        flat = self.weights.reshape(-1)
        self._positive_weights: Floats = flat[self._places]
        self._positive = group_sums(self._positive_labels, self._positive_weights, self._n_labels)
        flat[self._places] = 0
        self._negative = self._sum_negatives()
        flat[self._places] = self._positive_weights


def labels_of(positives: list[AnyArray]) -> Ints:
    """Return the label of each pair of a positive example and its label, label by label."""
    return np.repeat(np.arange(len(positives)), [len(rows) for rows in positives])


def growth_of(absent: Floats, present: Floats) -> Floats:
    """Return the factors exp(−Φ Φ̂) of the weights of the four sides, (4, k), before the normaliser."""
    growth: Floats = np.exp(np.stack([-absent, absent, -present, present]))
    return growth
