"""The decision stumps that a weak hypothesis can use: all candidates and the documents on one of their sides.

A candidate splits the documents into two sides. It stores the list of one side only, the *listed* documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Bools, Floats, Ints, Matrix, read_only
from models.boosting.bins import DocumentBins, bin_edges, document_bins


@dataclass(frozen=True)
class Stumps:
    """n candidates, ordered by feature, then threshold.

    Attributes:
        n_documents: number g of documents.
        by_presence: whether candidates test x ≠ 0; otherwise they test x > threshold.
        features: (n,) features. If several features are in exactly the same documents, only the first one is
            a candidate.
        thresholds: (n,) thresholds, 0 for presence.
        documents: the lists, one after the other or one inside the other.
        starts: (n,) where a candidate's list starts in ``documents``.
        lengths: (n,) the length of the list.
        lists_absent: (n,) whether the list contains the documents of the absent side.
        candidate_of: (r,) the candidate that represents each feature, -1 for a feature in no document; only
            for presence.
        bins: the documents of the lists in bins, if the thresholds are the edges of bins; else None.
    """

    n_documents: int
    by_presence: bool
    features: Ints
    thresholds: Floats
    documents: Ints
    starts: Ints
    lengths: Ints
    lists_absent: Bools
    candidate_of: Ints
    bins: DocumentBins | None = None

    def __len__(self) -> int:
        return len(self.features)

    def listed(self, candidate: int) -> Ints:
        """The listed documents of a candidate."""
        start = self.starts[candidate]
        return self.documents[start : start + self.lengths[candidate]]

    def matrix(self) -> Matrix:
        """(n, g) ones where a candidate lists a document; only for presence, whose lists do not overlap."""
        starts = np.append(self.starts, len(self.documents))
        documents = self.documents
        if len(documents) <= np.iinfo(np.int32).max:
            starts, documents = starts.astype(np.int32), documents.astype(np.int32)
        return csr_array(
            (np.ones(len(documents)), read_only(documents), starts), shape=(len(self), self.n_documents)
        )


def presence_stumps(X: Matrix) -> Stumps:
    """Candidates that test whether a document has a feature.

    A feature in no document is no candidate (the terms T of the paper occur in the training set). Features in
    exactly the same documents are one candidate: they tie in every round, and the first one wins.
    """
    columns = X.tocsc()
    pointers, documents = columns.indptr, columns.indices
    first: dict[bytes, int] = {}
    kept: list[int] = []
    candidate_of = np.full(X.shape[1], -1)
    for feature in np.flatnonzero(np.diff(pointers)).tolist():
        listed = documents[pointers[feature] : pointers[feature + 1]]
        fingerprint = blake2b(listed.tobytes(), digest_size=16).digest()
        if fingerprint not in first:
            first[fingerprint] = len(kept)
            kept.append(feature)
        candidate_of[feature] = first[fingerprint]
    features = np.array(kept, dtype=np.int64)
    lengths = np.diff(pointers)[features].astype(np.int64)
    is_candidate = np.zeros(X.shape[1], dtype=np.bool_)
    is_candidate[features] = True
    starts = np.zeros(len(features), dtype=np.int64)
    np.cumsum(lengths[:-1], out=starts[1:])
    return Stumps(
        n_documents=X.shape[0],
        by_presence=True,
        features=features,
        thresholds=np.zeros(len(features)),
        documents=documents[np.repeat(is_candidate, np.diff(pointers))].astype(np.int64),
        starts=starts,
        lengths=lengths,
        lists_absent=np.zeros(len(features), dtype=np.bool_),
        candidate_of=candidate_of,
    )


def threshold_stumps(X: Matrix, bins: int | None = None) -> Stumps:
    """Candidates that test whether a feature is above the midpoint of two neighbouring values.

    A feature that a document does not have counts as 0. A feature's positive values are listed in descending
    order and its negative values in ascending order. So the documents above a threshold ≥ 0, or below a
    threshold < 0, are the beginning of a list, and documents in which the feature is 0 are never listed.

    Args:
        X: (g, r) features.
        bins: the largest number of bins of a feature. Only the midpoints between the bins are candidates; see
            :func:`models.boosting.bins.bin_edges`. None for all midpoints.
    """
    columns = X.tocsc()
    values, documents = columns.data, columns.indices
    owner = np.repeat(np.arange(X.shape[1]), np.diff(columns.indptr))
    # In each feature: positive values in descending order, then negative values in ascending order.
    order = np.lexsort((documents, -np.abs(values), values < 0, owner))
    values, documents, owner = values[order], documents[order], owner[order]
    n = len(values)
    side = owner * 2 + (values < 0)
    new_side = np.ones(n, dtype=np.bool_)
    new_side[1:] = np.diff(side) != 0
    start_of_side = (
        np.maximum.accumulate(np.where(new_side, np.arange(n), 0)) if n else np.zeros(0, dtype=np.int64)
    )
    # A list can end after every entry whose next value towards 0 is different. After the last entry of a
    # sign, this value is 0 if a document lacks the feature. Otherwise it is the last entry of the other
    # sign, if there is one.
    inner = np.zeros(n)
    has_inner = np.ones(n, dtype=np.bool_)
    ends_side = np.append(new_side[1:], np.ones(min(n, 1), dtype=np.bool_))
    inside = np.flatnonzero(~ends_side)
    inner[inside] = values[inside + 1]
    for entry in np.flatnonzero(ends_side):
        feature = owner[entry]
        begin, end = columns.indptr[feature], columns.indptr[feature + 1]
        if end - begin < X.shape[0]:
            continue  # some document has 0
        if values[entry] < 0 or entry == end - 1:
            # The list of the other sign has this threshold, or there is no such list.
            has_inner[entry] = False
        else:
            inner[entry] = values[end - 1]
    ends = np.flatnonzero((values != inner) & has_inner)
    thresholds = _midpoints(np.minimum(values, inner)[ends], np.maximum(values, inner)[ends])
    # The midpoint of a positive and a negative value can be below 0 although the positive values are listed.
    # These documents are above the threshold all the same.
    ends = ends[(by_candidate := np.lexsort((thresholds, owner[ends])))]
    features, thresholds = owner[ends], thresholds[by_candidate]
    starts, lengths, lists_absent = start_of_side[ends], ends - start_of_side[ends] + 1, values[ends] < 0
    lists: Ints = documents.astype(np.int64)
    in_bins = None
    if bins is not None:
        below = np.where(lists_absent, lengths, X.shape[0] - lengths)
        edges = bin_edges(features, below, X.shape[0], bins)
        features, thresholds, lists_absent = features[edges], thresholds[edges], lists_absent[edges]
        starts, lengths = starts[edges], lengths[edges]
        in_bins = document_bins(lists, starts, lengths, X.shape[0])
    return Stumps(
        n_documents=X.shape[0],
        by_presence=False,
        features=features,
        thresholds=thresholds,
        documents=lists,
        starts=starts,
        lengths=lengths,
        lists_absent=lists_absent,
        candidate_of=np.full(X.shape[1], -1),
        bins=in_bins,
    )


def _midpoints(low: Floats, high: Floats) -> Floats:
    """Midpoints that are ≥ low and < high, also if the sum overflows or is rounded."""
    middle = low / 2 + high / 2
    return np.where((low <= middle) & (middle < high), middle, low)
