"""Weights of the negative documents that hold each feature, kept up to date from round to round.

A document that the chosen question does not list changes its weight by one constant factor a label, so only
the documents that it lists need work: with factors c₀ (not listed) and c₁ (listed), and V the weights of
the listed negatives summed by candidate,

    N' = c₀ N + (c₁ − c₀) V = c₀ (N + (c₁/c₀ − 1) V).

The factor c₀ is kept aside as a scale. An error in N grows by c₀ each round, up to 1/Z, so it is tracked,
and a label is summed afresh once its error matters. A remaining error can only send a few more candidates
to be weighed exactly; it never chooses a pivot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from models.arrays import AnyArray, Floats, Ints, Matrix, read_only
from models.boosting.positive_pairs import PairBlock, PositivePairs
from models.boosting.screening import ROUNDING, free_loss, sum_error
from models.boosting.variants import Variant

TOLERATED = 1e-11
"""Error of N, against a label's weight of 1, at which it is summed afresh."""

_TOGETHER = 8  # labels summed afresh at a time: as many as let their weights stay in the cache
_MOST_HELD = 0.5  # share of all entries from which on a pass over all of them is quicker than gathering
_HELD_BYTES = 128 << 20  # of memory for gathered entries
_ROWS = 256  # candidates screened at a time, for the same reason


class SharedNegativeSums:
    """For AdaBoost.MH: all labels follow one pivot. N is (n, k), candidates by labels."""

    def __init__(self, rows: Matrix, n_labels: int) -> None:
        """Nothing is summed before the first ``renew``.

        Args:
            rows: (g, n) which candidates list a document.
            n_labels: k.
        """
        self._rows = rows
        self._columns = rows.T.tocsr()
        self._longest = float(np.diff(self._columns.indptr).max(initial=1))
        self._sums = np.zeros((rows.shape[1], n_labels))
        self._scale = np.ones(n_labels)
        self.error = np.full(n_labels, np.inf)

    def renew_if_needed(self, negatives_of: Callable[[slice], Floats]) -> None:
        """Sum afresh once the errors matter.

        Args:
            negatives_of: gives the (g, b) weights of labels, 0 where a document is positive.
        """
        if self.error.sum() <= TOLERATED and (np.abs(np.log10(self._scale)) < 100).all():
            return
        for first in range(0, len(self._scale), _TOGETHER):
            block = slice(first, first + _TOGETHER)
            negatives = np.ascontiguousarray(negatives_of(block))
            self._sums[:, block] = self._columns @ negatives
            self.error[block] = sum_error(self._longest) * negatives.sum(axis=0)
        self._scale[:] = 1

    def follow(
        self, listed: AnyArray, weights: Floats, unlisted_factor: Floats, listed_factor: Floats
    ) -> None:
        """Follow one round's update of the weights.

        Args:
            listed: documents that the pivot lists.
            weights: (len(listed), k) their weights before the update, 0 where a document is positive.
            unlisted_factor: (k,) c₀.
            listed_factor: (k,) c₁.
        """
        inside = self._rows[listed]
        seen = np.zeros(self._sums.shape[0], dtype=np.bool_)
        seen[inside.indices] = True
        touched = np.flatnonzero(seen)
        place = np.cumsum(seen) - 1
        held = csr_array(
            (inside.data, place[inside.indices], inside.indptr), shape=(len(listed), len(touched))
        )
        held_sum = held.T @ (weights * ((listed_factor / unlisted_factor - 1) / self._scale))
        self._sums[touched] += held_sum
        self._scale *= unlisted_factor
        moved = np.abs(listed_factor - unlisted_factor) * weights.sum(axis=0)
        self.error = (
            unlisted_factor * self.error + (sum_error(len(listed)) + 4 * ROUNDING) * moved + 2 * ROUNDING
        )

    def of_pairs(self, block: PairBlock) -> Floats:
        """(p,) N of each pair."""
        places = block.candidates * len(self._scale) + block.labels
        pairs: Floats = self._sums.reshape(-1)[places]
        pairs *= self._scale[block.labels]
        return pairs

    def of(self, candidates: Ints) -> Floats:
        """(n, k) N of some candidates."""
        sums: Floats = self._sums[candidates] * self._scale
        return sums

    def free_losses(self, variant: Variant, positive: Floats, negative: Floats) -> Floats:
        """(n,) loss of every candidate, summed over labels, as if it listed no positive document of any.

        Args:
            variant: the variant.
            positive: (k,) weight of a label's positive documents.
            negative: (k,) weight of its negative documents.
        """
        losses = np.empty(len(self._sums))
        scale = -self._scale
        room = np.empty((_ROWS, len(scale)))
        for first in range(0, len(losses), _ROWS):
            sums = self._sums[first : first + _ROWS]
            absent = np.multiply(sums, scale, out=room[: len(sums)])
            absent += negative
            np.maximum(absent, 0, out=absent)
            if variant == "real":
                np.sqrt(absent, out=absent)
                losses[first : first + _ROWS] = absent @ (2 * np.sqrt(positive))
            else:
                losses[first : first + _ROWS] = free_loss(variant, positive, absent).sum(axis=1)
        return losses


