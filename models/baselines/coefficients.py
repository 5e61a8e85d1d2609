"""The weights of one-vs-rest linear models: trained label by label, stored in a chosen precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.sparse import csc_array, csr_array

from models.arrays import AnyArray, Floats, Ints, Matrix
from models.base import State
from models.errors import UnsuitableDataError
from models.serialization.state import read_array, read_csr

Precision: TypeAlias = Literal["float64", "float32"]

Coefficients: TypeAlias = "AnyArray | Matrix"
"""(r, k) weights: an array, or a sparse matrix if weights are pruned."""


@dataclass(frozen=True)
class Compression:
    """How the weights are stored.

    Attributes:
        precision: the floating-point type.
        prune: weights whose absolute value is below this fraction of the label's largest one are dropped.
    """

    precision: Precision = "float64"
    prune: float = 0.0


class CoefficientColumns:
    """The weights of a training, one label after the other.

    A label's weights are contiguous during the training: writing a column of an (r, k) array touches as many
    cache lines as there are features. Predictions read rows, so the finished weights are stored by feature.

    Args:
        r: number of features.
        k: number of labels.
        compression: how the weights are stored.
    """

    def __init__(self, r: int, k: int, compression: Compression) -> None:
        self._shape = (r, k)
        self._compression = compression
        self._dense: AnyArray | None = None if compression.prune else np.zeros((k, r), compression.precision)
        self._sparse: list[tuple[AnyArray, AnyArray]] = []

    def append(self, j: int, weights: Floats) -> None:
        """Store the (r,) weights of label j, which follows the labels so far.

        Raises:
            UnsuitableDataError: a weight is too large for the precision.
        """
        with np.errstate(over="ignore"):
            stored = weights.astype(self._compression.precision)
        if not np.isfinite(stored).all():
            raise UnsuitableDataError(
                "a weight is too large for the precision float32; use float64, or scale the features"
            )
        if self._dense is not None:
            self._dense[j] = stored
            return
        sizes = np.abs(weights)
        kept = np.flatnonzero((sizes >= self._compression.prune * sizes.max(initial=0.0)) & (stored != 0))
        self._sparse.append((kept.astype(np.int32), stored[kept]))

    def arrays(self) -> State:
        """Return a copy of the weights so far, (r, k), with 0 for later labels."""
        if self._dense is not None:
            return {"coef": self._dense.copy().T}
        matrix = self._to_csc()
        return {"coef.data": matrix.data, "coef.indices": matrix.indices, "coef.indptr": matrix.indptr}

    def restore(self, arrays: Mapping[str, AnyArray], completed: int) -> None:
        """Restore the weights of the first ``completed`` labels from what ``arrays`` returned."""
        if self._dense is not None:
            self._dense[:] = arrays["coef"].T
            return
        data, indices, indptr = (arrays[f"coef.{part}"] for part in ("data", "indices", "indptr"))
        for begin, end in zip(indptr[:completed].tolist(), indptr[1 : completed + 1].tolist(), strict=True):
            self._sparse.append((indices[begin:end].copy(), data[begin:end].copy()))

    def finish(self) -> Coefficients:
        """Return the weights of all labels, (r, k), by feature."""
        return np.ascontiguousarray(self._dense.T) if self._dense is not None else csr_array(self._to_csc())

    def _to_csc(self) -> csc_array[Any]:
        r, k = self._shape
        indptr = np.zeros(k + 1, dtype=np.int32)
        lengths = [len(indices) for indices, _ in self._sparse]
        np.cumsum(lengths, out=indptr[1 : len(lengths) + 1])
        indptr[len(lengths) + 1 :] = indptr[len(lengths)]
        indices = np.concatenate([np.empty(0, np.int32), *(indices for indices, _ in self._sparse)])
        empty = np.empty(0, self._compression.precision)
        data = np.concatenate([empty, *(values for _, values in self._sparse)])
        return csc_array((data, indices, indptr), shape=(r, k))


def coefficients_state(coefficients: Coefficients) -> State:
    """Return finished weights as named arrays."""
    if isinstance(coefficients, np.ndarray):
        return {"coef": coefficients}
    parts = ("data", "indices", "indptr")
    return {f"coef.{part}": getattr(coefficients, part) for part in parts}


def read_coefficients(state: Mapping[str, AnyArray], k: int, compression: Compression) -> Coefficients:
    """Return the weights of k labels from a saved state.

    Raises:
        ArtifactError: the arrays are invalid, or are not stored as ``compression`` says.
    """
    if compression.prune:
        return read_csr(state, "coef", k, dtype=compression.precision)
    return read_array(state, "coef", compression.precision, (None, k))


def contributions(coefficients: Coefficients, features: Ints, values: Floats, label: int) -> Floats:
    """Return the terms w_f·x_f of a label's score for some features and their values."""
    if isinstance(coefficients, np.ndarray):
        return np.asarray(values * coefficients[features, label])
    column: AnyArray = coefficients[features][:, [label]].toarray()
    return np.asarray(values * column.ravel())
