"""H-RLS: hierarchical regularised least squares (Cesa-Bianchi et al. 2004, as the H-M3 paper compares it)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from threadpoolctl import threadpool_limits

from models.arrays import AnyArray, Floats, Ints, Labels, Matrix
from models.base import Context, Learner, LearnerParameters, Monitor, State, Step
from models.errors import UnsuitableDataError
from models.hierarchy.forest import Forest
from models.hierarchy.problem import forest_of
from models.serialization.state import read_array, read_csr, read_integer, require, require_index_range

FACTOR_BYTES = 2 * 2**30
"""The triangular factors of one training together may take this much memory."""

BLOCK_ENTRIES = 2**22
"""Numbers in a dense block of scoring (32 MiB)."""


class HRLSParameters(LearnerParameters):
    """Parameters of ``h_rls``."""

    algorithm: Literal["h_rls"]
    ridge: float = Field(1.0, gt=0)
    """Weight of the identity in the regularised least squares."""


@dataclass(frozen=True)
class Family:
    """All that the nodes with one parent share.

    With S the family's examples (n_S rows, those that have the parent), the factor is the lower Cholesky
    factor of ridge·I + Sᵀ S over features (primal), or of ridge·I + S Sᵀ over examples (dual), whichever is
    smaller.

    Attributes:
        children: labels of the family, in label order.
        factor: (f, f) lower triangle; f is r in the primal form and n_S in the dual.
        solution: (f, number of children) the factored matrix's inverse times Sᵀy (primal) or y (dual), y in
            ±1.
        support: the rows of S where the form is dual, else None.
    """

    children: Ints
    factor: Floats
    solution: Floats
    support: Matrix | None


class HRLS(Learner):
    """Regularised least squares a node of the label tree, with the current example inside the inverse.

    The margin of a node at x is w·x with w = (ridge·I + S Sᵀ + x xᵀ)⁻¹ S y, where the columns of S are the
    training examples that have the node's parent (all, for a root) and y their labels at the node as ±1; no
    such example gives 0. The score of a label is the smallest margin on the path from its root, so that the
    sign rule reads the tree top-down. Without a label tree every label is a root.

    With A = ridge·I + S Sᵀ, Sherman and Morrison give the margin as xᵀA⁻¹Sy / (1 + xᵀA⁻¹x), so one
    factorisation a family (the nodes of one parent share S) serves every x. It is of A where there are no
    more features than examples, else of ridge·I + SᵀS: with κ = Sᵀx, xᵀA⁻¹Sy = κᵀ(ridge·I + SᵀS)⁻¹y and
    xᵀA⁻¹x = (x·x − κᵀ(ridge·I + SᵀS)⁻¹κ) / ridge. All factors of a training may take 2 GiB together; more
    is refused.

    Args:
        ridge: weight of the identity.

    Attributes:
        forest_: the label forest.
        families_: one for each parent that has examples, roots first.

    >>> from models.base import Context
    >>> learner = HRLS(ridge=1.0).fit([[1.0], [2.0]], [[1], [1]], context=Context(parents=np.array([-1])))
    >>> float(learner.decision_function([[2.0]])[0, 0])  # (1 + 5 + 4)⁻¹ · 3 · 2
    0.6
    """

    parameters = HRLSParameters
    algorithm: ClassVar[str] = "h_rls"

    forest_: Forest
    families_: list[Family]
    ridge_: float

    def __init__(self, ridge: float = 1.0) -> None:
        self.ridge = ridge

    def _fit(
        self,
        X: Matrix,
        Y: Labels,
        parameters: HRLSParameters,
        context: Context,
        monitor: Monitor,
        resume: State | None,
    ) -> None:
        self.forest_ = forest_of(context, Y.shape[1], self.summary_)
        self.ridge_ = parameters.ridge
        columns = Y.tocsc()
        rows_of: dict[int, Ints] = {
            int(parent): columns.indices[columns.indptr[parent] : columns.indptr[parent + 1]].astype(np.int64)
            for parent in np.unique(self.forest_.parents)
            if parent >= 0
        }
        rows_of = {-1: np.arange(X.shape[0]), **rows_of}
        rows_of = {parent: rows for parent, rows in rows_of.items() if len(rows)}
        _refuse_too_large([min(X.shape[1], len(rows)) for rows in rows_of.values()])
        self.families_ = []
        if resume is not None:
            self._set_families(resume)
        for done, (parent, rows) in list(enumerate(rows_of.items(), 1))[len(self.families_) :]:
            children = np.flatnonzero(self.forest_.parents == parent)
            signs = np.where(Y[rows][:, children].toarray() > 0, 1.0, -1.0)
            with threadpool_limits(1, user_api="blas"):
                self.families_.append(_learn_family(X[rows], signs, children, parameters.ridge))
            monitor(Step(done, len(rows_of), "families", {}, partial(dict, self._family_arrays())))
        self.summary_.facts["factor_bytes"] = sum(family.factor.nbytes for family in self.families_)

    def _scores(self, X: Matrix) -> Floats:
        margins = np.zeros((X.shape[0], self.n_labels_))
        with threadpool_limits(1, user_api="blas"):
            for family in self.families_:
                rows = max(1, BLOCK_ENTRIES // len(family.factor))
                for start in range(0, X.shape[0], rows):
                    block = slice(start, start + rows)
                    margins[block, family.children] = self._margins(X[block], family)
        return self.forest_.on_path_minimum(margins)

    def _margins(self, X: Matrix, family: Family) -> Floats:
        """(n, number of children) margins of one family at a block of examples."""
        seen = X.toarray() if family.support is None else np.asarray((X @ family.support.T).toarray())
        return np.asarray(seen @ family.solution / (1.0 + self._leverage(X, seen, family)[:, None]))

    def _leverage(self, X: Matrix, seen: Floats, family: Family) -> Floats:
        """(n,) xᵀA⁻¹x; ``seen`` is x itself in the primal form and Sᵀx in the dual."""
        half = solve_triangular(family.factor, seen.T, lower=True, check_finite=False)
        within = np.einsum("ij,ij->j", half, half)
        if family.support is None:
            return np.asarray(within)
        squares = np.asarray(X.multiply(X).sum(axis=1))
        return np.asarray(np.maximum(squares - within, 0.0) / self.ridge_)

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """The terms w_f·x_f of the smallest margin on the path to the label, which add up to the score.

        w is the node's weight vector with x inside its inverse, so it is another one for every x. Among equal
        margins it is the node nearest the root.
        """
        path = self.forest_.path(label)
        owners = {int(child): family for family in self.families_ for child in family.children}
        margins = [
            float(self._margins(x, owners[node])[0, np.searchsorted(owners[node].children, node)])
            if node in owners
            else 0.0
            for node in path
        ]
        node = path[int(np.argmin(margins))]
        if node not in owners:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        family = owners[node]
        solution = family.solution[:, np.searchsorted(family.children, node)]
        seen = x.toarray() if family.support is None else np.asarray((x @ family.support.T).toarray())
        weights = (
            solution[x.indices]
            if family.support is None
            else np.asarray(family.support[:, x.indices].T @ solution)
        )
        return x.indices.astype(np.int64), x.data * weights / (1.0 + self._leverage(x, seen, family)[0])

    def get_state(self) -> State:
        """The forest and, for each family, its children, factor, solution and (dual) examples."""
        return {
            "parents": self.forest_.parents,
            "ridge": np.array(self.ridge_),
            "n_features": np.array(self.n_features_in_),
            **self._family_arrays(),
        }

    def set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Become the learner with this forest and these families."""
        self.forest_ = Forest(read_array(state, "parents", "int64", (None,)))
        self.ridge_ = float(read_array(state, "ridge", "float64", ()))
        require(self.ridge_ > 0, "the ridge is not positive")
        self.n_features_in_ = read_integer(state, "n_features", minimum=1)
        self.n_labels_ = self.forest_.n_labels
        self._set_families(state)
        return self

    def _family_arrays(self) -> State:
        state: State = {"families": np.array(len(self.families_))}
        for number, family in enumerate(self.families_):
            state[f"{number}.children"] = family.children
            state[f"{number}.factor"] = family.factor
            state[f"{number}.solution"] = family.solution
            if family.support is not None:
                state[f"{number}.data"] = family.support.data
                state[f"{number}.indices"] = family.support.indices
                state[f"{number}.indptr"] = family.support.indptr
        return state

    def _set_families(self, state: Mapping[str, AnyArray]) -> None:
        self.families_ = []
        for number in range(read_integer(state, "families")):
            children = read_array(state, f"{number}.children", "int64", (None,))
            require_index_range(children, self.forest_.n_labels, f"{number}.children")
            require(bool((np.diff(children) > 0).all()), f"the children of family {number} are not in order")
            support, order = None, self.n_features_in_
            if f"{number}.data" in state:
                support = read_csr(state, str(number), self.n_features_in_)
                order = support.shape[0]
            factor = read_array(state, f"{number}.factor", "float64", (order, order))
            require(bool((factor.diagonal() > 0).all()), f"factor {number} is singular")
            solution = read_array(state, f"{number}.solution", "float64", (order, len(children)))
            self.families_.append(Family(children, factor, solution, support))


def _learn_family(S: Matrix, signs: Floats, children: Ints, ridge: float) -> Family:
    """Factor the smaller of the two regularised Gram matrices and solve for every child at once.

    Args:
        S: (n_S, r) the family's examples, as rows.
        signs: (n_S, number of children) their labels as ±1.
        children: labels of the columns of ``signs``.
        ridge: weight of the identity.
    """
    dual = S.shape[1] > S.shape[0]
    gram = np.asarray((S @ S.T if dual else S.T @ S).toarray())
    gram[np.diag_indices_from(gram)] += ridge
    factor, lower = cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
    target = signs if dual else np.asarray(S.T @ signs)
    solution = cho_solve((factor, lower), target, check_finite=False)
    return Family(children, np.tril(factor), solution, S if dual else None)


def _refuse_too_large(orders: list[int]) -> None:
    needed = sum(8 * order**2 for order in orders)
    if needed > FACTOR_BYTES:
        raise UnsuitableDataError(
            f"h_rls would keep {needed / 2**30:.1f} GiB of triangular factors, and the limit is "
            f"{FACTOR_BYTES / 2**30:.0f} GiB; select fewer features or train on fewer examples"
        )
