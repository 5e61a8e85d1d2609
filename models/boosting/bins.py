"""Bins of feature values: fewer threshold candidates, whose weights are sums over bins of documents.

An exact search adds up the weights of the documents between all neighbouring values of each feature. With
bins, there are a few sums for each feature, however many distinct values it has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Bools, Floats, Ints, Matrix

_CAP_STEPS = 8  # each one lowers the caps of features in which few values are frequent
_NEARLY = 1e-9  # bins that are full up to rounding are full


@dataclass(frozen=True)
class DocumentBins:
    """The documents of the lists of n candidates, in bins.

    A bin has the documents that a candidate lists, but the next shorter list of the same side does not.

    Attributes:
        members: (n, g) ones where a bin has a document. The bins of a list follow one after the other.
        first: (s,) for each of s lists, its first bin.
        sizes: (s,) the number of its bins.
        bin_of: (n,) the last bin of each candidate.
    """

    members: Matrix
    first: Ints
    sizes: Ints
    bin_of: Ints

    def listed_sums(self, numbers: Floats) -> Floats:
        """(n, b) for each candidate the sums of its listed documents' numbers, (g, b), in C order."""
        sums: Floats = self.members @ numbers
        for place in range(1, int(self.sizes.max(initial=0))):
            bins = self.first[self.sizes > place] + place
            sums[bins] += sums[bins - 1]
        return sums[self.bin_of]


def bin_edges(features: Ints, below: Ints, n_documents: int, bins: int) -> Bools:
    """Choose the candidates whose thresholds divide the values of each feature into bins.

    All candidates of a feature with at most ``bins`` distinct values are edges. Otherwise, bins have about
    the same number of documents. A value that is more frequent than that, such as 0 in sparse features,
    counts as one bin, so that it leaves the other bins to the other values.

    Args:
        features: (n,) features of the candidates, ascending.
        below: (n,) number of documents that are not above the candidate's threshold, ascending for each
            feature.
        n_documents: number g of documents.
        bins: the largest number of bins.

    >>> below = np.arange(1, 10)  # ten distinct values in ten documents
    >>> np.flatnonzero(bin_edges(np.zeros(9, dtype=int), below, 10, 5)).tolist()
    [1, 3, 5, 7]
    """
    n = len(features)
    if not n:
        return np.zeros(0, dtype=np.bool_)
    first = np.flatnonzero(np.diff(features, prepend=-1))
    sizes = np.diff(np.append(first, n))
    # A feature with c candidates has c + 1 distinct values: one below each candidate, and the largest one.
    starts = first + np.arange(len(first))
    is_largest = np.zeros(n + len(first), dtype=np.bool_)
    is_largest[starts + sizes] = True
    until = np.full(len(is_largest), n_documents, dtype=np.int64)
    until[~is_largest] = below
    counts = np.diff(until, prepend=0).astype(np.float64)
    counts[starts] = until[starts]
    owner = np.repeat(np.arange(len(first)), sizes + 1)
    capped = counts
    for _ in range(_CAP_STEPS):
        cap = np.add.reduceat(capped, starts) / bins
        capped = np.minimum(counts, cap[owner])
    mass = np.cumsum(capped)
    before = mass[starts] - capped[starts]
    total = np.add.reduceat(capped, starts)
    full = np.floor((mass - before[owner]) * (bins / total[owner]) + _NEARLY).astype(np.int64)
    full = np.minimum(full, bins - 1)
    edges: Bools = np.diff(full, prepend=0) > 0
    edges[starts] = full[starts] > 0
    edges |= (sizes < bins)[owner]
    chosen: Bools = edges[~is_largest]
    return chosen


def document_bins(documents: Ints, starts: Ints, lengths: Ints, n_documents: int) -> DocumentBins:
    """Divide the lists of n candidates into bins.

    Args:
        documents: the lists.
        starts: (n,) where a candidate's list starts in ``documents``; candidates of one side start together.
        lengths: (n,) the lengths, distinct for the candidates of one side.
        n_documents: number g of documents.
    """
    order = np.lexsort((lengths, starts))
    begins, ends = starts[order], (starts + lengths)[order]
    first = np.flatnonzero(np.diff(begins, prepend=-1))
    sizes = np.diff(np.append(first, len(order)))
    inner = np.ones(len(order), dtype=np.bool_)
    inner[first] = False
    begins = begins.copy()
    begins[inner] = ends[:-1][inner[1:]]
    pointers = np.concatenate([[0], np.cumsum(ends - begins)])
    kept = np.arange(pointers[-1]) + np.repeat(begins - pointers[:-1], ends - begins)
    rows = documents[kept]
    if max(len(rows), n_documents) <= np.iinfo(np.int32).max:
        rows, pointers = rows.astype(np.int32), pointers.astype(np.int32)
    bin_of = np.empty(len(order), dtype=np.int64)
    bin_of[order] = np.arange(len(order))
    shape = (len(order), n_documents)
    return DocumentBins(csr_array((np.ones(len(rows)), rows, pointers), shape=shape), first, sizes, bin_of)
