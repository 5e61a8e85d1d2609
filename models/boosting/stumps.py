"""The questions that a weak hypothesis may ask: every candidate, and the documents that tell it apart.

A candidate splits the documents in two. It keeps a list of one side, the *listed* documents, never both.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Bools, Floats, Ints, Matrix, read_only


@dataclass(frozen=True)
class Stumps:
    """Candidates, ordered by feature, then threshold.

    Attributes:
        n_documents: number g of documents.
        by_presence: candidates ask x ≠ 0; otherwise x > threshold.
        features: (n,) features; of features that the same documents hold only the first is a candidate.
        thresholds: (n,) thresholds, 0 for presence.
        documents: the lists, one behind the other or one within the other.
        starts: (n,) where a candidate's list starts in ``documents``.
        lengths: (n,) how long it is.
        lists_absent: (n,) the list is of the documents that answer no.
        twins: (r,) for each feature the candidate that stands for it, -1 for a feature that no document
            holds; for presence only.
    """

    n_documents: int
    by_presence: bool
    features: Ints
    thresholds: Floats
    documents: Ints
    starts: Ints
    lengths: Ints
    lists_absent: Bools
    twins: Ints

    def __len__(self) -> int:
        return len(self.features)

    def listed(self, candidate: int) -> Ints:
        """The listed documents of a candidate."""
        start = self.starts[candidate]
        return self.documents[start : start + self.lengths[candidate]]

    def matrix(self) -> Matrix:
        """(n, g) ones where a document is listed; for presence, whose lists do not overlap in memory."""
        starts = np.append(self.starts, len(self.documents))
        documents = self.documents
        if len(documents) <= np.iinfo(np.int32).max:
            starts, documents = starts.astype(np.int32), documents.astype(np.int32)
        return csr_array(
            (np.ones(len(documents)), read_only(documents), starts), shape=(len(self), self.n_documents)
        )


def presence_stumps(X: Matrix) -> Stumps:
    """Candidates "does the document hold the feature?".

    Features that no document holds are none (the terms T of the paper occur in the training set). Features
    that exactly the same documents hold are one candidate: they are tied in every round, and the first one
    wins.
    """
    columns = X.tocsc()
    pointers, documents = columns.indptr, columns.indices
    first: dict[bytes, int] = {}
    kept: list[int] = []
    twins = np.full(X.shape[1], -1)
    for feature in np.flatnonzero(np.diff(pointers)).tolist():
        listed = documents[pointers[feature] : pointers[feature + 1]]
        fingerprint = blake2b(listed.tobytes(), digest_size=16).digest()
        if fingerprint not in first:
            first[fingerprint] = len(kept)
            kept.append(feature)
        twins[feature] = first[fingerprint]
    features = np.array(kept, dtype=np.int64)
    lengths = np.diff(pointers)[features].astype(np.int64)
    within = np.zeros(X.shape[1], dtype=np.bool_)
    within[features] = True
    starts = np.zeros(len(features), dtype=np.int64)
    np.cumsum(lengths[:-1], out=starts[1:])
    return Stumps(
        n_documents=X.shape[0],
        by_presence=True,
        features=features,
        thresholds=np.zeros(len(features)),
        documents=documents[np.repeat(within, np.diff(pointers))].astype(np.int64),
        starts=starts,
        lengths=lengths,
        lists_absent=np.zeros(len(features), dtype=np.bool_),
        twins=twins,
    )


def threshold_stumps(X: Matrix) -> Stumps:
    """Candidates "is the feature above the midpoint of two neighbouring values?", absent values being 0.

    A feature's positive values are listed from the largest down, its negative values from the smallest up,
    so that the documents above a threshold ≥ 0, or below one < 0, are the beginning of a list: documents
    where the feature is 0 are never listed.
    """
    columns = X.tocsc()
    values, documents = columns.data, columns.indices
    owner = np.repeat(np.arange(X.shape[1]), np.diff(columns.indptr))
    # within a feature: positives from the largest down, then negatives from the smallest up
    order = np.lexsort((documents, -np.abs(values), values < 0, owner))
    values, documents, owner = values[order], documents[order], owner[order]
    n = len(values)
    side = owner * 2 + (values < 0)
    new_side = np.ones(n, dtype=np.bool_)
    new_side[1:] = np.diff(side) != 0
    start_of_side = (
        np.maximum.accumulate(np.where(new_side, np.arange(n), 0)) if n else np.zeros(0, dtype=np.int64)
    )
    # A list may end after every entry whose neighbour further in has another value. The innermost entry's
    # neighbour is 0 where a document lacks the feature, else the innermost entry of the other sign, else
    # there is none.
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
        if (
            values[entry] < 0 or entry == end - 1
        ):  # the list of the other sign has this threshold, or there is none
            has_inner[entry] = False
        else:
            inner[entry] = values[end - 1]
    ends = np.flatnonzero((values != inner) & has_inner)
    thresholds = _midpoints(np.minimum(values, inner)[ends], np.maximum(values, inner)[ends])
    # The midpoint of a positive and a negative value can be below 0 while the positives are listed: they
    # answer yes all the same.
    ends = ends[(by_candidate := np.lexsort((thresholds, owner[ends])))]
    return Stumps(
        n_documents=X.shape[0],
        by_presence=False,
        features=owner[ends],
        thresholds=thresholds[by_candidate],
        documents=documents.astype(np.int64),
        starts=start_of_side[ends],
        lengths=ends - start_of_side[ends] + 1,
        lists_absent=values[ends] < 0,
        twins=np.full(X.shape[1], -1),
    )


def _midpoints(low: Floats, high: Floats) -> Floats:
    """Midpoints that are ≥ low and < high, whatever rounding and overflow do to the sum."""
    middle = low / 2 + high / 2
    return np.where((low <= middle) & (middle < high), middle, low)
