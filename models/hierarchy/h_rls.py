"""H-RLS: hierarchical regularized least squares (Cesa-Bianchi et al. 2004, a baseline of the H-M3 paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from typing_extensions import override

from models.arrays import AnyArray, Floats, Ints, Matrix, with_data
from models.base import LearnerParameters, Problem, State, Training
from models.base.abilities import Explaining
from models.base.weighted import WeightedLearner
from models.errors import UnsuitableDataError
from models.hierarchy.dense_blocks import blockwise_product, one_blas_thread, row_blocks
from models.hierarchy.forest import Forest
from models.hierarchy.from_context import forest_from_context
from models.serialization.state import read_array, read_csr, read_integer, require, require_index_range

FACTOR_BYTES = 2 * 2**30
"""Memory that all triangular factors of a training may use together."""

BLOCK_ENTRIES = 2**22
"""Entries of a dense block while scoring (32 MiB)."""


class HRLSParameters(LearnerParameters):
    """Parameters of ``h_rls``."""

    algorithm: Literal["h_rls"]
    ridge: float = Field(1.0, gt=0)
    """Weight of the identity matrix in the regularized least squares."""


@dataclass(frozen=True)
class Family:
    """The regression of sibling nodes, which train on the same examples.

    Let the columns of S be the n_S examples that have the parent. The factor is the lower Cholesky factor of
    ridge·I + S Sᵀ over the features (primal form) or of ridge·I + SᵀS over the examples (dual form),
    whichever is smaller.

    Attributes:
        children: labels of the siblings, in label order.
        factor: (f, f) lower triangular; f is r in the primal form and n_S in the dual form.
        solution: (f, number of children) the inverse of the factored matrix times S y (primal) or y (dual),
            with y in ±1.
        support: (n_S, r) the examples, Sᵀ, in the dual form; None in the primal form.
    """

    children: Ints
    factor: Floats
    solution: Floats
    support: Matrix | None


class HRLS(WeightedLearner, Explaining):
    """Regularized least squares for each node of the label tree, with the current example inside the inverse.

    The margin of a node at x is w·x with w = (ridge·I + S Sᵀ + x xᵀ)⁻¹ S y. The columns of S are the training
    examples that have the parent of the node (for a root, all examples), and y are their labels at the node
    as ±1. If there are no such examples, the margin is 0. The score of a label is the smallest margin on the
    path from its root, so the sign rule decides top-down. Without a label tree, every label is a root.

    With A = ridge·I + S Sᵀ, the Sherman-Morrison formula gives the margin as xᵀA⁻¹Sy / (1 + xᵀA⁻¹x). So one
    factorization serves every x and all nodes that share a parent, because they share S. The learner factors
    A if there are at most as many features as examples, else ridge·I + SᵀS: with κ = Sᵀx,
    xᵀA⁻¹Sy = κᵀ(ridge·I + SᵀS)⁻¹y and xᵀA⁻¹x = (x·x − κᵀ(ridge·I + SᵀS)⁻¹κ) / ridge. Training is rejected if
    all factors together use more than 2 GiB. An example of weight v counts v times in S Sᵀ and S y.

    Attributes:
        forest_: the label forest.
        families_: one for each parent that has examples; the family of the roots comes first.

    >>> from models.base import Context
    >>> learner = HRLS(ridge=1.0).fit([[1.0], [2.0]], [[1], [1]], context=Context(parents=np.array([-1])))
    >>> float(learner.decision_function([[2.0]])[0, 0])  # (1 + 5 + 4)⁻¹ · 3 · 2
    0.6
    """

    parameters = HRLSParameters
    algorithm: ClassVar[str] = "h_rls"
    needs_scaled_features: ClassVar[bool] = True

    forest_: Forest
    families_: list[Family]
    ridge_: float

    def _training(self, problem: Problem, parameters: HRLSParameters) -> FamilyByFamily:
        self.forest_ = forest_from_context(problem.context, problem.Y.shape[1], self.summary_)
        self.ridge_ = parameters.ridge
        self.families_ = []
        return FamilyByFamily(self, problem)

    def _scores(self, X: Matrix) -> Floats:
        margins = np.zeros((X.shape[0], self.n_labels_))
        with one_blas_thread():
            for family in self.families_:
                rows = max(1, BLOCK_ENTRIES // len(family.factor))
                for start in range(0, X.shape[0], rows):
                    block = slice(start, start + rows)
                    margins[block, family.children] = self._margins(X[block], family)
        return self.forest_.path_minimum(margins)

    def _margins(self, X: Matrix, family: Family) -> Floats:
        """Return (n, number of children) margins of one family for a block of examples."""
        inputs = _inputs(X, family)
        products = blockwise_product(inputs, family.solution)
        return np.asarray(products / (1.0 + self._leverages(X, inputs, family)[:, None]))

    def _leverages(self, X: Matrix, inputs: Floats, family: Family) -> Floats:
        """Return (n,) xᵀA⁻¹x of each example."""
        blocks = row_blocks(inputs)
        quadratic_forms = np.empty(blocks.shape[:2])
        for block, forms in zip(blocks, quadratic_forms, strict=True):
            half = solve_triangular(family.factor, block.T, lower=True, check_finite=False)
            np.einsum("ij,ij->j", half, half, out=forms)
        quadratic_forms = quadratic_forms.ravel()[: len(inputs)]
        if family.support is None:
            return quadratic_forms
        squared_norms = np.asarray(X.multiply(X).sum(axis=1))
        return np.asarray(np.maximum(squared_norms - quadratic_forms, 0.0) / self.ridge_)

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """Return the terms w_f·x_f of the smallest margin on the path; they add up to the score.

        w is the weight vector of the node with x inside the inverse, so it differs for every x. Among equal
        margins, the node nearest the root counts.
        """
        path = self.forest_.path(label)
        family_of = {int(child): family for family in self.families_ for child in family.children}
        margins = [
            float(self._margins(x, family_of[node])[0, np.searchsorted(family_of[node].children, node)])
            if node in family_of
            else 0.0
            for node in path
        ]
        node = path[int(np.argmin(margins))]
        if node not in family_of:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        family = family_of[node]
        solution = family.solution[:, np.searchsorted(family.children, node)]
        weights = (
            solution[x.indices]
            if family.support is None
            else np.asarray(family.support[:, x.indices].T @ solution)
        )
        leverage = self._leverages(x, _inputs(x, family), family)[0]
        return x.indices.astype(np.int64), x.data * weights / (1.0 + leverage)

    def _get_state(self) -> State:
        """Return the forest, and the children, factor, solution and support of each family."""
        return {
            "parents": self.forest_.parents,
            "ridge": np.array(self.ridge_),
            "n_features": np.array(self.n_features_in_),
            **self._family_arrays(),
        }

    def _set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Restore the learner from the arrays of ``get_state``."""
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
            require(bool((np.diff(children) > 0).all()), f"the children of family {number} are not sorted")
            support, order = None, self.n_features_in_
            if f"{number}.data" in state:
                support = read_csr(state, str(number), self.n_features_in_)
                order = support.shape[0]
            factor = read_array(state, f"{number}.factor", "float64", (order, order))
            require(bool((factor.diagonal() > 0).all()), f"factor {number} is singular")
            solution = read_array(state, f"{number}.solution", "float64", (order, len(children)))
            self.families_.append(Family(children, factor, solution, support))


