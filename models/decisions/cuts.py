"""Cuts of scores: the possible thresholds, and what each of them predicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from models.arrays import Bools, Floats

NEVER = float(np.finfo(np.float64).max)
"""The threshold of a label that is never predicted."""

_BLOCK = 2**20
"""Pairs of example and label that are counted at once, which limits the memory."""

_ROUNDING = 1e-12
"""Share of a count by which a recall may be missed, because of rounding."""

_SURE = 1.2815515655446004
"""The 90 % quantile of the standard normal distribution."""


class Cuts(Protocol):
    """Possible thresholds in descending order. The first one predicts as little as possible.

    Attributes:
        tp: (c,) the relevant pairs above each threshold; ascending.
        fp: (c,) the other pairs above each threshold; ascending.
        positives: the number of relevant pairs.
    """

    @property
    def tp(self) -> Floats: ...  # noqa: D102

    @property
    def fp(self) -> Floats: ...  # noqa: D102

    @property
    def positives(self) -> float: ...  # noqa: D102

    def threshold(self, cut: int) -> float:
        """Return the threshold of a cut."""
        ...


class EstimatedCuts(Cuts, Protocol):
    """Cuts with an estimate of what is right above them.

    Attributes:
        expected: (c,) the sum of the probabilities of all pairs above each threshold; ascending.
    """

    @property
    def expected(self) -> Floats: ...  # noqa: D102


@dataclass(frozen=True)
class LabelCuts:
    """The cuts of the scores of one label: one above all scores, and one below each distinct score."""

    distinct: Floats
    tp: Floats
    fp: Floats
    positives: float

    @classmethod
    def of(cls, descending: Floats, relevant: Bools) -> Self:
        """Count the pairs above each threshold.

        Args:
            descending: (g,) scores in descending order, at least one.
            relevant: (g,) whether each example has the label.
        """
        last_of_equals = np.append(descending[:-1] != descending[1:], True)
        n_predicted = np.flatnonzero(last_of_equals) + 1
        tp = np.cumsum(relevant)[last_of_equals]
        return cls(
            distinct=descending[last_of_equals],
            tp=np.concatenate([[0.0], tp]),
            fp=np.concatenate([[0.0], n_predicted - tp]),
            positives=int(relevant.sum()),
        )

    def threshold(self, cut: int) -> float:
        """Return the midpoint between two distinct scores, or a threshold beyond either end."""
        if cut == 0:
            return float(self.distinct[0]) + 1.0
        if cut == len(self.distinct):
            return float(self.distinct[-1]) - 1.0
        return between(float(self.distinct[cut]), float(self.distinct[cut - 1]))


@dataclass(frozen=True)
class PooledCuts:
    """The cuts of the scores of all labels together: one above all scores, one below each relevant pair.

    No other cut is better, because the cut above it has as many relevant pairs and fewer others. So only the
    scores of the relevant pairs are sorted; the other pairs are counted between them, a block at a time. For
    h examples, k labels and p relevant pairs this takes O(h·k·log p) steps, and O(p) memory and a block.

    Attributes:
        scores: (h, k) the scores. A pair with the score ∞ is predicted by every cut, with −∞ by none.
        counted: (h, k) whether each pair counts.
        distinct: the finite scores of relevant pairs, ascending.
    """

    scores: Floats
    counted: Bools
    distinct: Floats
    tp: Floats
    fp: Floats
    positives: float

    @classmethod
    def of(
        cls,
        scores: Floats,
        relevant: Bools,
        known: Bools | None = None,
        *,
        tp_weights: Floats | None = None,
        fp_weights: Floats | None = None,
    ) -> Self:
        """Count the pairs above each threshold.

        Args:
            scores: (h, k) scores.
            relevant: (h, k) whether each example has each label.
            known: (h, k) false for unknown labels, which do not count; None if there are none.
            tp_weights: (k,) what a relevant pair of each label counts; 1 by default.
            fp_weights: (k,) what another pair counts.
        """
        counted = np.ones(scores.shape, dtype=np.bool_) if known is None else known
        positives = scores[relevant & counted]
        distinct = np.unique(positives[np.isfinite(positives)])
        lowest = distinct[0] if len(distinct) else np.inf
        # How many pairs each cut predicts in addition to the cut above it.
        tp, fp = np.zeros(len(distinct) + 2), np.zeros(len(distinct) + 2)
        for block in _blocks(scores.shape):
            predicted = counted[block] & (scores[block] >= lowest)  # by any cut
            for totals, of_kind, weights in (
                (tp, relevant[block], tp_weights),
                (fp, ~relevant[block], fp_weights),
            ):
                pairs = predicted & of_kind
                values = scores[block][pairs]
                first_cut = len(distinct) + 1 - np.searchsorted(distinct, values, side="right")
                first_cut[values == np.inf] = 0
                counts = None if weights is None else np.broadcast_to(weights, pairs.shape)[pairs]
                np.add(totals, np.bincount(first_cut, counts, minlength=len(totals)), out=totals)
        return cls(
            scores=scores,
            counted=counted,
            distinct=distinct,
            tp=np.cumsum(tp)[:-1],
            fp=np.cumsum(fp)[:-1],
            positives=float(
                len(positives)
                if tp_weights is None
                else ((relevant & counted).sum(axis=0) * tp_weights).sum()
            ),
        )

    def threshold(self, cut: int) -> float:
        """Return the midpoint between two distinct scores, or a threshold beyond either end."""
        upper = np.inf if cut == 0 else float(self.distinct[-cut])
        lower = max(
            (float(self._below(block, upper).max(initial=-np.inf)) for block in _blocks(self.scores.shape)),
            default=-np.inf,
        )
        if cut == 0:
            return lower + 1.0 if lower > -np.inf else 0.0
        return between(lower, upper) if lower > -np.inf else upper - 1.0

    def _below(self, block: slice, upper: float) -> Floats:
        scores = self.scores[block]
        return scores[self.counted[block] & (scores < upper)]


def best_f1(cuts: Cuts) -> tuple[int, float]:
    """Return the highest cut with the best F1, and its F1."""
    # Equal fractions of integers are equal floats, so ties are exact.
    f1 = 2 * cuts.tp / np.maximum(cuts.tp + cuts.fp + cuts.positives, 1)
    best = int(np.argmax(f1))
    return best, float(f1[best])


def least_cost(cuts: Cuts, false_label: float = 1.0, missed_label: float = 1.0) -> int:
    """Return the highest cut with the least cost of false and missed labels."""
    return int(np.argmax(missed_label * cuts.tp - false_label * cuts.fp))


def reach_precision(cuts: EstimatedCuts, value: float) -> int | None:
    """Return the lowest cut whose precision is surely at least a value.

    The precision above a cut is the mean calibrated probability of the n pairs above it. The observed share
    of right ones would be too high, because the best of many cuts is also the luckiest one. The mean must
    exceed the value by so much that as many pairs with exactly this precision would rarely reach it: the
    one-sided score test of a share at the level 10 % (Wilson 1927). So a few pairs never suffice, however
    probable they are, and a precision of 1 is never sure.

    Returns:
        the cut; None if there is none.
    """
    n = cuts.tp + cuts.fp
    enough = (n > 0) & (cuts.expected - value * n >= _SURE * np.sqrt(value * (1 - value) * n))
    return int(np.flatnonzero(enough)[-1]) if enough.any() else None


def reach_recall(cuts: Cuts, value: float) -> int:
    """Return the highest cut with at least this recall, or the lowest cut if no cut has it."""
    enough = cuts.tp >= value * cuts.positives * (1 - _ROUNDING)
    return int(np.argmax(enough)) if enough.any() else len(cuts.tp) - 1


def between(lower: float, upper: float) -> float:
    """Return a threshold that is at least ``lower`` and below ``upper``."""
    middle = (upper + lower) / 2
    # The midpoint of two adjacent floats rounds to one of them. It must not be the upper one.
    return middle if middle < upper else lower


def _blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    step = max(1, _BLOCK // max(1, shape[1]))
    return (slice(first, first + step) for first in range(0, shape[0], step))
