"""The (label, candidate) pairs with a positive document.

Few of all pairs are: 86 thousand of 1.6 million on Reuters-21578. Only they have a W₊ on their present side;
it is summed anew each round, from the positive documents alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array

from models.arrays import AnyArray, Bools, Floats, Ints, Labels, Matrix, read_only

_PAIRS = 8192  # pairs of a block: as many as let its arrays stay in the cache


@dataclass(frozen=True)
class PairBlock:
    """All pairs of some consecutive labels, by label and candidate.

    Attributes:
        where: their places among all pairs.
        labels: (p,) labels.
        candidates: (p,) candidates.
        holds_all: (p,) the candidate lists every positive document of the label.
        filled: labels that have a pair.
        starts: for each of them where its pairs start within the block.
        positives: places of their positive documents among all positives, label after label.
        members: (p, positives) ones where the candidate lists the document.
    """

    where: slice
    labels: Ints
    candidates: Ints
    holds_all: Bools
    filled: Ints
    starts: Ints
    positives: slice
    members: Matrix

    def weights(
        self, positive: Floats, negative: Floats, positive_total: Floats, negative_total: Floats
    ) -> Floats:
        """(4, p) the four W of every pair, as total minus present on the absent side.

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
        W[0][self.holds_all] = 0
        return np.maximum(W, 0, out=W)


class PositivePairs:
    """All the pairs.

    Attributes:
        blocks: the pairs in blocks.
        candidates: (p,) candidates of all pairs.
        starts: (k + 1,) where each label's pairs start.
        longest: the most documents that a pair has.
    """

    def __init__(self, rows: Matrix, positives: list[AnyArray], barred: list[AnyArray] | None = None) -> None:
        """Find them.

        Args:
            rows: (g, n) which candidates list a document.
            positives: for each label its positive documents.
            barred: for each label the candidates that it may not use.
        """
        found: list[tuple[AnyArray, AnyArray, AnyArray]] = []
        for label, documents in enumerate(positives):
            held = rows[documents].tocsc()
            if barred is not None:
                held = _without_columns(held, barred[label])
            counts = np.diff(held.indptr)
            used = np.flatnonzero(counts)
            found.append((used, counts[used], held.indices))
        sizes = np.array([len(used) for used, _, _ in found])
        self.starts: Ints = np.concatenate([[0], np.cumsum(sizes)])
        self.candidates: Ints = np.concatenate([used for used, _, _ in found])
        counts_of_all = np.concatenate([counts for _, counts, _ in found])
        self.longest = int(counts_of_all.max(initial=1))
        self._first_positive = np.concatenate([[0], np.cumsum([len(documents) for documents in positives])])
        pieces = self._pieces()
        entries = [sum(len(members) for _, _, members in found[first:stop]) for first, stop in pieces]
        ones = read_only(np.ones(max(entries)))
        self.blocks = [
            self._block(first, stop, found[first:stop], ones)
            for first, stop in pieces
            if sizes[first:stop].any()
        ]

    def __len__(self) -> int:
        return len(self.candidates)

    def _pieces(self) -> list[tuple[int, int]]:
        """Ranges of labels with few enough pairs each."""
        pieces = []
        first, n_labels = 0, len(self.starts) - 1
        while first < n_labels:
            stop = int(np.searchsorted(self.starts, self.starts[first] + _PAIRS, side="right")) - 1
            stop = min(max(stop, first + 1), n_labels)
            pieces.append((first, stop))
            first = stop
        return pieces

    def _block(
        self, first: int, stop: int, found: list[tuple[AnyArray, AnyArray, AnyArray]], ones: Floats
    ) -> PairBlock:
        """The block of labels first to stop; all blocks share the same ones."""
        where = slice(int(self.starts[first]), int(self.starts[stop]))
        counts = np.concatenate([counts for _, counts, _ in found])
        n_positives = np.diff(self._first_positive[first : stop + 1])
        offsets = self._first_positive[first:stop] - self._first_positive[first]
        members = np.concatenate(
            [own + offset for (_, _, own), offset in zip(found, offsets, strict=True)], dtype=np.int32
        )
        ends = np.concatenate([[0], np.cumsum(counts)])
        if ends[-1] <= np.iinfo(np.int32).max:
            ends = ends.astype(np.int32)
        sizes = np.diff(self.starts[first : stop + 1])
        labels = np.repeat(np.arange(first, stop), sizes)
        filled = np.flatnonzero(sizes)
        return PairBlock(
            where=where,
            labels=labels,
            candidates=self.candidates[where],
            holds_all=counts == np.repeat(n_positives, sizes),
            filled=filled + first,
            starts=(self.starts[first:stop] - self.starts[first])[filled],
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
    """The matrix with some of its columns emptied."""
    keep = np.ones(matrix.shape[1])
    keep[columns] = 0
    emptied = (matrix @ diags_array(keep)).tocsc()
    emptied.eliminate_zeros()
    return emptied
