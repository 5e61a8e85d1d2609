"""Reads arrays from a saved state and validates them, because the state may be forged.

A checksum proves that a file is undamaged, not that Covey wrote it. Code that restores a state therefore
reads each array by name, type and shape, and checks every property that prediction relies on. For example, an
index out of range would read memory outside of the array. ``models.artifact`` checks once for all arrays
that their numbers are finite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.sparse import csr_array

from models.arrays import AnyArray, Bools, Matrix
from models.errors import ArtifactError

State = dict[str, AnyArray]
"""Named arrays: the complete state of a training between two steps, or of a fitted model."""


def read_array(
    state: Mapping[str, AnyArray],
    name: str,
    dtypes: str | Sequence[str],
    shape: tuple[int | None, ...],
) -> AnyArray:
    """Return an array of a state.

    Args:
        state: arrays by name.
        name: name of the array.
        dtypes: the required data type, or several allowed ones.
        shape: the required length of each axis; None allows any length.

    Raises:
        ArtifactError: the array is missing, or has another type or shape.

    >>> read_array({"x": np.zeros((2, 3))}, "x", "float64", (None, 3)).shape
    (2, 3)
    """
    if name not in state:
        raise ArtifactError(f"array {name!r} is missing")
    array = state[name]
    allowed = (dtypes,) if isinstance(dtypes, str) else dtypes
    fits = len(array.shape) == len(shape) and all(
        required in (None, length) for required, length in zip(shape, array.shape, strict=True)
    )
    if str(array.dtype) not in allowed or not fits:
        expected = ", ".join("any" if length is None else str(length) for length in shape)
        raise ArtifactError(
            f"array {name!r} has type {array.dtype} and shape {array.shape}; expected type"
            f" {' or '.join(allowed)} and shape ({expected})"
        )
    return array


def read_integer(state: Mapping[str, AnyArray], name: str, *, minimum: int = 0) -> int:
    """Return an integer of a state.

    Args:
        state: arrays by name.
        name: name of an int64 array without axes.
        minimum: the smallest valid value.
    """
    number = int(read_array(state, name, "int64", ()))
    require(number >= minimum, f"{name!r} is {number}, but must be at least {minimum}")
    return number


def read_csr(
    state: Mapping[str, AnyArray],
    prefix: str,
    n_columns: int,
    *,
    n_rows: int | None = None,
    dtype: str = "float64",
) -> Matrix:
    """Return a sparse matrix of a state, stored as ``<prefix>.data``, ``.indices`` and ``.indptr``.

    Args:
        state: arrays by name.
        prefix: prefix of the three names.
        n_columns: number of columns of the matrix.
        n_rows: required number of rows; None allows any number.
        dtype: required data type of the values.

    Raises:
        ArtifactError: the indices are out of range, unsorted or repeated, or the rows overlap.
    """
    integers = ("int32", "int64")
    data = read_array(state, f"{prefix}.data", dtype, (None,))
    indices = read_array(state, f"{prefix}.indices", integers, data.shape)
    indptr = read_array(state, f"{prefix}.indptr", integers, (None if n_rows is None else n_rows + 1,))
    require(
        len(indptr) > 0 and indptr[0] == 0 and indptr[-1] == len(data) and bool((np.diff(indptr) >= 0).all()),
        f"the rows of {prefix!r} overlap or leave gaps",
    )
    require_index_range(indices, n_columns, f"{prefix}.indices")
    matrix: Matrix = csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_columns))
    matrix.check_format(full_check=True)
    require(bool(matrix.has_canonical_format), f"the column indices of {prefix!r} are unsorted or repeated")
    return matrix


def require_index_range(indices: AnyArray, end: int, name: str) -> None:
    """Check that all indices are from 0 to ``end`` - 1.

    Raises:
        ArtifactError: an index is out of range.
    """
    inside = not indices.size or bool(indices.min() >= 0 and indices.max() < end)
    require(inside, f"{name!r} contains an index outside 0 to {end - 1}")


def require(condition: bool | Bools | np.bool_, problem: str) -> None:
    """Check a property that a valid state has.

    Args:
        condition: whether the state has it.
        problem: description of the problem otherwise, for the error message.

    Raises:
        ArtifactError: the condition is false.
    """
    if not condition:
        raise ArtifactError(f"the arrays are inconsistent: {problem}")
