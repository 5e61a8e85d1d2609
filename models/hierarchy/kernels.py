"""Kernels between examples.

The kernel of two pseudo-examples is a multiple of the kernel of the examples, edge by edge (H-M3 paper,
"Feature vectors" and "Marginalizing the problem"): K(x, y; x', y') = K(x, x') · Σ_e Δ_e(y)ᵀΔ_e(y'). So H-M3
only computes kernels of examples.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag
from typing_extensions import TypeAliasType

from models.arrays import Floats, Matrix


class _Kernel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class LinearKernel(_Kernel):
    """x·x′."""

    kind: Literal["linear"] = "linear"

    def __call__(self, X: Matrix, Z: Matrix) -> Floats:
        """Return the (n, p) values for the rows of X (n, r) and Z (p, r)."""
        return inner_products(X, Z)


class PolynomialKernel(_Kernel):
    """(x·x′ + 1)^degree."""

    kind: Literal["polynomial"] = "polynomial"
    degree: int = Field(2, ge=1, le=16)
    """Degree of the polynomial."""

    def __call__(self, X: Matrix, Z: Matrix) -> Floats:
        """Return the (n, p) values for the rows of X (n, r) and Z (p, r)."""
        return np.asarray((inner_products(X, Z) + 1.0) ** self.degree)


class RBFKernel(_Kernel):
    """exp(−gamma · ‖x − x′‖²)."""

    kind: Literal["rbf"] = "rbf"
    gamma: float = Field(1.0, gt=0)
    """Inverse of the squared width."""

    def __call__(self, X: Matrix, Z: Matrix) -> Floats:
        """Return the (n, p) values for the rows of X (n, r) and Z (p, r)."""
        distances = _squared_norms(X)[:, None] + _squared_norms(Z)[None, :] - 2.0 * inner_products(X, Z)
        return np.asarray(np.exp(-self.gamma * np.maximum(distances, 0.0)))


AnyKernel: TypeAlias = LinearKernel | PolynomialKernel | RBFKernel
KernelName = TypeAliasType(
    "KernelName",
    Annotated[
        Literal["linear", "polynomial", "rbf"], Field(description="A kernel with its default parameters.")
    ],
)


def _kernel_tag(value: Any) -> str | None:
    """Return the tag of the member of ``Kernel`` that validates a value."""
    if isinstance(value, str):
        return "name"
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return kind if isinstance(kind, str) else None


Kernel = TypeAliasType(
    "Kernel",
    Annotated[
        Annotated[
            Annotated[KernelName, Tag("name")]
            | Annotated[LinearKernel, Tag("linear")]
            | Annotated[PolynomialKernel, Tag("polynomial")]
            | Annotated[RBFKernel, Tag("rbf")],
            Discriminator(_kernel_tag),
        ],
        Field(description="A kernel by name with its default parameters, or as an object."),
    ],
)
"""A kernel by name, with its default parameters, or as an object with its parameters."""


def default_kernel(name: KernelName) -> AnyKernel:
    """Return the kernel of that name with its default parameters."""
    kernels: dict[str, AnyKernel] = {
        "linear": LinearKernel(),
        "polynomial": PolynomialKernel(),
        "rbf": RBFKernel(),
    }
    return kernels[name]


def inner_products(X: Matrix, Z: Matrix) -> Floats:
    """Return the (n, p) inner products of the rows of X (n, r) and Z (p, r)."""
    return np.asarray((X @ Z.T).toarray())


def _squared_norms(X: Matrix) -> Floats:
    return np.asarray(X.multiply(X).sum(axis=1))
