"""For each candidate, the weight N of the negative documents that it lists, updated in every round.

In a round, the weight of every document that the pivot does not list changes by one constant factor for each
label. So only the listed documents need work. With factors c₀ (not listed) and c₁ (listed), and the weights V
of the listed negatives summed by candidate,

    N' = c₀ N + (c₁ − c₀) V = c₀ (N + (c₁/c₀ − 1) V).

The factor c₀ goes into a separate scale. An error in N grows by c₀ in each round, up to 1/Z. So the error is
tracked, and the sums of a label are recomputed when it becomes too large. A remaining error can only cause a
few more candidates to be weighed exactly; it never chooses a pivot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from models.arrays import AnyArray, Floats, Ints, Matrix, read_only
from models.boosting.loss_bounds import ROUNDING, negatives_only_loss, summation_error
from models.boosting.positive_pairs import PairBlock, PositivePairs
from models.boosting.variants import BoostingVariant

MAX_ERROR = 1e-11
"""Error of N, for a label of weight 1, at which it is recomputed."""

_LABELS_AT_ONCE = 8  # labels that are recomputed at a time, so that their weights stay in the cache
_MAX_GATHERED = 0.5  # share of all entries from which a pass over all of them is faster than gathering
CACHE_BYTES = 128 << 20
"""Memory for gathered entries."""

_BLOCK_CANDIDATES = 256  # candidates whose losses are computed at a time, to stay in the cache


class SharedNegativeSums:
    """For AdaBoost.MH: all labels have the same pivot. N is (n, k), candidates by labels."""

    def __init__(self, rows: Matrix, n_labels: int) -> None:
        """Start without sums; the first ``recompute_if_needed`` computes them.

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

    def recompute_if_needed(self, negatives_of: Callable[[slice], Floats]) -> None:
        """Recomputes the sums if their errors are too large.

        Args:
            negatives_of: returns the (g, b) weights of labels, 0 if a document is positive.
        """
        if self.error.sum() <= MAX_ERROR and (np.abs(np.log10(self._scale)) < 100).all():
            return
        for first in range(0, len(self._scale), _LABELS_AT_ONCE):
            block = slice(first, first + _LABELS_AT_ONCE)
            negatives = np.ascontiguousarray(negatives_of(block))
            self._sums[:, block] = self._columns @ negatives
            self.error[block] = summation_error(self._longest) * negatives.sum(axis=0)
        self._scale[:] = 1

    def update(
        self, listed: AnyArray, weights: Floats, unlisted_factor: Floats, listed_factor: Floats
    ) -> None:
        """Apply one round's change of the weights.

        Args:
            listed: documents that the pivot lists.
            weights: (len(listed), k) their weights before the round, 0 if a document is positive.
            unlisted_factor: (k,) c₀.
            listed_factor: (k,) c₁.
        """
        inside = self._rows[listed]
        is_affected = np.zeros(self._sums.shape[0], dtype=np.bool_)
        is_affected[inside.indices] = True
        affected = np.flatnonzero(is_affected)
        place = np.cumsum(is_affected) - 1
        compact = csr_array(
            (inside.data, place[inside.indices], inside.indptr), shape=(len(listed), len(affected))
        )
        self._sums[affected] += compact.T @ (weights * ((listed_factor / unlisted_factor - 1) / self._scale))
        self._scale *= unlisted_factor
        change = np.abs(listed_factor - unlisted_factor) * weights.sum(axis=0)
        self.error = (
            unlisted_factor * self.error
            + (summation_error(len(listed)) + 4 * ROUNDING) * change
            + 2 * ROUNDING
        )

    def of_pairs(self, block: PairBlock) -> Floats:
        """(p,) N of each pair."""
        places = block.candidates * len(self._scale) + block.labels
        pairs: Floats = self._sums.reshape(-1)[places]
        pairs *= self._scale[block.labels]
        return pairs

    def of(self, candidates: Ints) -> Floats:
        """(candidates, k) N of some candidates."""
        sums: Floats = self._sums[candidates] * self._scale
        return sums

    def negatives_only_losses(self, variant: BoostingVariant, positive: Floats, negative: Floats) -> Floats:
        """(n,) the loss of every candidate, summed over labels, as if it listed no positive document.

        Args:
            variant: the variant.
            positive: (k,) weight of a label's positive documents.
            negative: (k,) weight of its negative documents.
        """
        losses = np.empty(len(self._sums))
        scale = -self._scale
        buffer = np.empty((_BLOCK_CANDIDATES, len(scale)))
        for first in range(0, len(losses), _BLOCK_CANDIDATES):
            block = slice(first, first + _BLOCK_CANDIDATES)
            sums = self._sums[block]
            absent = np.multiply(sums, scale, out=buffer[: len(sums)])
            absent += negative
            np.maximum(absent, 0, out=absent)
            if variant == "real":
                np.sqrt(absent, out=absent)
                losses[block] = absent @ (2 * np.sqrt(positive))
            else:
                losses[block] = negatives_only_loss(variant, positive, absent).sum(axis=1)
        return losses


class _MatrixCache:
    """A least-recently-used cache of matrices, limited in bytes: labels often return to the same pivots."""

    def __init__(self, limit: int) -> None:
        self._free_bytes = limit
        self._matrices: dict[int, csc_array[Any]] = {}  # the least recently used comes first

    def get(self, key: int) -> csc_array[Any] | None:
        matrix = self._matrices.pop(key, None)
        if matrix is not None:
            self._matrices[key] = matrix
        return matrix

    def put(self, key: int, matrix: csc_array[Any]) -> None:
        self._matrices[key] = matrix
        self._free_bytes -= matrix.indices.nbytes
        while self._free_bytes < 0:
            oldest = next(iter(self._matrices))
            self._free_bytes += self._matrices.pop(oldest).indices.nbytes


