"""Whether probabilities are true: calibration errors, proper scores, and reliability diagrams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats

N_BINS = 10
"""Number of bins of equal width between the probabilities 0 and 1."""

LEAST_PROBABILITY = 0.1
"""Pairs of an example and a label count for the calibration error if their probability is above this one."""


@dataclass(frozen=True)
class ReliabilityBin:
    """Predictions of about the same probability.

    Attributes:
        low: lower bound of the probabilities, which does not belong to the bin unless it is 0.
        high: upper bound of the probabilities, which belongs to the bin.
        count: number of predictions in the bin.
        mean_probability: mean of their probabilities; None if there are none.
        observed_share: share of them that came true; None if there are none. It is equal to
            ``mean_probability`` if the probabilities are true.
    """

    low: float
    high: float
    count: int
    mean_probability: float | None
    observed_share: float | None


def reliability(probabilities: Floats, outcomes: Bools) -> list[ReliabilityBin]:
    """Return the reliability diagram of predictions: ``N_BINS`` bins of equal width, also empty ones.

    Args:
        probabilities: (n,) the predicted probabilities.
        outcomes: (n,) whether each prediction came true.

    >>> bins = reliability(np.array([0.625, 0.6875]), np.array([True, False]))
    >>> bins[6]
    ReliabilityBin(low=0.6, high=0.7, count=2, mean_probability=0.65625, observed_share=0.5)
    """
    counts, mean, share = _bins(probabilities, outcomes)
    return [
        ReliabilityBin(
            low=b / N_BINS,
            high=(b + 1) / N_BINS,
            count=count,
            mean_probability=float(mean[b]) if count else None,
            observed_share=float(share[b]) if count else None,
        )
        for b, count in enumerate(counts.astype(np.int64).tolist())
    ]


def expected_calibration_error(probabilities: Floats, outcomes: Bools) -> float:
    """Return the mean over predictions of the difference that their bin has in a reliability diagram.

    It is the sum over the bins of count / n · |mean probability - observed share| (Naeini, Cooper and
    Hauskrecht 2015), with ``N_BINS`` bins of equal width. Even true probabilities have an error above 0 by
    chance, about 0.3 · √(``N_BINS`` / n) if they are spread over all bins.

    Args:
        probabilities: (n,) the predicted probabilities.
        outcomes: (n,) whether each prediction came true.

    Returns:
        the error, or NaN if there are no predictions.

    >>> round(expected_calibration_error(np.array([0.61, 0.69]), np.array([True, False])), 12)
    0.15
    """
    if not len(probabilities):
        return float("nan")
    counts, mean, share = _bins(probabilities, outcomes)
    return float((counts * np.abs(mean - share)).sum() / len(probabilities))


def brier_score(probabilities: Floats, outcomes: Bools) -> float:
    """Return the mean of (probability - outcome)², which is between 0 and 1; NaN if there are no predictions.

    >>> brier_score(np.array([1.0, 0.5]), np.array([True, True]))
    0.125
    """
    return float(np.mean((probabilities - outcomes) ** 2)) if len(probabilities) else float("nan")


def log_loss(probabilities: Floats, outcomes: Bools) -> float:
    """Return the mean of minus the natural logarithm of the probability of what came true.

    Probabilities of what came true are at least the smallest positive float64 with full precision, so that
    the loss is finite. It is NaN if there are no predictions.

    >>> round(log_loss(np.array([0.5, 0.25]), np.array([True, False])), 4)
    0.4904
    """
    if not len(probabilities):
        return float("nan")
    of_outcome = np.where(outcomes, probabilities, 1.0 - probabilities)
    return float(-np.log(np.maximum(of_outcome, np.finfo(np.float64).tiny)).mean())


def probable(probabilities: Floats, outcomes: Bools) -> tuple[Floats, Bools]:
    """Return the predictions whose probability is above ``LEAST_PROBABILITY``.

    Most pairs of an example and a label have a probability near 0. A calibration error over all pairs would
    be near 0 whatever the others are.
    """
    keep = probabilities > LEAST_PROBABILITY
    return probabilities[keep], outcomes[keep]


def _bins(probabilities: Floats, outcomes: Bools) -> tuple[Floats, Floats, Floats]:
    """Return the number of predictions, the mean probability and the share that came true of each bin."""
    edges = np.arange(1, N_BINS) / N_BINS
    bin_of = np.searchsorted(edges, probabilities, side="left")
    counts = np.bincount(bin_of, minlength=N_BINS).astype(np.float64)
    n = np.maximum(counts, 1.0)
    mean = np.bincount(bin_of, weights=probabilities, minlength=N_BINS) / n
    share = np.bincount(bin_of, weights=outcomes.astype(np.float64), minlength=N_BINS) / n
    return counts, mean, share
