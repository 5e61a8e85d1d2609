"""How many label sets need no person: the precision of those with the highest probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints

MAX_POINTS = 100
"""Maximum number of points of a coverage curve."""


@dataclass(frozen=True)
class CoveragePoint:
    """What happens if label sets are accepted from a certain probability on.

    Attributes:
        set_probability: label sets with at least this probability are accepted.
        coverage: share of the examples whose label set is accepted, above 0.
        precision: share of the accepted label sets that are right.
    """

    set_probability: float
    coverage: float
    precision: float


def coverage_curve(probabilities: Floats, right: Bools) -> list[CoveragePoint]:
    """Return precision by coverage, the smallest coverage first.

    Every point is exact. If there are more than ``MAX_POINTS`` different probabilities, the points are about
    equally spaced in coverage. The last one accepts every label set.

    Args:
        probabilities: (n,) the probability that the label set of each example is right.
        right: (n,) whether it is.

    >>> [(p.coverage, p.precision) for p in coverage_curve(np.array([0.9, 0.2]), np.array([True, False]))]
    [(0.5, 1.0), (1.0, 0.5)]
    """
    n = len(probabilities)
    thresholds, accepted, n_right = _cuts(probabilities, right)
    if len(accepted) > MAX_POINTS:
        wanted = np.arange(1, MAX_POINTS + 1) * (n / MAX_POINTS)
        chosen = np.unique(np.searchsorted(accepted, np.ceil(wanted - 1e-9)))
        thresholds, accepted, n_right = thresholds[chosen], accepted[chosen], n_right[chosen]
    return [
        CoveragePoint(set_probability=threshold, coverage=count / n, precision=correct / count)
        for threshold, count, correct in zip(
            thresholds.tolist(), accepted.tolist(), n_right.tolist(), strict=True
        )
    ]


def coverage_at_precision(probabilities: Floats, right: Bools, precision: float) -> float:
    """Return the largest share of the examples that can be accepted by probability at a given precision.

    Args:
        probabilities: (n,) the probability that the label set of each example is right.
        right: (n,) whether it is.
        precision: the smallest share of the accepted label sets that must be right.

    Returns:
        the share; 0 if no threshold reaches the precision, NaN if there are no examples.

    >>> coverage_at_precision(np.array([0.9, 0.8, 0.2]), np.array([True, True, False]), 0.95)
    0.6666666666666666
    """
    if not len(probabilities):
        return float("nan")
    _, accepted, n_right = _cuts(probabilities, right)
    # The tolerance is for the rounding of the product.
    enough = accepted[n_right >= precision * accepted - 1e-9]
    return float(enough.max(initial=0) / len(probabilities))


def _cuts(probabilities: Floats, right: Bools) -> tuple[Floats, Ints, Ints]:
    """Return the different probabilities, descending, and how many label sets have at least each of them.

    Returns:
        the probabilities, the number of label sets with at least each, and the number of right ones of these.
    """
    order = np.argsort(-probabilities, kind="stable")
    descending = probabilities[order]
    last_of_equals = np.append(descending[1:] != descending[:-1], True)[: len(order)]
    accepted = np.flatnonzero(last_of_equals) + 1
    return descending[last_of_equals], accepted, np.cumsum(right[order])[last_of_equals]