class _RecentMatrices:
    """The matrices used last, up to a number of bytes: labels come back to their pivots time and again."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._matrices: dict[int, csc_array[Any]] = {}  # in the order of their last use

    def get(self, key: int) -> csc_array[Any] | None:
        matrix = self._matrices.pop(key, None)
        if matrix is not None:
            self._matrices[key] = matrix
        return matrix

    def put(self, key: int, matrix: csc_array[Any]) -> None:
        self._matrices[key] = matrix
        self._left -= matrix.indices.nbytes
        while self._left < 0:
            oldest = next(iter(self._matrices))
            self._left += self._matrices.pop(oldest).indices.nbytes


class OwnNegativeSums:
    """For MP-Boost: each label follows a pivot of its own.

    The N of pairs with a positive document are kept apart from those without, of which only the largest
    matters (``free_loss`` falls with N).
    """

    def __init__(self, rows: Matrix, pairs: PositivePairs, barred: list[AnyArray] | None) -> None:
        """Nothing is summed before the first ``renew``.

        Args:
            rows: (g, n) which candidates list a document.
            pairs: the pairs with a positive document, of which none is barred.
            barred: for each label the candidates that it may not use.
        """
        self._rows = rows
        self._lengths = np.diff(rows.indptr)
        self._columns = rows.T.tocsr()
        self._longest = float(np.diff(self._columns.indptr).max(initial=1))
        self._pairs = pairs
        self._barred = barred
        n_labels = len(pairs.starts) - 1
        self._of_pairs = np.zeros(len(pairs))
        self._held = _RecentMatrices(_HELD_BYTES)
        self._ones = read_only(np.ones(int(_MOST_HELD * len(rows.indices))))
        self._free = np.zeros((n_labels, rows.shape[1]))
        self._scale = np.ones(n_labels)
        self.error = np.full(n_labels, np.inf)

    def renew_if_needed(self, labels: Ints, negatives_of: Callable[[Ints], Floats]) -> None:
        """Sum those labels afresh whose errors matter.

        Args:
            labels: labels that still learn.
            negatives_of: gives the (b, g) weights of labels, 0 where a document is positive.
        """
        worn = (self.error[labels] > TOLERATED) | (np.abs(np.log10(self._scale[labels])) > 100)
        worn_labels = labels[worn]
        for first in range(0, len(worn_labels), _TOGETHER):
            block = worn_labels[first : first + _TOGETHER]
            negatives = negatives_of(block)
            sums = (self._columns @ np.ascontiguousarray(negatives.T)).T
            self._scale[block] = 1
            self.error[block] = sum_error(self._longest) * negatives.sum(axis=1)
            for label, row in zip(block.tolist(), sums, strict=True):
                mine = slice(self._pairs.starts[label], self._pairs.starts[label + 1])
                self._free[label] = row
                self._of_pairs[mine] = row[self._pairs.candidates[mine]]
                self._free[label, self._pairs.candidates[mine]] = -np.inf
                if self._barred is not None:
                    self._free[label, self._barred[label]] = -np.inf

    def follow(
        self,
        label: int,
        candidate: int,
        listed: AnyArray,
        weights: Floats,
        unlisted_factor: float,
        listed_factor: float,
    ) -> None:
        """Follow one round's update of a label's weights.

        Args:
            label: the label.
            candidate: its pivot.
            listed: documents that its pivot lists.
            weights: (len(listed),) their weights before the update, 0 where a document is positive.
            unlisted_factor: c₀.
            listed_factor: c₁.
        """
        change = weights * ((listed_factor / unlisted_factor - 1) / self._scale[label])
        held_sum = self._summed(candidate, listed, change)
        self._free[label] += held_sum
        mine = slice(self._pairs.starts[label], self._pairs.starts[label + 1])
        self._of_pairs[mine] += held_sum[self._pairs.candidates[mine]]
        self._scale[label] *= unlisted_factor
        moved = abs(listed_factor - unlisted_factor) * float(weights.sum())
        self.error[label] = (
            unlisted_factor * self.error[label]
            + (sum_error(len(listed)) + 4 * ROUNDING) * moved
            + 2 * ROUNDING
        )

    def _summed(self, candidate: int, listed: AnyArray, change: Floats) -> Floats:
        """(n,) the changes of the listed documents, summed by the candidates that list them."""
        lengths = self._lengths[listed]
        entries = int(lengths.sum())
        if entries > len(self._ones):
            everywhere = np.zeros(self._rows.shape[0])
            everywhere[listed] = change
            summed: Floats = self._columns @ everywhere
            return summed
        held = self._held.get(candidate)
        if held is None:
            ends = np.cumsum(lengths)
            where = np.arange(entries) + np.repeat(self._rows.indptr[listed] - ends + lengths, lengths)
            indices = self._rows.indices[where]
            starts = np.concatenate([[0], ends]).astype(indices.dtype)
            held = csc_array(
                (self._ones[:entries], indices, starts), shape=(self._rows.shape[1], len(listed))
            )
            self._held.put(candidate, held)
        return held @ change

    def of_pairs(self, block: PairBlock) -> Floats:
        """(p,) N of each pair."""
        return self._of_pairs[block.where] * self._scale[block.labels]

    def largest_free(self) -> Floats:
        """(k,) the largest N of each label among the candidates that list none of its positive documents.

        −inf where there is no such candidate.
        """
        largest: Floats = self._free.max(axis=1, initial=-np.inf) * self._scale
        return largest

    def free_above(self, label: int, least: float) -> tuple[Ints, Floats]:
        """The candidates that list none of a label's positives, and whose N is at least ``least``, and N."""
        row = self._free[label]
        least /= float(self._scale[label])
        least = max(least - 1e-12 * abs(least), float(np.finfo(np.float64).min))  # −∞ marks the others
        found = np.flatnonzero(row >= least)
        return found, row[found] * self._scale[label]
