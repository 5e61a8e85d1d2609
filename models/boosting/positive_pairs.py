"""The (label, candidate) pairs in which the candidate lists a positive document of the label.

These are a small share of all pairs: 86 thousand of 1.6 million on Reuters-21578. Only they have a positive
W₊ on their present side. It is summed in every round, from the positive documents alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array

from models.arrays import AnyArray, Bools, Floats, Ints, Labels, Matrix, read_only

_BLOCK_PAIRS = 8192  # pairs in a block, so that its arrays stay in the cache


@dataclass(frozen=True)
class PairBlock:
    """All p pairs of some consecutive labels, ordered by label and candidate.

    Attributes:
        where: their positions among all pairs.
        labels: (p,) labels.
        candidates: (p,) candidates.
        lists_all: (p,) whether the candidate lists every positive document of the label.
        nonempty: labels that have a pair.
        starts: for each of these labels, where its pairs start in the block.
        positives: positions of the labels' positive documents among all positives, label after label.
        members: (p, positives) ones where the candidate lists the document.
    """

    where: slice
    labels: Ints
    candidates: Ints
    lists_all: Bools
    nonempty: Ints
    starts: Ints
    positives: slice
    members: Matrix

    def weights(
        self, positive: Floats, negative: Floats, positive_total: Floats, negative_total: Floats
    ) -> Floats:
        """(4, p) the four W of every pair; on the absent side they are the total minus the present side.

        Args:
            positive: weights of all positives, label after label.
            negative: (p,) weight of the negative documents that each pair's candidate lists.
            positive_total: (k,) weight of a label's positive documents.
            negative_total: (k,) weight of its negative documents.
        """
        W = np.empty((4, len(self.labels)))
        W[2] = self.members @ positive[self.positives]
        W[3] = negative
        np.subtract(positive_total[self.labels], W[2], out=W[0])
        np.subtract(negative_total[self.labels], W[3], out=W[1])
        W[0][self.lists_all] = 0
        return np.maximum(W, 0, out=W)


class PositivePairs:
    """All p pairs.

    Attributes:
        blocks: the pairs in blocks.
        candidates: (p,) candidates of all pairs.
        starts: (k + 1,) where the pairs of each label start.
        longest: the largest number of documents in a pair.
    """

    def __init__(
        self, rows: Matrix, positives: list[AnyArray], excluded: list[AnyArray] | None = None
    ) -> None:
        """Find the pairs.

        Args:
            rows: (g, n) which candidates list a document.
            positives: for each label its positive documents.
            excluded: for each label the candidates that it must not use.
        """
        by_label: list[tuple[AnyArray, AnyArray, AnyArray]] = []
        for label, documents in enumerate(positives):
            listed = rows[documents].tocsc()
            if excluded is not None:
                listed = _without_columns(listed, excluded[label])
            counts = np.diff(listed.indptr)
            used = np.flatnonzero(counts)
            by_label.append((used, counts[used], listed.indices))
        sizes = np.array([len(used) for used, _, _ in by_label])
        self.starts: Ints = np.concatenate([[0], np.cumsum(sizes)])
        self.candidates: Ints = np.concatenate([used for used, _, _ in by_label])
        counts_of_all = np.concatenate([counts for _, counts, _ in by_label])
        self.longest = int(counts_of_all.max(initial=1))
        self._first_positive = np.concatenate([[0], np.cumsum([len(documents) for documents in positives])])
        ranges = self._label_ranges()
        entries = [sum(len(members) for _, _, members in by_label[first:stop]) for first, stop in ranges]
        ones = read_only(np.ones(max(entries)))
        self.blocks = [
            self._block(first, stop, by_label[first:stop], ones)
            for first, stop in ranges
            if sizes[first:stop].any()
        ]

    def __len__(self) -> int:
        return len(self.candidates)

    def _label_ranges(self) -> list[tuple[int, int]]:
        """Ranges of labels, each with few enough pairs for a block."""
        ranges = []
        first, n_labels = 0, len(self.starts) - 1
        while first < n_labels:
            stop = int(np.searchsorted(self.starts, self.starts[first] + _BLOCK_PAIRS, side="right")) - 1
            stop = min(max(stop, first + 1), n_labels)
            ranges.append((first, stop))
            first = stop
        return ranges

    def _block(
        self, first: int, stop: int, by_label: list[tuple[AnyArray, AnyArray, AnyArray]], ones: Floats
    ) -> PairBlock:
        """The block of the labels from ``first`` to ``stop``; all blocks share ``ones``."""
        where = slice(int(self.starts[first]), int(self.starts[stop]))
        counts = np.concatenate([counts for _, counts, _ in by_label])
        n_positives = np.diff(self._first_positive[first : stop + 1])
        offsets = self._first_positive[first:stop] - self._first_positive[first]
        members = np.concatenate(
            [own + offset for (_, _, own), offset in zip(by_label, offsets, strict=True)], dtype=np.int32
        )
        ends = np.concatenate([[0], np.cumsum(counts)])
        if ends[-1] <= np.iinfo(np.int32).max:
            ends = ends.astype(np.int32)
        sizes = np.diff(self.starts[first : stop + 1])
        labels = np.repeat(np.arange(first, stop), sizes)
        nonempty = np.flatnonzero(sizes)
        return PairBlock(
            where=where,
            labels=labels,
            candidates=self.candidates[where],
            lists_all=counts == np.repeat(n_positives, sizes),
            nonempty=nonempty + first,
            starts=(self.starts[first:stop] - self.starts[first])[nonempty],
            positives=slice(int(self._first_positive[first]), int(self._first_positive[stop])),
            members=csr_array(
                (ones[: len(members)], members, ends), shape=(len(labels), int(n_positives.sum()))
            ),
        )


def positives_of(Y: Labels) -> list[AnyArray]:
    """For each label its positive documents."""
    columns = Y.tocsc()
    return [columns.indices[columns.indptr[j] : columns.indptr[j + 1]] for j in range(Y.shape[1])]


def _without_columns(matrix: Any, columns: AnyArray) -> Any:
    """The matrix without the entries of some columns."""
    keep = np.ones(matrix.shape[1])
    keep[columns] = 0
    remaining = (matrix @ diags_array(keep)).tocsc()
    remaining.eliminate_zeros()
    return remaining
