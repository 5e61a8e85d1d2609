"""Kernels between examples, and the two ways in which H-M3 keeps its weights.

The kernel of pseudo-examples repeats that of examples edge by edge ("Feature vectors"): K(x, y; x', y') =
K(x, x') · Σ_e Δ_e(y)ᵀΔ_e(y'). So weights are w = Σ_i φ(x_i) ⊗ ν_i with 4k numbers ν_i an example, and a
labeling's potentials at x are Σ_i K(x, x_i) ν_i: either through w itself, where φ(x) = x, or through the
kernel's values.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Protocol, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag
from scipy.sparse import csr_array

from models.arrays import Floats, Ints, Matrix, read_only


class _Kernel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class LinearKernel(_Kernel):
    """x·x′."""

    kind: Literal["linear"] = "linear"

    def of(self, X: Matrix, Z: Matrix) -> Floats:
        """(n, p) values between the rows of X (n, r) and Z (p, r)."""
        return _inner(X, Z)


class PolynomialKernel(_Kernel):
    """(x·x′ + 1)^degree."""

    kind: Literal["polynomial"] = "polynomial"
    degree: int = Field(2, ge=1, le=16)
    """Degree of the polynomial."""

    def of(self, X: Matrix, Z: Matrix) -> Floats:
        """(n, p) values between the rows of X (n, r) and Z (p, r)."""
        return np.asarray((_inner(X, Z) + 1.0) ** self.degree)


class RBFKernel(_Kernel):
    """exp(−gamma · ‖x − x′‖²)."""

    kind: Literal["rbf"] = "rbf"
    gamma: float = Field(1.0, gt=0)
    """Inverse of the squared width."""

    def of(self, X: Matrix, Z: Matrix) -> Floats:
        """(n, p) values between the rows of X (n, r) and Z (p, r)."""
        squares = _squares(X)[:, None] + _squares(Z)[None, :] - 2.0 * _inner(X, Z)
        return np.asarray(np.exp(-self.gamma * np.maximum(squares, 0.0)))


AnyKernel: TypeAlias = LinearKernel | PolynomialKernel | RBFKernel
KernelName: TypeAlias = Literal["linear", "polynomial", "rbf"]


def _form(given: Any) -> str | None:
    """Which member of ``Kernel`` a value is meant to be."""
    if isinstance(given, str):
        return "name"
    kind = given.get("kind") if isinstance(given, dict) else getattr(given, "kind", None)
    return kind if isinstance(kind, str) else None


Kernel: TypeAlias = Annotated[
    Annotated[KernelName, Tag("name")]
    | Annotated[LinearKernel, Tag("linear")]
    | Annotated[PolynomialKernel, Tag("polynomial")]
    | Annotated[RBFKernel, Tag("rbf")],
    Discriminator(_form),
]
"""A kernel by name, with its default parameters, or in full."""


def kernel_named(name: KernelName) -> AnyKernel:
    """The kernel of that kind with its default parameters."""
    kernels: dict[str, AnyKernel] = {
        "linear": LinearKernel(),
        "polynomial": PolynomialKernel(),
        "rbf": RBFKernel(),
    }
    return kernels[name]


class Batch(Protocol):
    """A few training examples on which ascent works together.

    Attributes:
        potentials: (b, 4k) potentials under the weights as they were when the batch was taken.
        gram: (b, b) kernel values among the examples.
    """

    potentials: Floats
    gram: Floats

    def move(self, change: Floats) -> None:
        """Add ``change`` (b, 4k) to the examples' ν."""
        ...


class Weights(Protocol):
    """w as the training moves it."""

    def restart(self, nu: Floats) -> None:
        """Become Σ_i φ(x_i) ⊗ ν_i, whatever came before.

        Args:
            nu: (g, 4k), taken over.
        """
        ...

    def potentials(self, rows: slice) -> Floats:
        """(n, 4k) potentials of a run of training examples."""
        ...

    def batch(self, rows: Ints) -> Batch:
        """The training examples of these rows."""
        ...


class PrimalWeights:
    """w itself, an (r, 4k) matrix: for the linear kernel. No number of examples is ever squared.

    Attributes:
        w: the weights.
    """

    def __init__(self, X: Matrix, width: int) -> None:
        self.X = X
        self.w: Floats = np.zeros((X.shape[1], width))

    def restart(self, nu: Floats) -> None:
        """See ``Weights``."""
        self.w = np.asarray(self.X.T @ nu)

    def potentials(self, rows: slice) -> Floats:
        """See ``Weights``."""
        return np.asarray(self.X[rows] @ self.w)

    def batch(self, rows: Ints) -> Batch:
        """See ``Weights``."""
        return _PrimalBatch(self.w, self.X[rows])


class _PrimalBatch:
    """Examples with only the weights of the features that they have, so that a batch costs what it holds."""

    def __init__(self, w: Floats, X: Matrix) -> None:
        self._w = w
        self._features, columns = np.unique(X.indices, return_inverse=True)
        self._X = csr_array(
            (read_only(X.data), columns, read_only(X.indptr)), shape=(X.shape[0], len(self._features))
        )
        self.potentials: Floats = np.asarray(self._X @ w[self._features])
        self.gram: Floats = _inner(self._X, self._X)

    def move(self, change: Floats) -> None:
        """See ``Batch``."""
        self._w[self._features] += self._X.T @ change


class DualWeights:
    """ν and the (g, g) kernel matrix: for the other kernels."""

    def __init__(self, kernel: PolynomialKernel | RBFKernel, X: Matrix, width: int) -> None:
        self.matrix = np.empty((X.shape[0], X.shape[0]))
        for start in range(0, X.shape[0], 1024):
            rows = slice(start, start + 1024)
            self.matrix[rows] = kernel.of(X[rows], X)
        self.nu: Floats = np.zeros((X.shape[0], width))

    def restart(self, nu: Floats) -> None:
        """See ``Weights``."""
        self.nu = nu

    def potentials(self, rows: slice) -> Floats:
        """See ``Weights``."""
        return np.asarray(self.matrix[rows] @ self.nu)

    def batch(self, rows: Ints) -> Batch:
        """See ``Weights``."""
        return _DualBatch(self.nu, self.matrix[rows], rows)


class _DualBatch:
    def __init__(self, nu: Floats, values: Floats, rows: Ints) -> None:
        self._nu, self._rows = nu, rows
        self.potentials: Floats = np.asarray(values @ nu)
        self.gram: Floats = values[:, rows]

    def move(self, change: Floats) -> None:
        """See ``Batch``."""
        self._nu[self._rows] += change


def _inner(X: Matrix, Z: Matrix) -> Floats:
    return np.asarray((X @ Z.T).toarray())


def _squares(X: Matrix) -> Floats:
    return np.asarray(X.multiply(X).sum(axis=1))
