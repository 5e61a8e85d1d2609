"""Converts the score of a label to its probability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats

MAX_LOGIT = 30.0
"""Largest logit of a probability, so that none is exactly 0 or 1."""

_LARGEST = 1e9
"""Largest standardised score, so that no product overflows."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelCalibration:
    """Converts scores to probabilities of labels.

    The probability p of a label with score x is a beta calibration (Kull, Silva Filho and Flach 2017) of
    s = σ(z), where z = ``compress``((x - ``center``) / ``spread``) is the standardised score:

        logit p = ``left`` · ln s - ``right`` · ln(1 - s) + ``offset``

    Both slopes are positive, so that p increases with the score.

    Attributes:
        center: (k,) mean of the held-out scores of each label.
        spread: (k,) their standard deviation, above 0.
        left: (k,) slope of the logit where scores are far below the center, above 0.
        right: (k,) slope of the logit where scores are far above the center, above 0.
        offset: (k,) moves the logit up or down.
    """

    center: Floats
    spread: Floats
    left: Floats
    right: Floats
    offset: Floats

    def label_probabilities(self, scores: Floats) -> Floats:
        """Return the probability of each label, (n, k), strictly between 0 and 1, for scores, (n, k)."""
        with np.errstate(over="ignore"):
            z = (scores - self.center) / self.spread
        return expit(self._logits(compress(bounded(z, _LARGEST))))

    def thresholds_at(self, probabilities: Floats) -> Floats:
        """Return the score at which each label has the given probability.

        Args:
            probabilities: (k,) one probability for each label.

        Returns:
            (k,) finite scores. At probability 0 or 1 it is a score where probabilities no longer change.
        """
        with np.errstate(divide="ignore"):
            target = np.clip(np.log(probabilities) - np.log1p(-probabilities), -MAX_LOGIT, MAX_LOGIT)
        low, high = np.full(target.shape, -_LARGEST), np.full(target.shape, _LARGEST)
        # The logits increase, so halving the interval often enough finds the score to the last bit.
        for _ in range(90):
            middle = (low + high) / 2
            above = self._logits(compress(middle)) >= target
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return self.center + self.spread * high

    def _logits(self, z: Floats) -> Floats:
        # -ln(1 - s) = ln(1 + e^z), and ln s = z - ln(1 + e^z)
        softplus = np.logaddexp(0.0, z)
        logits = self.left * (z - softplus) + self.right * softplus + self.offset
        return bounded(logits, MAX_LOGIT)


def bounded(values: Floats, bound: float) -> Floats:
    """Return values between -``bound`` and ``bound``, faster than ``np.clip`` for short arrays."""
    limited: Floats = np.minimum(np.maximum(values, -bound), bound)
    return limited


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
