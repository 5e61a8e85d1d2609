"""Counts equal documents, and whether their labels, splits and folds agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from models.arrays import AnyArray, Ints
from models.data.examples import Split

SPLIT_CODES: Final[Mapping[Split | None, int]] = MappingProxyType(
    {None: 0, "train": 1, "validation": 2, "test": 3}
)
"""The numbers of the splits in an array."""

NO_FOLD: Final = -1
_MAX_FOLD: Final = np.iinfo(np.int16).max
_MAX_PAIRS: Final = 3


@dataclass(frozen=True)
class Duplicates:
    """Counts of documents that are equal, see :mod:`models.data.digests`.

    Attributes:
        n_duplicates: documents that are equal to an earlier one.
        n_equal: documents that are equal to another one, earlier or later.
        n_conflicting: duplicates whose labels differ from the labels of the first occurrence.
        n_test_in_training: documents of the test split that also occur in the training split.
        n_validation_in_training: documents of the validation split that also occur in the training split.
        n_in_several_folds: documents that also occur in another fold.
        conflicting_lines: for the first few conflicts, the lines of the first occurrence and the duplicate.
    """

    n_duplicates: int
    n_equal: int
    n_conflicting: int
    n_test_in_training: int
    n_validation_in_training: int
    n_in_several_folds: int
    conflicting_lines: list[tuple[int, int]]

    @classmethod
    def of(
        cls,
        digests: Ints,
        labels: Ints,
        splits: AnyArray,
        *,
        folds: AnyArray | None = None,
        lines: AnyArray | None = None,
    ) -> Duplicates:
        """Count the equal documents among n examples.

        Args:
            digests: (n,) digests of the documents.
            labels: (n,) numbers that differ if the label sets differ.
            splits: (n,) ``SPLIT_CODES`` of the splits.
            folds: (n,) folds, or ``NO_FOLD``; None if there are none.
            lines: (n,) lines of the examples in their file; None numbers them.
        """
        order = np.argsort(digests, kind="stable")
        digests, labels, splits = digests[order], labels[order], splits[order]
        lines = order + 1 if lines is None else lines[order]
        is_first = np.ones(len(order), dtype=np.bool_)
        is_first[1:] = digests[1:] != digests[:-1]
        starts = np.flatnonzero(is_first)
        sizes = np.diff(np.append(starts, len(order)))
        first = np.repeat(starts, sizes)

        def over_equals(function: np.ufunc, values: AnyArray) -> AnyArray:
            """Return (n,) the value of a function for all documents that are equal to each document."""
            return np.repeat(function.reduceat(values, starts), sizes) if len(starts) else values

        differs = labels != labels[first]
        conflicts = sorted(zip(lines[first[differs]].tolist(), lines[differs].tolist(), strict=True))
        in_training = over_equals(np.logical_or, splits == SPLIT_CODES["train"])
        in_several = np.zeros(len(order), dtype=np.bool_)
        if folds is not None:
            folds = folds[order]
            has_fold = folds != NO_FOLD
            smallest = over_equals(np.minimum, np.where(has_fold, folds, _MAX_FOLD))
            in_several = has_fold & (over_equals(np.maximum, folds) > smallest)
        return cls(
            n_duplicates=len(order) - len(starts),
            n_equal=int(sizes[sizes > 1].sum()),
            n_conflicting=int(differs.sum()),
            n_test_in_training=int((in_training & (splits == SPLIT_CODES["test"])).sum()),
            n_validation_in_training=int((in_training & (splits == SPLIT_CODES["validation"])).sum()),
            n_in_several_folds=int(in_several.sum()),
            conflicting_lines=conflicts[:_MAX_PAIRS],
        )

    def leaks(self) -> Iterator[str]:
        """Yield a warning for each part of which documents are trained on, too."""
        for split, count in (
            ("validation", self.n_validation_in_training),
            ("test", self.n_test_in_training),
        ):
            if count:
                yield (
                    f"documents of the {split} split that are also in the training split: {count:,}; "
                    f"measures on the {split} split will be too high"
                )
        if self.n_in_several_folds:
            yield (
                f"documents that are in several folds: {self.n_in_several_folds:,}; measures of experiments "
                "with these folds will be too high"
            )
