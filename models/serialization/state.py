"""Arrays taken back from a saved state, which someone may have made up.

Checksums tell that a file is what was written, not that it was written by Covey. So whoever takes arrays
back asks for each by name, type and shape, and checks what else prediction relies on: an index out of range
would read memory that is not the array's. That numbers are finite is checked once for all arrays, where a
file is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.sparse import csr_array

from models.arrays import AnyArray, Bools, Matrix
from models.errors import ArtifactError

State = dict[str, AnyArray]
"""A training's whole state between two steps, or a fitted model's, as named arrays without objects."""


def read_array(
    state: Mapping[str, AnyArray],
    name: str,
    dtypes: str | Sequence[str],
    shape: tuple[int | None, ...],
) -> AnyArray:
    """An array of a state.

    Args:
        state: arrays by name.
        name: which of them.
        dtypes: the type that it must have, or several.
        shape: its length along each axis; None where any is right.

    Raises:
        ArtifactError: it is missing, or of another type or shape.

    >>> held({"x": np.zeros((2, 3))}, "x", "float64", (None, 3)).shape
    (2, 3)
    """
    if name not in state:
        raise ArtifactError(f"there is no array {name!r}")
    array = state[name]
    allowed = (dtypes,) if isinstance(dtypes, str) else dtypes
    fits = len(array.shape) == len(shape) and all(
        wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
    )
    if str(array.dtype) not in allowed or not fits:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ArtifactError(
            f"array {name!r} is {array.dtype} of shape {array.shape}, where {' or '.join(allowed)} of shape"
            f" ({wanted}) is needed"
        )
    return array


def read_integer(state: Mapping[str, AnyArray], name: str, *, minimum: int = 0) -> int:
    """A whole number of a state.

    Args:
        state: arrays by name.
        name: which of them; it has no axis.
        minimum: the smallest valid value.
    """
    number = int(read_array(state, name, "int64", ()))
    require(number >= minimum, f"{name!r} is {number}, and must be at least {minimum}")
    return number


def read_csr(
    state: Mapping[str, AnyArray], prefix: str, n_columns: int, *, n_rows: int | None = None
) -> Matrix:
    """A sparse matrix of a state, in canonical form: ``<prefix>.data``, ``.indices`` and ``.indptr``.

    Raises:
        ArtifactError: its indices are out of range, unsorted or repeated, or its rows overlap.
    """
    whole = ("int32", "int64")
    data = read_array(state, f"{prefix}.data", "float64", (None,))
    indices = read_array(state, f"{prefix}.indices", whole, data.shape)
    indptr = read_array(state, f"{prefix}.indptr", whole, (None if n_rows is None else n_rows + 1,))
    require(
        len(indptr) > 0 and indptr[0] == 0 and indptr[-1] == len(data) and bool((np.diff(indptr) >= 0).all()),
        f"the rows of {prefix!r} do not follow one another",
    )
    require_index_range(indices, n_columns, f"{prefix}.indices")
    matrix: Matrix = csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_columns))
    matrix.check_format(full_check=True)
    require(bool(matrix.has_canonical_format), f"the columns of {prefix!r} are not in order")
    return matrix


def require_index_range(indices: AnyArray, end: int, name: str) -> None:
    """Refuse indices that are not from 0 to ``end`` - 1."""
    inside = not indices.size or bool(indices.min() >= 0 and indices.max() < end)
    require(inside, f"{name!r} holds an index that is not from 0 to {end - 1}")


def require(holds: bool | Bools | np.bool_, otherwise: str) -> None:
    """Refuse a state.

    Raises:
        ArtifactError: it does not hold.
    """
    if not holds:
        raise ArtifactError(f"the arrays contradict each other: {otherwise}")
