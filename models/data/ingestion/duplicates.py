"""Collects what is needed to find duplicates while a file is read."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from models.data.digests import digest_of
from models.data.duplicates import NO_FOLD, SPLIT_CODES, Duplicates
from models.data.record import Record


class DuplicateFinder:
    """Finds duplicates from 23 bytes for each example.

    It compares digests and hashes of 64 bits, so that two different documents count as equal with a
    probability of 1 in 2^64.
    """

    def __init__(self) -> None:
        self._digests = array("q")
        self._labels = array("q")
        self._lines = array("I")
        self._splits = array("b")
        self._folds = array("h")

    def add(self, record: Record, labels: Sequence[str]) -> None:
        """Add one example with its label set."""
        self._digests.append(digest_of(record.document))
        self._labels.append(hash(tuple(labels)))
        self._lines.append(record.line % 2**32)
        self._splits.append(SPLIT_CODES[record.split])
        self._folds.append(NO_FOLD if record.fold is None else record.fold)

    def summary(self) -> Duplicates:
        """Return the counts of the examples added so far."""
        return Duplicates.of(
            np.frombuffer(self._digests, dtype=np.int64),
            np.frombuffer(self._labels, dtype=np.int64),
            np.frombuffer(self._splits, dtype=np.int8),
            folds=np.frombuffer(self._folds, dtype=np.int16),
            lines=np.frombuffer(self._lines, dtype=np.uint32),
        )