class FamilyByFamily(Training):
    """Solves the equations of one family after the other."""

    unit: ClassVar[str] = "families"

    def __init__(self, learner: HRLS, problem: Problem) -> None:
        X, columns, parents = problem.X, problem.Y.tocsc(), learner.forest_.parents
        rows_of: dict[int, Ints] = {
            int(parent): columns.indices[columns.indptr[parent] : columns.indptr[parent + 1]].astype(np.int64)
            for parent in np.unique(parents)
            if parent >= 0
        }
        rows_of = {-1: np.arange(X.shape[0]), **rows_of}
        self._rows_of = [(parent, rows) for parent, rows in rows_of.items() if len(rows)]
        _check_memory([min(X.shape[1], len(rows)) for _, rows in self._rows_of])
        super().__init__(len(self._rows_of))
        self._learner = learner
        self._X = X
        self._Y = problem.Y
        self._weights = problem.weights

    @override
    def advance(self) -> Mapping[str, float]:
        learner, (parent, rows) = self._learner, self._rows_of[self.completed]
        children = np.flatnonzero(learner.forest_.parents == parent)
        signs = np.where(self._Y[rows][:, children].toarray() > 0, 1.0, -1.0)
        examples = self._X[rows]
        if self._weights is not None:  # w times a squared error is the error of √w x and √w y
            roots = np.sqrt(self._weights[rows])
            examples = with_data(examples, examples.data * np.repeat(roots, np.diff(examples.indptr)))
            signs *= roots[:, np.newaxis]
        with one_blas_thread():
            learner.families_.append(_fit_family(examples, signs, children, learner.ridge_))
        self.completed += 1
        return {}

    @override
    def arrays(self) -> State:
        return self._learner._family_arrays()  # noqa: SLF001 - families never change

    @override
    def restore(self, arrays: State) -> None:
        self._learner._set_families(arrays)  # noqa: SLF001

    @override
    def finish(self) -> None:
        families = self._learner.families_
        self._learner.summary_.facts["factor_bytes"] = sum(family.factor.nbytes for family in families)


def _inputs(X: Matrix, family: Family) -> Floats:
    """Return what the factor of a family applies to: x in the primal form, Sᵀx in the dual form, as rows."""
    return X.toarray() if family.support is None else np.asarray((X @ family.support.T).toarray())


def _fit_family(examples: Matrix, signs: Floats, children: Ints, ridge: float) -> Family:
    """Factor the smaller of the two regularized Gram matrices and solve for all children at once.

    Args:
        examples: (n_S, r) the examples that have the parent, Sᵀ.
        signs: (n_S, number of children) their labels as ±1.
        children: labels of the columns of ``signs``.
        ridge: weight of the identity matrix.

    Raises:
        UnsuitableDataError: the matrix is singular in double precision.
    """
    dual = examples.shape[1] > examples.shape[0]
    gram = np.asarray((examples @ examples.T if dual else examples.T @ examples).toarray())
    gram[np.diag_indices_from(gram)] += ridge
    try:
        factor, lower = cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError as error:
        raise UnsuitableDataError(
            "h_rls cannot solve its equations, because the values of the features are too large for the "
            "ridge; use the scaling unit, or a larger ridge"
        ) from error
    target = signs if dual else np.asarray(examples.T @ signs)
    solution = cho_solve((factor, lower), target, check_finite=False)
    # LAPACK returns columns and a file stores rows. BLAS rounds products differently for the two orders, so a
    # fitted model has the order of a loaded one.
    factor, solution = np.ascontiguousarray(np.tril(factor)), np.ascontiguousarray(solution)
    return Family(children, factor, solution, examples if dual else None)


def _check_memory(orders: list[int]) -> None:
    """Raise an error if triangular factors of these orders need too much memory."""
    needed = sum(8 * order**2 for order in orders)
    if needed > FACTOR_BYTES:
        raise UnsuitableDataError(
            f"h_rls would need {needed / 2**30:.1f} GiB for triangular factors, and the limit is "
            f"{FACTOR_BYTES / 2**30:.0f} GiB; select fewer features or train on fewer examples"
        )