class PerLabelNegativeSums:
    """For MP-Boost: each label has its own pivot.

    The N of pairs with a positive document are stored separately from the N of the other pairs. Of the latter
    only the largest matters, because ``negatives_only_loss`` does not increase with N.
    """

    def __init__(self, rows: Matrix, pairs: PositivePairs, excluded: list[AnyArray] | None) -> None:
        """Start without sums; the first ``recompute_if_needed`` computes them.

        Args:
            rows: (g, n) which candidates list a document.
            pairs: the pairs with a positive document, without excluded pairs.
            excluded: for each label the candidates that it must not use.
        """
        self._rows = rows
        self._lengths = np.diff(rows.indptr)
        self._columns = rows.T.tocsr()
        self._longest = float(np.diff(self._columns.indptr).max(initial=1))
        self._pairs = pairs
        self._excluded = excluded
        n_labels = len(pairs.starts) - 1
        self._of_pairs = np.zeros(len(pairs))
        self._cache = _MatrixCache(CACHE_BYTES)
        self._ones = read_only(np.ones(int(_MAX_GATHERED * len(rows.indices))))
        self._negatives_only = np.zeros((n_labels, rows.shape[1]))
        self._scale = np.ones(n_labels)
        self.error = np.full(n_labels, np.inf)

    def recompute_if_needed(self, labels: Ints, negatives_of: Callable[[Ints], Floats]) -> None:
        """Recomputes the sums of labels whose errors are too large.

        Args:
            labels: labels that are still learning.
            negatives_of: returns the (b, g) weights of labels, 0 if a document is positive.
        """
        inexact = (self.error[labels] > MAX_ERROR) | (np.abs(np.log10(self._scale[labels])) > 100)
        outdated = labels[inexact]
        for first in range(0, len(outdated), _LABELS_AT_ONCE):
            block = outdated[first : first + _LABELS_AT_ONCE]
            negatives = negatives_of(block)
            sums = (self._columns @ np.ascontiguousarray(negatives.T)).T
            self._scale[block] = 1
            self.error[block] = summation_error(self._longest) * negatives.sum(axis=1)
            for label, row in zip(block.tolist(), sums, strict=True):
                own = slice(self._pairs.starts[label], self._pairs.starts[label + 1])
                self._negatives_only[label] = row
                self._of_pairs[own] = row[self._pairs.candidates[own]]
                self._negatives_only[label, self._pairs.candidates[own]] = -np.inf
                if self._excluded is not None:
                    self._negatives_only[label, self._excluded[label]] = -np.inf

    def update(
        self,
        label: int,
        candidate: int,
        listed: AnyArray,
        weights: Floats,
        unlisted_factor: float,
        listed_factor: float,
    ) -> None:
        """Apply one round's change of a label's weights.

        Args:
            label: the label.
            candidate: its pivot.
            listed: documents that its pivot lists.
            weights: (len(listed),) their weights before the round, 0 if a document is positive.
            unlisted_factor: c₀.
            listed_factor: c₁.
        """
        change = weights * ((listed_factor / unlisted_factor - 1) / self._scale[label])
        by_candidate = self._sum_by_candidate(candidate, listed, change)
        self._negatives_only[label] += by_candidate
        own = slice(self._pairs.starts[label], self._pairs.starts[label + 1])
        self._of_pairs[own] += by_candidate[self._pairs.candidates[own]]
        self._scale[label] *= unlisted_factor
        total_change = abs(listed_factor - unlisted_factor) * float(weights.sum())
        self.error[label] = (
            unlisted_factor * self.error[label]
            + (summation_error(len(listed)) + 4 * ROUNDING) * total_change
            + 2 * ROUNDING
        )

    def _sum_by_candidate(self, candidate: int, listed: AnyArray, change: Floats) -> Floats:
        """(n,) for each candidate, the sum of the changes of the listed documents that it lists, too."""
        lengths = self._lengths[listed]
        entries = int(lengths.sum())
        if entries > len(self._ones):
            all_changes = np.zeros(self._rows.shape[0])
            all_changes[listed] = change
            summed: Floats = self._columns @ all_changes
            return summed
        gathered = self._cache.get(candidate)
        if gathered is None:
            ends = np.cumsum(lengths)
            where = np.arange(entries) + np.repeat(self._rows.indptr[listed] - ends + lengths, lengths)
            indices = self._rows.indices[where]
            starts = np.concatenate([[0], ends]).astype(indices.dtype)
            gathered = csc_array(
                (self._ones[:entries], indices, starts), shape=(self._rows.shape[1], len(listed))
            )
            self._cache.put(candidate, gathered)
        return gathered @ change

    def of_pairs(self, block: PairBlock) -> Floats:
        """(p,) N of each pair."""
        return self._of_pairs[block.where] * self._scale[block.labels]

    def largest_negatives_only(self) -> Floats:
        """(k,) for each label, the largest N of the candidates that list none of its positive documents.

        It is −inf if there is no such candidate.
        """
        largest: Floats = self._negatives_only.max(axis=1, initial=-np.inf) * self._scale
        return largest

    def negatives_only_from(self, label: int, least: float) -> tuple[Ints, Floats]:
        """The candidates that list none of a label's positives and whose N is at least ``least``.

        Returns:
            The candidates and their N.
        """
        row = self._negatives_only[label]
        least /= float(self._scale[label])
        least = max(least - 1e-12 * abs(least), float(np.finfo(np.float64).min))  # −∞ marks other candidates
        candidates = np.flatnonzero(row >= least)
        return candidates, row[candidates] * self._scale[label]
