"""Sparse problems that expose confused columns or corrupted storage: rare, equal and unsorted columns.

Strategies for Hypothesis. ``features`` draws dense values whose columns are often rare or equal to another
column, as terms of text are. ``noncanonical`` stores such values as CSR with unsorted indices, explicit
zeros and duplicate entries. ``frozen`` makes a matrix raise if something changes it in place.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array

from models.arrays import AnyArray, Floats
from models.base import Context, Problem
from models.base.validation import as_training_matrices

Values = Literal["binary", "counts", "positive", "signed"]
ALL_VALUES: tuple[Values, ...] = ("binary", "counts", "positive", "signed")


@st.composite
def features(
    draw: st.DrawFn, n_examples: int, n_features: int, values: tuple[Values, ...] = ALL_VALUES
) -> Floats:
    """Draw dense features, shape (n_examples, n_features).

    A column is new (empty, with a single value, rare or frequent), equals an earlier column, or has
    values in the same examples as an earlier column but not the same values.
    """
    kind = draw(st.sampled_from(values))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    columns: list[Floats] = []
    for _ in range(n_features):
        origin = draw(st.sampled_from(["new", "equal", "same examples"])) if columns else "new"
        if origin == "new":
            share = draw(st.sampled_from([0.0, 0.15, 0.3, 0.8, 1.0]))
            present = rng.random(n_examples) < share
            if draw(st.booleans()):  # a single value
                present[:] = False
                present[rng.integers(n_examples)] = True
            columns.append(np.where(present, _values(rng, kind, n_examples), 0.0))
            continue
        earlier = columns[draw(st.integers(0, len(columns) - 1))]
        columns.append(
            earlier if origin == "equal" else np.where(earlier != 0, _values(rng, kind, n_examples), 0.0)
        )
    return np.stack(columns, axis=1)


def _values(rng: np.random.Generator, kind: Values, n: int) -> Floats:
    """Draw values other than 0. There are few distinct values, so that ties occur."""
    if kind == "binary":
        return np.ones(n)
    if kind == "counts":
        return rng.integers(1, 4, n).astype(np.float64)
    values: Floats = rng.integers(1, 31, n) / 10
    return values * rng.choice([-1.0, 1.0], n) if kind == "signed" else values


def noncanonical(dense: AnyArray, seed: int, *, duplicates: bool = True) -> csr_array[Any, tuple[int, int]]:
    """Return the same values as CSR with unsorted indices, explicit zeros and duplicate entries.

    Args:
        dense: (n, m) values.
        seed: seed of the order within each row, of the zeros and of the duplicates.
        duplicates: whether to store some entries as two halves, whose sum has the same bits, and some zeros
            as 1 and -1.
    """
    rng = np.random.default_rng(seed)
    rows, columns = np.nonzero(dense)
    values = dense[rows, columns]
    zero_rows, zero_columns = np.nonzero((dense == 0) & (rng.random(dense.shape) < 0.3))
    parts = [(rows, columns, values), (zero_rows, zero_columns, np.zeros(len(zero_rows), dense.dtype))]
    if duplicates:
        halved = rng.random(len(values)) < 0.3
        parts[0] = (rows, columns, np.where(halved, values / 2, values))
        parts.append((rows[halved], columns[halved], values[halved] / 2))
        opposite = rng.random(len(zero_rows)) < 0.3
        places = zero_rows[opposite], zero_columns[opposite]
        parts += [(*places, np.full(opposite.sum(), sign)) for sign in (1.0, -1.0)]
    rows, columns, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.lexsort((rng.random(len(rows)), rows))
    indptr = np.searchsorted(rows[order], np.arange(len(dense) + 1)).astype(np.int32)
    return csr_array((values[order], columns[order].astype(np.int32), indptr), shape=dense.shape)


def frozen(matrix: csr_array[Any, tuple[int, int]]) -> csr_array[Any, tuple[int, int]]:
    """Make the arrays of a matrix read-only, and return the matrix."""
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    return matrix


def problem_of(X: Any, Y: Any, context: Context | None = None, weights: Floats | None = None) -> Problem:
    """Return the problem of examples, which may be dense."""
    return Problem(*as_training_matrices(X, Y), context or Context(), weights)
