"""The two representations of H-M3's weight vector w during training.

w = Σ_i φ(x_i) ⊗ ν_i, with 4k numbers ν_i for each training example. The potentials of x are Σ_i K(x, x_i)
ν_i. For the linear kernel, φ(x) = x, so ``PrimalWeights`` stores w itself. For the other kernels,
``DualWeights`` stores ν and the kernel matrix.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Floats, Ints, Matrix, read_only
from models.errors import UnsuitableDataError
from models.hierarchy.kernels import PolynomialKernel, RBFKernel, inner_products

BLOCK_ROWS = 1024
"""Rows of the kernel matrix that are computed at once."""


class Batch(Protocol):
    """A few training examples that the optimizer processes together.

    Attributes:
        potentials: (b, 4k) potentials of the examples, under the weights at the time the batch was created.
        gram: (b, b) kernel matrix of the examples.
    """

    potentials: Floats
    gram: Floats

    def update(self, change: Floats) -> None:
        """Add ``change`` (b, 4k) to the ν of the examples."""
        ...


class Weights(Protocol):
    """The weight vector during training."""

    def reset(self, nu: Floats) -> None:
        """Set w to Σ_i φ(x_i) ⊗ ν_i.

        Args:
            nu: (g, 4k). The object keeps the array and changes it.
        """
        ...

    def potentials(self, rows: slice) -> Floats:
        """Return the (n, 4k) potentials of a range of training examples."""
        ...

    def batch(self, rows: Ints) -> Batch:
        """Return the training examples with these row numbers as a batch."""
        ...


class PrimalWeights:
    """w as an (r, 4k) matrix, for the linear kernel. No memory or time grows with g².

    Attributes:
        w: the weights.
    """

    def __init__(self, X: Matrix, width: int) -> None:
        self.X = X
        self.w: Floats = np.zeros((X.shape[1], width))

    def reset(self, nu: Floats) -> None:
        """See ``Weights``."""
        self.w = np.asarray(self.X.T @ nu)

    def potentials(self, rows: slice) -> Floats:
        """See ``Weights``."""
        return np.asarray(self.X[rows] @ self.w)

    def batch(self, rows: Ints) -> Batch:
        """See ``Weights``."""
        return _PrimalBatch(self.w, self.X[rows])


class _PrimalBatch:
    """A batch that reads and changes only the weights of the features that occur in it."""

    def __init__(self, w: Floats, X: Matrix) -> None:
        self._w = w
        self._features, columns = np.unique(X.indices, return_inverse=True)
        self._X = csr_array(
            (read_only(X.data), columns, read_only(X.indptr)), shape=(X.shape[0], len(self._features))
        )
        self.potentials: Floats = np.asarray(self._X @ w[self._features])
        self.gram: Floats = inner_products(self._X, self._X)

    def update(self, change: Floats) -> None:
        """See ``Batch``."""
        self._w[self._features] += self._X.T @ change


class DualWeights:
    """ν and the (g, g) kernel matrix, for kernels other than the linear one."""

    def __init__(self, kernel: PolynomialKernel | RBFKernel, X: Matrix, width: int) -> None:
        self.kernel_matrix = np.empty((X.shape[0], X.shape[0]))
        for start in range(0, X.shape[0], BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            with np.errstate(over="ignore"):
                self.kernel_matrix[rows] = kernel(X[rows], X)
            if not np.isfinite(self.kernel_matrix[rows]).all():
                raise UnsuitableDataError(
                    "the kernel of two training examples is not finite; use the scaling unit, or a lower "
                    "degree"
                )
        self.nu: Floats = np.zeros((X.shape[0], width))

    def reset(self, nu: Floats) -> None:
        """See ``Weights``."""
        self.nu = nu

    def potentials(self, rows: slice) -> Floats:
        """See ``Weights``."""
        return np.asarray(self.kernel_matrix[rows] @ self.nu)

    def batch(self, rows: Ints) -> Batch:
        """See ``Weights``."""
        return _DualBatch(self.nu, self.kernel_matrix[rows], rows)


class _DualBatch:
    def __init__(self, nu: Floats, kernel_rows: Floats, rows: Ints) -> None:
        self._nu, self._rows = nu, rows
        self.potentials: Floats = np.asarray(kernel_rows @ nu)
        self.gram: Floats = kernel_rows[:, rows]

    def update(self, change: Floats) -> None:
        """See ``Batch``."""
        self._nu[self._rows] += change
