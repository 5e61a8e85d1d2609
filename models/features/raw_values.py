"""What features are computed from: the values of documents before limits, weights, scales and selection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Ints, Matrix
from models.features.columns import move_columns


@dataclass(frozen=True, eq=False)
class RawValues:
    """The occurrences of every term, or the values of every column, in n documents.

    Reading documents takes most of the time of computing features. Features can be fitted on some rows of raw
    values and computed for others, as held-out folds need it, without reading a document again.

    Attributes:
        names: the m terms or columns, sorted by code point.
        values: (n, m) occurrences or values.
    """

    names: list[str]
    values: Matrix

    @property
    def n_documents(self) -> int:
        """The number n of documents."""
        return int(self.values.shape[0])

    def where(self, rows: Bools) -> RawValues:
        """Return the documents that a mask, (n,), selects, with all names."""
        return RawValues(self.names, self.values[rows])

    def columns_among(self, names: list[str]) -> Ints:
        """Return (m,) the index of each name among others; -1 if it is not one of them."""
        index = {name: column for column, name in enumerate(names)}
        return np.array([index.get(name, -1) for name in self.names], dtype=np.int32)

    def in_columns_of(self, names: list[str]) -> Matrix:
        """Return (n, r) the values of r names, 0 where a document has none of that name."""
        return move_columns(self.values, self.columns_among(names), len(names))
