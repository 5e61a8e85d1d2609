"""Quick sums over all candidates, with known errors, to find the few that are to be weighed exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import diags_array

from models.arrays import AnyArray, Bools, Floats, Ints, Labels, Matrix
from models.boosting.stumps import Stumps
from models.boosting.variants import Variant, loss

ROUNDING = float(np.finfo(np.float64).eps) / 2
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


def free_loss(variant: Variant, positive: Floats, negative_absent: Floats) -> Floats:
    """Losses of questions whose present side holds no positive document.

    They fall, or stay, as the weight N₁ of the negatives that hold the feature grows: 2 √(W₊ (W₋ − N₁)).
    """
    if variant == "real":
        return 2 * np.sqrt(positive * negative_absent)
    if variant == "discrete":
        return 2 * np.minimum(positive, negative_absent)
    return positive + negative_absent


class PositivePairs:
    """The (label, candidate) pairs with a positive document, and which documents those are.

    Few of all pairs are: 86 thousand of 1.6 million on Reuters-21578.

    Attributes:
        labels: (p,) labels, in order.
        candidates: (p,) candidates, in order within a label.
        holds_all: (p,) the candidate lists every positive document of the label.
        starts: (k + 1,) where each label's pairs start.
    """

    def __init__(self, rows: Matrix, positives: list[AnyArray], barred: list[AnyArray] | None = None) -> None:
        """Find them.

        Args:
            rows: (g, n) which candidates list a document.
            positives: for each label its positive documents.
            barred: for each label the candidates that it may not use.
        """
        n_labels = len(positives)
        candidates: list[AnyArray] = []
        holds_all: list[Bools] = []
        members: list[AnyArray] = []
        counts: list[AnyArray] = []
        before = 0
        for label, documents in enumerate(positives):
            held = rows[documents].tocsc()
            if barred is not None:
                held = _without_columns(held, barred[label])
            count = np.diff(held.indptr)
            used = np.flatnonzero(count)
            candidates.append(used.astype(np.int32))
            counts.append(count[used])
            holds_all.append(count[used] == len(documents))
            members.append((held.indices + before).astype(np.int32))
            before += len(documents)
        sizes = [len(used) for used in candidates]
        self.labels: Ints = np.repeat(np.arange(n_labels), sizes)
        self.candidates: AnyArray = np.concatenate(candidates)
        self.holds_all: Bools = np.concatenate(holds_all)
        self.starts: Ints = np.concatenate([[0], np.cumsum(sizes)])
        self._members = np.concatenate(members)
        self._ends: Ints = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64)

    def __len__(self) -> int:
        return len(self.candidates)

    def sums(self, weights: Floats) -> Floats:
        """(p,) weight of each pair's positive documents, given all positive weights, label after label."""
        sums = np.empty(len(self))
        pair = 0
        while pair < len(self):
            begin = self._ends[pair]
            stop = max(int(np.searchsorted(self._ends, begin + _ENTRIES, side="right")) - 1, pair + 1)
            stop = min(stop, len(self))
            inside = weights[self._members[begin : self._ends[stop]]]
            np.add.reduceat(inside, self._ends[pair:stop] - begin, out=sums[pair:stop])
            pair = stop
        return sums

    def weights(
        self, weights: Floats, negative: Floats, positive_total: Floats, negative_total: Floats
    ) -> Floats:
        """(4, p) the four W of every pair, as total minus present on the absent side.

        Args:
            weights: positive weights, label after label.
            negative: (p,) weight of the negative documents that each pair's candidate lists.
            positive_total: (k,) weight of a label's positive documents.
            negative_total: (k,) weight of its negative documents.
        """
        W = np.empty((4, len(self)))
        W[2] = self.sums(weights)
        W[3] = negative
        np.subtract(positive_total[self.labels], W[2], out=W[0])
        np.subtract(negative_total[self.labels], W[3], out=W[1])
        W[0][self.holds_all] = 0
        return np.maximum(W, 0, out=W)


def threshold_losses(
    stumps: Stumps,
    weights_of: Callable[[slice], Floats],
    positive: Floats,
    negative: Floats,
    variant: Variant,
) -> Iterator[tuple[slice, Floats, Floats]]:
    """Losses of all threshold candidates, a block of labels at a time.

    Sums over a list that is the beginning of another come from one running sum over the longer.

    Args:
        stumps: n candidates whose lists overlap.
        weights_of: gives the signed weights, (g, b), of a block of labels.
        positive: (k,) weight of a label's positive documents.
        negative: (k,) weight of its negative documents.
        variant: the variant.

    Yields:
        labels, (n, b) losses and (b,) errors of the W that they were computed from.
    """
    n_labels = len(positive)
    width = max(1, min(n_labels, 2 * _ENTRIES // max(len(stumps), 1)))
    pieces = _whole_features(stumps, max(1, _ENTRIES // width))
    for first in range(0, n_labels, width):
        block = slice(first, min(first + width, n_labels))
        signed = weights_of(block)
        losses = np.empty((len(stumps), signed.shape[1]))
        error = np.zeros(signed.shape[1])
        for candidates, entries in pieces:
            inside = signed[stumps.documents[entries]]
            begin = stumps.starts[candidates] - entries.start
            end = begin + stumps.lengths[candidates]
            listed_positive, most = _runs(np.maximum(inside, 0), begin, end)
            error = np.maximum(error, sum_error(len(inside)) * most)
            listed_negative, most = _runs(np.maximum(-inside, 0), begin, end)
            error = np.maximum(error, sum_error(len(inside)) * most)
            other_positive = np.maximum(positive[block] - listed_positive, 0)
            other_negative = np.maximum(negative[block] - listed_negative, 0)
            swap = stumps.lists_absent[candidates][:, None]
            W = np.stack(
                [
                    np.where(swap, listed_positive, other_positive),
                    np.where(swap, listed_negative, other_negative),
                    np.where(swap, other_positive, listed_positive),
                    np.where(swap, other_negative, listed_negative),
                ]
            )
            losses[candidates] = loss(variant, W)
        yield block, losses, error


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


def _without_columns(matrix: Any, columns: AnyArray) -> Any:
    """The matrix with some of its columns emptied."""
    keep = np.ones(matrix.shape[1])
    keep[columns] = 0
    emptied = matrix @ diags_array(keep).tocsc()
    emptied.eliminate_zeros()
    return emptied.tocsc()


def positives_of(Y: Labels) -> list[AnyArray]:
    """For each label its positive documents."""
    columns = Y.tocsc()
    return [columns.indices[columns.indptr[j] : columns.indptr[j + 1]] for j in range(Y.shape[1])]
