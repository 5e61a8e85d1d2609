"""The flat support vector machine: one independent linear SVM for each label."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from models.arrays import AnyArray, Bools, Floats, Ints, Labels, Matrix, Vector, read_only
from models.base import Context, Learner, LearnerParameters, Monitor, State, Step
from models.base.memory import FIXED_BYTES, MATRIX_BYTES, ProblemSize
from models.base.products import product
from models.base.training import abbreviated
from models.baselines.class_weight import ClassWeight
from models.serialization.state import read_array


class LinearSVMParameters(LearnerParameters):
    """Parameters of the learners that train a linear SVM for each label."""

    algorithm: str
    C: float = Field(1.0, ge=1e-12, le=1e12)
    """Cost of the squared hinge losses, relative to the norm of the weights."""
    class_weight: ClassWeight = "none"
    """``balanced`` gives the examples with a label and those without it the same total cost, which helps rare
    labels. Otherwise every example costs the same."""

    def trains_labels_separately(self) -> bool:
        """Return true: each label has its own SVM."""
        return True

    def accepts_weights(self) -> bool:
        """Return true: a weight multiplies the loss of its example."""
        return True


class SVMParameters(LinearSVMParameters):
    """Parameters of ``svm``."""

    algorithm: Literal["svm"]


@dataclass(frozen=True)
class LinearSVM:
    """A trained linear SVM. The margin of x is x·weights + intercept.

    Attributes:
        weights: (r,) weights.
        intercept: the intercept.
        converged: whether liblinear reached its tolerance.
    """

    weights: Floats
    intercept: float
    converged: bool = True


def fit_linear_svm(
    X: Matrix,
    positive: Bools,
    C: float,
    seed: int,
    *,
    class_weight: ClassWeight = "none",
    weights: Floats | None = None,
) -> LinearSVM:
    """Train a linear SVM with squared hinge loss and an intercept, by scikit-learn's LinearSVC.

    Args:
        X: (g, r) examples.
        positive: (g,) whether each example has the label.
        C: cost of the losses.
        seed: of liblinear's order of coordinates, if it solves the dual problem.
        class_weight: ``balanced`` divides the costs of each class by its total weight.
        weights: (g,) factors of the costs of the examples; None if all are 1.

    Returns:
        The SVM. Its margin is constant, +1 if all examples are positive and -1 if none is.
    """
    if positive.all() or not positive.any():
        return LinearSVM(np.zeros(X.shape[1]), 1.0 if len(positive) and positive.all() else -1.0)
    balance = None if class_weight == "none" else class_weight
    svc = LinearSVC(C=C, dual="auto", class_weight=balance, random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        svc.fit(X, positive, sample_weight=weights)
    converged = not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return LinearSVM(svc.coef_[0], float(svc.intercept_[0]), converged)


class SVM(Learner):
    """One linear SVM for each label, with squared hinge loss and an intercept (scikit-learn's LinearSVC).

    This is the flat baseline of the papers. The score of a label is the inner product plus the intercept. A
    label of every training example has the constant score +1. An example is left out for the labels that are
    unknown for it.

    Args:
        C: cost of the losses, relative to the norm of the weights.
        class_weight: ``none`` or ``balanced``.
        random_state: seed of liblinear's order of coordinates.

    Attributes:
        coef_: (r, k) weights.
        intercept_: (k,) intercepts.

    >>> SVM(C=10).fit([[1.0, 0], [0, 1], [1, 1]], [[1, 0], [0, 1], [1, 1]]).predict([[0.9, 0.1]])
    array([[1, 0]])
    """

    parameters: ClassVar[type[LearnerParameters]] = SVMParameters
    algorithm: ClassVar[str] = "svm"

    coef_: Floats
    intercept_: Floats

    def __init__(self, C: float = 1.0, class_weight: ClassWeight = "none", random_state: int = 0) -> None:
        self.C = C
        self.class_weight = class_weight
        self.random_state = random_state

    def _fit(
        self,
        X: Matrix,
        Y: Labels,
        parameters: LinearSVMParameters,
        context: Context,
        monitor: Monitor,
        resume: State | None,
    ) -> None:
        self._fit_svms(X, Y, parameters, lambda _: None, context, monitor, resume)

    def _fit_svms(
        self,
        X: Matrix,
        Y: Labels,
        parameters: LinearSVMParameters,
        rows_of: Callable[[int], Ints | None],
        context: Context,
        monitor: Monitor,
        resume: State | None,
    ) -> None:
        """Train an SVM for each label j, on the examples ``rows_of(j)`` (None: all examples)."""
        k = Y.shape[1]
        start, converged = 0, np.ones(k, dtype=np.bool_)
        self.coef_, self.intercept_ = np.zeros((X.shape[1], k)), np.zeros(k)
        if resume is not None:
            start, converged = int(resume["completed"]), resume["converged"].copy()
            self.coef_, self.intercept_ = resume["coef"].copy(), resume["intercept"].copy()
        X, columns = _with_int32_indices(X), Y.tocsc()
        unknown = context.unknown.tocsc() if context.unknown is not None else None

        def snapshot(completed: int) -> State:
            fitted = {name: array.copy() for name, array in SVM.get_state(self).items()}
            return {**fitted, "converged": converged.copy(), "completed": np.array(completed)}

        for j in range(start, k):
            positive = np.zeros(X.shape[0], dtype=np.bool_)
            positive[columns.indices[columns.indptr[j] : columns.indptr[j + 1]]] = True
            rows = rows_of(j)
            if unknown is not None:
                rows = _known(rows, X.shape[0], unknown.indices[unknown.indptr[j] : unknown.indptr[j + 1]])
            weights = context.weights
            svm = fit_linear_svm(
                X if rows is None else X[rows],
                positive if rows is None else positive[rows],
                parameters.C,
                self.random_state,
                class_weight=parameters.class_weight,
                weights=weights if rows is None or weights is None else weights[rows],
            )
            self.coef_[:, j], self.intercept_[j] = svm.weights, svm.intercept
            converged[j] = svm.converged
            monitor(Step(j + 1, k, "labels", {}, partial(snapshot, j + 1)))
        if not converged.all():
            names = context.labels or [str(j) for j in range(k)]
            listed = abbreviated([names[j] for j in np.flatnonzero(~converged).tolist()])
            self.summary_.warnings.append(
                f"liblinear did not reach its tolerance for {listed}; try a smaller C"
            )

    def score_one(self, x: Vector) -> Floats:
        """Return the scores of one example; see the base class."""
        return self._scores(x).ravel()

    def _scores(self, X: Matrix | Vector) -> Floats:
        return product(X, self.coef_) + self.intercept_

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """Return the terms w_f·x_f of the inner product. The score is their sum plus the intercept."""
        return x.indices.astype(np.int64), x.data * self.coef_[x.indices, label]

    def estimate_bytes(self, size: ProblemSize) -> int:
        """Return 16·r·k for the weights and a copy, and what liblinear and the rows of one label take."""
        liblinear = 36 * size.entries + 60 * size.examples + 40 * size.features
        return 2 * size.weights + liblinear + MATRIX_BYTES * size.entries + FIXED_BYTES

    def get_state(self) -> State:
        """Return the weights and intercepts."""
        return {"coef": self.coef_, "intercept": self.intercept_}

    def set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Restore the learner from the arrays of ``get_state``."""
        self.coef_ = read_array(state, "coef", "float64", (None, None))
        self.n_features_in_, self.n_labels_ = self.coef_.shape
        self.intercept_ = read_array(state, "intercept", "float64", (self.n_labels_,))
        return self


def _known(rows: Ints | None, n_examples: int, unknown: AnyArray) -> Ints | None:
    """Return the rows (None: all) without the examples for which a label is unknown."""
    if not len(unknown):
        return rows
    known = np.ones(n_examples, dtype=np.bool_)
    known[unknown] = False
    return np.flatnonzero(known) if rows is None else rows[known[rows]]


def _with_int32_indices(X: Matrix) -> Matrix:
    """Return the same matrix with 32-bit indices, which liblinear requires, if they are large enough."""
    if X.indices.dtype == np.int32 or X.nnz > np.iinfo(np.int32).max:
        return X
    return csr_array(
        (read_only(X.data), X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape
    )
