"""Converts the score of a label to its probability."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from models.arrays import Floats

MAX_LOGIT = 30.0
"""Largest logit of a probability, so that none is exactly 0 or 1."""

_LARGEST = 1e9
"""Largest standardised score, so that no product overflows."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelCalibration:
    """Converts scores to probabilities of labels.

    The logit of a probability is an increasing, continuous, piecewise linear function of the standardised
    score z = ``compress``((x - ``center``) / ``spread``):

        logit p = ``offset`` + s₀ z + Σⱼ (sⱼ - sⱼ₋₁) max(z - κⱼ, 0)

    with the knots κ₁ ≤ κ₂ ≤ … and the positive slope sⱼ above κⱼ. It is at most ``max_logit``,
    because a label with few examples is never certain.

    Attributes:
        center: (k,) mean of the held-out scores of each label.
        spread: (k,) their standard deviation, above 0.
        knots: (k, m) the knots of each label, in ascending order.
        slopes: (k, m + 1) the slopes below, between and above the knots, above 0.
        offset: (k,) moves the logit up or down.
        max_logit: (k,) the largest logit, at most ``MAX_LOGIT``.
    """

    center: Floats
    spread: Floats
    knots: Floats
    slopes: Floats
    offset: Floats
    max_logit: Floats
    _bends: Floats = field(init=False, repr=False)
    """(m, 1, k) the change of the slope at each knot."""
    _knots: Floats = field(init=False, repr=False)
    _first_slope: Floats = field(init=False, repr=False)
    _width: Floats = field(init=False, repr=False)
    _lowest: Floats = field(init=False, repr=False)
    """(k,) the scores from which logits no longer decrease, and with which nothing overflows."""
    _highest: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        k = len(self.center)
        arrays = {
            "_bends": 2.0 * np.ascontiguousarray(np.diff(self.slopes, axis=1).T)[:, np.newaxis],
            "_knots": 0.5 * np.ascontiguousarray(self.knots.T)[:, np.newaxis],
            "_first_slope": 2.0 * self.slopes[:, 0],
            "_width": 2.0 * self.spread,
        }
        for name, array in arrays.items():
            object.__setattr__(self, name, array)
        with np.errstate(over="ignore"):  # an infinite bound is none
            object.__setattr__(self, "_lowest", self.thresholds_at(np.zeros(k)))
            object.__setattr__(self, "_highest", self.thresholds_at(np.ones(k)))

    def label_logits(self, scores: Floats) -> Floats:
        """Return the logit of the probability of each label, (n, k), for scores, (n, k).

        Logits are between ``-MAX_LOGIT`` and ``max_logit``.
        """
        # A single document needs few microseconds, so there are few operations, most of them in place.
        h = np.maximum(scores, self._lowest)
        np.minimum(h, self._highest, out=h)
        h -= self.center
        h /= self._width
        logits = self._logits(h)
        # A steep function can exceed the bounds between two neighbouring scores.
        np.maximum(logits, -MAX_LOGIT, out=logits)
        np.minimum(logits, self.max_logit, out=logits)
        return logits

    def label_probabilities(self, scores: Floats) -> Floats:
        """Return the probability of each label, (n, k), strictly between 0 and 1, for scores, (n, k)."""
        return expit(self.label_logits(scores))

    def thresholds_at(self, probabilities: Floats) -> Floats:
        """Return the score at which each label has the given probability.

        Args:
            probabilities: (k,) one probability for each label.

        Returns:
            (k,) finite scores. At a probability that no score has, it is a score from which probabilities no
            longer change.
        """
        with np.errstate(divide="ignore"):
            target = np.log(probabilities) - np.log1p(-probabilities)
        target = np.minimum(np.maximum(target, -MAX_LOGIT), self.max_logit)
        low, high = np.full(target.shape, -_LARGEST), np.full(target.shape, _LARGEST)
        # The logits increase, so halving the interval often enough finds the score to the last bit.
        for _ in range(90):
            middle = (low + high) / 2
            above = self._logits(middle[np.newaxis] / 2)[0] >= target
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return self.center + self.spread * high

    def _logits(self, h: Floats) -> Floats:
        """Return the logits for half of the standardised scores, (n, k), which are overwritten."""
        np.arcsinh(h, out=h)  # half of the compressed score
        logits: Floats = h * self._first_slope
        logits += self.offset
        if len(h) == 1:  # few operations; for many documents, they would take m times the memory
            logits += np.add.reduce(self._above_knots(h, self._knots, self._bends), axis=0)
            return logits
        # The same sums in the same order.
        total = np.zeros_like(h)
        for knots, bends in zip(self._knots, self._bends, strict=True):
            total += self._above_knots(h, knots, bends)
        logits += total
        return logits

    @staticmethod
    def _above_knots(h: Floats, knots: Floats, bends: Floats) -> Floats:
        above: Floats = h - knots
        np.maximum(above, 0.0, out=above)
        above *= bends
        return above


def compress(z: Floats) -> Floats:
    """Return 2 asinh(z / 2): about z near 0, and only the logarithm of z far from 0.

    The scores of a rare label have long tails: its few positive examples are many standard deviations away,
    and without this the logits of their probabilities would be, too.
    """
    compressed: Floats = 2.0 * np.arcsinh(z / 2.0)
    return compressed


def expit(logits: Floats) -> Floats:
    """Return 1 / (1 + e^-x) for logits of at most ``MAX_LOGIT``.

    >>> expit(np.array([0.0, -MAX_LOGIT])).tolist()
    [0.5, 9.357622968839299e-14]
    """
    probabilities: Floats = 1.0 / (1.0 + np.exp(-logits))
    return probabilities
