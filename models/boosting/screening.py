"""Quick sums over all candidates, with known errors, to find the few that are to be weighed exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from models.arrays import Floats, Ints
from models.boosting.stumps import Stumps
from models.boosting.variants import Variant, loss

ROUNDING = float(np.finfo(np.float64).eps) / 2

TOTALS_ERROR = 256 * ROUNDING
"""Relative error of a sum over documents that numpy adds up pairwise, or in blocks."""

_ENTRIES = 1 << 21  # numbers that a temporary array may hold; sixteen megabytes


def sum_error(terms: float) -> float:
    """Relative error of a sum of non-negative numbers, the terms added one after the other.

    The probabilistic bound λ √n u of Higham and Mary (2019, "A new approach to probabilistic rounding error
    analysis"), with λ = 8, which fails with probability below 3e-14.
    """
    return 8 * ROUNDING * float(np.sqrt(terms))


def slack(error: Floats, weight: Floats) -> Floats:
    """How far a screened Z may be from the true one when each of its W is off by at most ``error``.

    |√x − √y| ≤ √|x − y|, so 2 √(W₊W₋) on one side is off by at most 2 √(error · (W₊ + W₋)), and on both sides
    together, whose weights add up to ``weight``, by √(8 · error · weight). The same bound holds for the other
    variants and, by Cauchy and Schwarz, for sums over labels of errors and weights.
    """
    return np.sqrt(8 * error * weight) + 64 * ROUNDING * weight


def interval(variant: Variant, W: Floats, error: Floats) -> tuple[Floats, Floats]:
    """Bounds of losses whose W are off by at most ``error``; every loss rises with each W."""
    return loss(variant, np.maximum(W - error, 0)), loss(variant, W + error)


def free_loss(variant: Variant, positive: Floats, negative_absent: Floats) -> Floats:
    """Losses of questions whose present side holds no positive document.

    They fall, or stay, as the weight N₁ of the negatives that hold the feature grows: 2 √(W₊ (W₋ − N₁)).
    """
    if variant == "real":
        return 2 * np.sqrt(positive * negative_absent)
    if variant == "discrete":
        return 2 * np.minimum(positive, negative_absent)
    return positive + negative_absent


def free_reach(variant: Variant, positive: Floats, negative: Floats, weight: Floats, limit: Floats) -> Floats:
    """The N₁ from which on the Z of such a question is at most ``limit``, or a little less."""
    margin = 64 * ROUNDING * weight
    if variant == "real":
        needed = np.divide(limit**2, 4 * positive, out=np.full_like(positive, np.inf), where=positive > 0)
        return negative - needed - margin
    if variant == "real_abstaining":
        return weight - limit - margin
    missed = weight - np.sqrt(np.maximum(weight**2 - limit**2, 0)) + margin
    return np.where(2 * positive <= missed, -np.inf, negative - missed / 2 - margin)


def threshold_losses(
    stumps: Stumps,
    weights_of: Callable[[slice], Floats],
    positive: Floats,
    negative: Floats,
    variant: Variant,
) -> Iterator[tuple[slice, Floats, Floats]]:
    """Between what the losses of all threshold candidates lie, a block of labels at a time.

    Sums over a list that is the beginning of another come from one running sum over the longer.

    Args:
        stumps: n candidates whose lists overlap.
        weights_of: gives the signed weights, (g, b), of a block of labels.
        positive: (k,) weight of a label's positive documents.
        negative: (k,) weight of its negative documents.
        variant: the variant.

    Yields:
        labels, and (n, b) lower and upper bounds of the losses.
    """
    n_labels = len(positive)
    width = max(1, min(n_labels, 2 * _ENTRIES // max(len(stumps), 1)))
    pieces = _whole_features(stumps, max(1, _ENTRIES // width))
    for first in range(0, n_labels, width):
        block = slice(first, min(first + width, n_labels))
        signed = weights_of(block)
        low, high = np.empty((2, len(stumps), signed.shape[1]))
        for candidates, entries in pieces:
            inside = signed[stumps.documents[entries]]
            begin = stumps.starts[candidates] - entries.start
            end = begin + stumps.lengths[candidates]
            listed_positive, most_positive = _runs(np.maximum(inside, 0), begin, end)
            listed_negative, most_negative = _runs(np.maximum(-inside, 0), begin, end)
            other_positive = np.maximum(positive[block] - listed_positive, 0)
            other_negative = np.maximum(negative[block] - listed_negative, 0)
            W = np.stack([other_positive, other_negative, listed_positive, listed_negative])
            swap = stumps.lists_absent[candidates]
            W[:, swap] = W[[2, 3, 0, 1]][:, swap]
            error = sum_error(len(inside)) * np.maximum(most_positive, most_negative)
            error += TOTALS_ERROR * (positive[block] + negative[block])
            low[candidates], high[candidates] = interval(variant, W, error)
        yield block, low, high


def _whole_features(stumps: Stumps, entries: int) -> list[tuple[slice, slice]]:
    """Candidates and entries of ``documents`` in pieces of about ``entries``, no feature in two pieces."""
    if not len(stumps):
        return []
    first = np.flatnonzero(np.diff(stumps.features, prepend=-1))
    reach = stumps.starts + stumps.lengths
    begins = np.minimum.reduceat(stumps.starts, first)
    ends = np.maximum.reduceat(reach, first)
    last = np.append(first[1:], len(stumps))
    pieces: list[tuple[slice, slice]] = []
    feature = 0
    while feature < len(first):
        stop = feature + 1
        while stop < len(first) and ends[stop] - begins[feature] <= entries:
            stop += 1
        pieces.append(
            (
                slice(int(first[feature]), int(last[stop - 1])),
                slice(int(begins[feature]), int(ends[stop - 1])),
            )
        )
        feature = stop
    return pieces


def _runs(weights: Floats, begin: Ints, end: Ints) -> tuple[Floats, Floats]:
    """Sums of rows begin..end of the weights, and the total of each column."""
    running = np.zeros((len(weights) + 1, weights.shape[1]))
    np.cumsum(weights, axis=0, out=running[1:])
    return running[end] - running[begin], running[-1]
