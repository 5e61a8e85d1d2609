"""Which documents are the same, and whether their labels are."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.data.examples import Split
from models.data.record import Record

_NONE, _TRAIN, _TEST = 0, 1, 2
_PARTS: dict[Split | None, int] = {None: _NONE, "train": _TRAIN, "test": _TEST}
_SHOWN = 3


@dataclass(frozen=True)
class Duplicates:
    """Documents that are the same as others, character for character or feature for feature.

    Attributes:
        n_duplicates: documents that are the same as an earlier one.
        n_conflicting: those of them whose labels differ from the first one's.
        n_in_both_splits: documents of the test part that are also in the training part.
        conflicts: lines of the first few pairs that conflict.
    """

    n_duplicates: int
    n_conflicting: int
    n_in_both_splits: int
    conflicts: list[tuple[int, int]]


class DuplicateFinder:
    """Remembers 21 bytes of each example; two documents are taken for one by odds of 1 in 2^64 a pair."""

    def __init__(self) -> None:
        self._documents = array("q")
        self._labels = array("q")
        self._lines = array("I")
        self._parts = array("b")

    def add(self, record: Record, labels: Sequence[str]) -> None:
        """Remember one example and its label set."""
        if record.text is not None:
            key = hash(record.text)
        elif record.features is not None:
            key = hash(frozenset(record.features.items()))
        else:
            key = hash(record.email)
        self._documents.append(key)
        self._labels.append(hash(tuple(labels)))
        self._lines.append(record.line % 2**32)
        self._parts.append(_PARTS[record.split])

    def found(self) -> Duplicates:
        """The duplicates among the examples so far."""
        documents = np.frombuffer(self._documents, dtype=np.int64)
        order = np.argsort(documents, kind="stable")
        documents = documents[order]
        is_first = np.ones(len(order), dtype=np.bool_)
        is_first[1:] = documents[1:] != documents[:-1]
        starts = np.flatnonzero(is_first)
        first = np.repeat(starts, np.diff(np.append(starts, len(order))))
        labels = np.frombuffer(self._labels, dtype=np.int64)[order]
        differs = labels != labels[first]
        lines = np.frombuffer(self._lines, dtype=np.uint32)[order]
        conflicts = sorted(zip(lines[first[differs]].tolist(), lines[differs].tolist(), strict=True))
        parts = np.frombuffer(self._parts, dtype=np.int8)[order]
        trained = np.maximum.reduceat(parts == _TRAIN, starts) if len(starts) else np.zeros(0, dtype=np.bool_)
        shared = (parts == _TEST) & np.repeat(trained, np.diff(np.append(starts, len(order))))
        return Duplicates(
            n_duplicates=len(order) - len(starts),
            n_conflicting=int(differs.sum()),
            n_in_both_splits=int(shared.sum()),
            conflicts=conflicts[:_SHOWN],
        )
