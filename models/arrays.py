"""Array types that all of ``models`` uses, and how sparse matrices share memory safely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]

Matrix: TypeAlias = "csr_array[Any, tuple[int, int]]"
"""Examples by features, compressed sparse rows of float64, indices sorted, no explicit zeros."""


@dataclass(frozen=True, slots=True)
class Vector:
    """One example, without the cost of a sparse matrix.

    The names of the attributes are those of a matrix, so that code for both can use them.

    Attributes:
        indices: (z,) features, strictly ascending.
        data: (z,) their values, finite and not 0.
        unknown_terms: share of the occurrences of terms in the document whose terms are no features, from 0
            to 1; None if the document has no terms, or the features are no terms.
    """

    indices: Ints
    data: Floats
    unknown_terms: float | None = None

    def to_matrix(self, n_features: int) -> Matrix:
        """Return the example as a (1, n_features) matrix."""
        indptr = np.array([0, len(self.indices)])
        return csr_array((self.data, self.indices, indptr), shape=(1, n_features))


Labels: TypeAlias = "csr_array[Any, tuple[int, int]]"
"""Examples by labels, compressed sparse rows of int8; a stored 1 is a relevant label."""

_Scalar = TypeVar("_Scalar", bound=np.generic)


def read_only(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """A read-only view of an array, for a sparse matrix that shares the array with another one.

    SciPy sorts a matrix in place, also in operations that look harmless: ``abs``, ``max``, a comparison. If
    two matrices share one of their three arrays, sorting one of them silently corrupts the other. With a
    read-only view it raises ``ValueError`` instead.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def with_data(matrix: Matrix, data: AnyArray) -> Matrix:
    """A matrix with the same structure as another one and with other values.

    The result shares the other matrix's index arrays, read-only, if these are in canonical form, so that
    SciPy has nothing to sort. Otherwise the result has copies.

    Args:
        matrix: (n, m), with z stored entries.
        data: (z,) the values of the result, in the order of ``matrix.data``; not ``matrix.data`` itself.

    >>> matrix = csr_array((np.array([1.0, 2.0]), np.array([1, 0]), np.array([0, 2])))  # unsorted
    >>> halves = with_data(matrix, matrix.data / 2)
    >>> _ = abs(halves)  # sorts it in place
    >>> halves.toarray().tolist(), matrix.toarray().tolist()
    ([[1.0, 0.5]], [[2.0, 1.0]])
    """
    share = read_only if matrix.has_canonical_format else np.copy
    return csr_array((data, share(matrix.indices), share(matrix.indptr)), shape=matrix.shape)


def numbered_by_first_occurrence(values: AnyArray) -> Ints:
    """Return a number for each value, (n,): equal values get equal numbers, in the order of their first one.

    >>> numbered_by_first_occurrence(np.array([7, 3, 7, 5])).tolist()
    [0, 1, 0, 2]
    """
    _, first, number_of = np.unique(values, return_index=True, return_inverse=True)
    number_of_value = np.empty(len(first), dtype=np.int64)
    number_of_value[np.argsort(first)] = np.arange(len(first))
    return number_of_value[number_of]
