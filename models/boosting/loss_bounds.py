"""Quick bounds of the losses of all candidates, to find the few candidates that need exact weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.boosting.bins import DocumentBins
from models.boosting.stumps import Stumps
from models.boosting.variants import BoostingVariant, loss

ROUNDING = float(np.finfo(np.float64).eps) / 2

TOTALS_ERROR = 256 * ROUNDING
"""Relative error of a sum over documents that NumPy computes pairwise or in blocks."""

CANCELLED = 1e-3
"""A difference of two sums is computed again as a sum if it is less than this share of the larger sum."""

_BUFFER_SIZE = 1 << 21  # numbers in a temporary array; 16 MiB


def summation_error(terms: float) -> float:
    """Relative error of a sum of non-negative numbers whose terms are added one after the other.

    This is the probabilistic bound λ √n u of Higham and Mary (2019, "A new approach to probabilistic rounding
    error analysis"), with λ = 8, which fails with probability below 3e-14.
    """
    return 8 * ROUNDING * float(np.sqrt(terms))


def normaliser_error(error: Floats, weight: Floats) -> Floats:
    """Largest error of a Z if each of its W has an error of at most ``error``.

    |√x − √y| ≤ √|x − y|, so 2 √(W₊W₋) on one side has an error of at most 2 √(error · (W₊ + W₋)), and the sum
    of both sides, whose weights add up to ``weight``, has an error of at most √(8 · error · weight). The same
    bound holds for the other variants and, by the Cauchy–Schwarz inequality, for sums over labels of errors
    and weights.
    """
    return np.sqrt(8 * error * weight) + 64 * ROUNDING * weight


def loss_bounds(variant: BoostingVariant, W: Floats, error: Floats) -> tuple[Floats, Floats]:
    """Lower and upper bounds of losses whose W have an error of at most ``error``.

    Every loss is an increasing function of each W.
    """
    return loss(variant, np.maximum(W - error, 0)), loss(variant, W + error)


def negatives_only_loss(variant: BoostingVariant, positive: Floats, negative_absent: Floats) -> Floats:
    """Losses of stumps whose present side has no positive document.

    They do not increase with the weight N₁ of the negative documents that have the feature; for ``real``, for
    example, they are 2 √(W₊ (W₋ − N₁)).

    Args:
        variant: the variant.
        positive: weight of the positive documents.
        negative_absent: weight of the negative documents on the absent side, W₋ − N₁.
    """
    if variant == "real":
        return 2 * np.sqrt(positive * negative_absent)
    if variant == "discrete":
        return 2 * np.minimum(positive, negative_absent)
    return positive + negative_absent


def required_negatives(
    variant: BoostingVariant, positive: Floats, negative: Floats, weight: Floats, limit: Floats
) -> Floats:
    """The N₁ from which such a stump's Z is at most ``limit``, or slightly less than that N₁.

    Args:
        variant: the variant.
        positive: (k,) weight of a label's positive documents.
        negative: (k,) weight of its negative documents.
        weight: (k,) the sum of both.
        limit: (k,) limit of Z.
    """
    margin = 64 * ROUNDING * weight
    if variant == "real":
        absent = np.divide(limit**2, 4 * positive, out=np.full_like(positive, np.inf), where=positive > 0)
        return negative - absent - margin
    if variant == "real_abstaining":
        return weight - limit - margin
    limit_loss = weight - np.sqrt(np.maximum(weight**2 - limit**2, 0)) + margin
    return np.where(2 * positive <= limit_loss, -np.inf, negative - limit_loss / 2 - margin)


def threshold_loss_bounds(
    stumps: Stumps,
    weights_of: Callable[[slice], Floats],
    positive: Floats,
    negative: Floats,
    variant: BoostingVariant,
) -> Iterator[tuple[slice, Floats, Floats]]:
    """Bounds of the losses of all threshold candidates, a block of labels at a time.

    If a candidate's list is the beginning of another list, one cumulative sum over the longer list gives the
    sums of both.

    Args:
        stumps: n candidates whose lists overlap.
        weights_of: returns the signed weights, (g, b), of a block of labels.
        positive: (k,) weight of a label's positive documents.
        negative: (k,) weight of its negative documents.
        variant: the variant.

    Yields:
        The labels, and (n, b) lower and upper bounds of the losses.
    """
    if stumps.bins is not None:
        yield from _binned_loss_bounds(stumps, stumps.bins, weights_of, positive, negative, variant)
        return
    n_labels = len(positive)
    width = max(1, min(n_labels, 2 * _BUFFER_SIZE // max(len(stumps), 1)))
    chunks = _feature_chunks(stumps, max(1, _BUFFER_SIZE // width))
    for first in range(0, n_labels, width):
        block = slice(first, min(first + width, n_labels))
        signed = weights_of(block)
        low, high = np.empty((2, len(stumps), signed.shape[1]))
        for candidates, entries in chunks:
            inside = signed[stumps.documents[entries]]
            begin = stumps.starts[candidates] - entries.start
            end = begin + stumps.lengths[candidates]
            listed_positive, most_positive = _range_sums(np.maximum(inside, 0), begin, end)
            listed_negative, most_negative = _range_sums(np.maximum(-inside, 0), begin, end)
            W = _side_weights(
                listed_positive,
                listed_negative,
                positive[block],
                negative[block],
                stumps.lists_absent[candidates],
            )
            error = summation_error(len(inside)) * np.maximum(most_positive, most_negative)
            error += TOTALS_ERROR * (positive[block] + negative[block])
            low[candidates], high[candidates] = loss_bounds(variant, W, error)
        yield block, low, high


def _binned_loss_bounds(
    stumps: Stumps,
    bins: DocumentBins,
    weights_of: Callable[[slice], Floats],
    positive: Floats,
    negative: Floats,
    variant: BoostingVariant,
) -> Iterator[tuple[slice, Floats, Floats]]:
    """``threshold_loss_bounds`` with sums over bins."""
    g = stumps.n_documents
    width = max(1, min(len(positive), 2 * _BUFFER_SIZE // max(len(stumps), g, 1)))
    longest = float(stumps.lengths.max(initial=1))
    for first in range(0, len(positive), width):
        block = slice(first, min(first + width, len(positive)))
        signed = weights_of(block)
        b = signed.shape[1]
        by_sign = np.empty((g, 2 * b))
        np.maximum(signed, 0, out=by_sign[:, :b])
        np.negative(signed, out=by_sign[:, b:])
        np.maximum(by_sign[:, b:], 0, out=by_sign[:, b:])
        listed = bins.listed_sums(by_sign)
        W = _side_weights(listed[:, :b], listed[:, b:], positive[block], negative[block], stumps.lists_absent)
        error = summation_error(longest) * np.maximum(listed[:, :b], listed[:, b:])
        error += TOTALS_ERROR * (positive[block] + negative[block])
        low, high = loss_bounds(variant, W, error)
        yield block, low, high


def _side_weights(
    listed_positive: Floats,
    listed_negative: Floats,
    positive: Floats,
    negative: Floats,
    lists_absent: Bools,
) -> Floats:
    """(4, n, b) the W of candidates, from the sums of their lists and the totals of the labels."""
    other_positive = np.maximum(positive - listed_positive, 0)
    other_negative = np.maximum(negative - listed_negative, 0)
    W = np.stack([other_positive, other_negative, listed_positive, listed_negative])
    W[:, lists_absent] = W[[2, 3, 0, 1]][:, lists_absent]
    return W


def _feature_chunks(stumps: Stumps, size: int) -> list[tuple[slice, slice]]:
    """Candidates and their entries of ``documents``, in chunks of about ``size`` entries.

    All candidates of a feature are in one chunk.
    """
    if not len(stumps):
        return []
    first = np.flatnonzero(np.diff(stumps.features, prepend=-1))
    begins = np.minimum.reduceat(stumps.starts, first)
    ends = np.maximum.reduceat(stumps.starts + stumps.lengths, first)
    last = np.append(first[1:], len(stumps))
    chunks: list[tuple[slice, slice]] = []
    feature = 0
    while feature < len(first):
        stop = feature + 1
        while stop < len(first) and ends[stop] - begins[feature] <= size:
            stop += 1
        chunks.append(
            (
                slice(int(first[feature]), int(last[stop - 1])),
                slice(int(begins[feature]), int(ends[stop - 1])),
            )
        )
        feature = stop
    return chunks


def _range_sums(weights: Floats, begin: Ints, end: Ints) -> tuple[Floats, Floats]:
    """The sums of the rows ``begin`` to ``end`` of the weights, and the total of each column."""
    cumulative = np.zeros((len(weights) + 1, weights.shape[1]))
    np.cumsum(weights, axis=0, out=cumulative[1:])
    return cumulative[end] - cumulative[begin], cumulative[-1]
