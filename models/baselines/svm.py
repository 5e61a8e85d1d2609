"""The flat support vector machine: one independent linear SVM for each label."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array
from sklearn.svm import _liblinear
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from typing_extensions import override

from models.arrays import AnyArray, Bools, Floats, Ints, Matrix, Vector, read_only
from models.base import LearnerParameters, Problem, State, Training
from models.base.abilities import Explaining
from models.base.products import product
from models.base.training import abbreviated
from models.base.weighted import WeightedLearner
from models.baselines.class_weight import ClassWeight
from models.baselines.coefficients import (
    CoefficientColumns,
    Coefficients,
    Compression,
    Precision,
    coefficients_state,
    contributions,
    read_coefficients,
)
from models.serialization.state import read_array

_DUAL, _PRIMAL = 1, 2
"""liblinear's solvers for the squared hinge loss with squared weights."""

_TOLERANCE = 1e-4
_MAX_ITERATIONS = 1000
"""LinearSVC's defaults."""


class LinearSVMParameters(LearnerParameters):
    """Parameters of the learners that train a linear SVM for each label."""

    algorithm: str
    C: float = Field(1.0, ge=1e-12, le=1e12)
    """Cost of the squared hinge losses, relative to the norm of the weights."""
    class_weight: ClassWeight = "none"
    """``balanced`` gives the examples with a label and those without it the same total cost, which helps rare
    labels. Otherwise every example costs the same."""
    precision: Precision = "float64"
    """Type of the stored weights. ``float32`` halves the model; scores are rounded to about 7 digits."""
    prune: float = Field(0.0, ge=0, lt=1)
    """Weights whose absolute value is below this fraction of the label's largest one are dropped, for example
    0.01. The model then stores only the weights that are left."""

    def trains_labels_separately(self) -> bool:
        """Return true: each label has its own SVM."""
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
    """Train a linear SVM with squared hinge loss and an intercept, bit by bit scikit-learn's LinearSVC.

    LinearSVC checks and converts all examples again for each label. So this calls the function of liblinear
    that LinearSVC calls, which saves that time (``benchmarks/learners/ratios.py``). It is not part of
    scikit-learn's public interface; tests compare the weights with those of LinearSVC.

    Args:
        X: (g, r) examples with 32-bit indices, finite.
        positive: (g,) whether each example has the label.
        C: cost of the losses.
        seed: liblinear's seed of the order of coordinates, if it solves the dual problem.
        class_weight: ``balanced`` divides the costs of each class by its total weight.
        weights: (g,) factors of the costs of the examples; None if all are 1.

    Returns:
        The SVM. Its margin is constant, +1 if all examples are positive and -1 if none is.
    """
    if positive.all() or not positive.any():
        return LinearSVM(np.zeros(X.shape[1]), 1.0 if len(positive) and positive.all() else -1.0)
    balance = None if class_weight == "none" else class_weight
    costs = compute_class_weight(balance, classes=np.array([False, True]), y=positive, sample_weight=weights)
    _liblinear.set_verbosity_wrap(0)  # liblinear prints the progress of its solvers by default
    coefficients, n_iterations = _liblinear.train_wrap(
        X,
        positive.astype(np.float64),
        True,  # X is sparse
        _PRIMAL if solves_primal(*X.shape) else _DUAL,
        _TOLERANCE,
        1.0,  # the value of the feature whose weight is the intercept
        C,
        costs,
        _MAX_ITERATIONS,
        seed,
        0.1,  # only regression uses it
        np.ones(len(positive)) if weights is None else weights,
    )
    return LinearSVM(
        coefficients[0, :-1], float(coefficients[0, -1]), bool(n_iterations[0] < _MAX_ITERATIONS)
    )


def solves_primal(g: int, r: int) -> bool:
    """Return whether the primal problem of g examples with r features is solved, and not the dual one."""
    return g >= r


def liblinear_seed(random_state: int) -> int:
    """Return the seed that LinearSVC gives liblinear."""
    return int(check_random_state(random_state).randint(np.iinfo(np.intc).max))


class SVM(WeightedLearner, Explaining):
    """One linear SVM for each label, with squared hinge loss and an intercept (scikit-learn's LinearSVC).

    This is the flat baseline of the papers. The score of a label is the inner product plus the intercept. A
    label of every training example has the constant score +1. An example is left out for the labels that are
    unknown for it.

    Attributes:
        coef_: (r, k) weights; sparse if they are pruned.
        intercept_: (k,) intercepts.

    >>> SVM(C=10).fit([[1.0, 0], [0, 1], [1, 1]], [[1, 0], [0, 1], [1, 1]]).predict([[0.9, 0.1]])
    array([[1, 0]])
    """

    parameters: ClassVar[type[LearnerParameters]] = SVMParameters
    algorithm: ClassVar[str] = "svm"
    randomized: ClassVar[bool] = True
    needs_scaled_features: ClassVar[bool] = True

    coef_: Coefficients
    intercept_: Floats

    def _training(self, problem: Problem, parameters: LinearSVMParameters) -> LabelByLabel:
        return LabelByLabel(self, problem, parameters, lambda _: None)

    def score_one(self, x: Vector) -> Floats:
        """Return the scores of one example; see the base class."""
        return self._scores(x).ravel()

    def _scores(self, X: Matrix | Vector) -> Floats:
        return product(X, self.coef_) + self.intercept_

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """Return the terms w_f·x_f of the inner product. The score is their sum plus the intercept."""
        features = x.indices.astype(np.int64)
        return features, contributions(self.coef_, features, x.data, label)

    def _get_state(self) -> State:
        """Return the weights and intercepts."""
        return {**coefficients_state(self.coef_), "intercept": self.intercept_}

    def _set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Restore the learner from the arrays of ``get_state``."""
        self.intercept_ = read_array(state, "intercept", "float64", (None,))
        compression = Compression(self.precision, self.prune)
        self.coef_ = read_coefficients(state, len(self.intercept_), compression)
        self.n_features_in_, self.n_labels_ = self.coef_.shape
        return self


class LabelByLabel(Training):
    """Trains one SVM after the other.

    Args:
        learner: receives the weights.
        problem: the examples.
        parameters: the validated parameters.
        rows_of: returns the rows of the examples of a label; None: all.
    """

    unit: ClassVar[str] = "labels"

    def __init__(
        self,
        learner: SVM,
        problem: Problem,
        parameters: LinearSVMParameters,
        rows_of: Callable[[int], Ints | None],
    ) -> None:
        X, k = problem.X, problem.Y.shape[1]
        super().__init__(k)
        self._learner = learner
        self._parameters = parameters
        self._context = problem.context
        self._seed = liblinear_seed(learner.random_state)
        self._n_features = X.shape[1]
        self._problems = BinaryProblems(problem, rows_of)
        self._columns = CoefficientColumns(X.shape[1], k, Compression(parameters.precision, parameters.prune))
        self._intercept = np.zeros(k)
        self._converged = np.ones(k, dtype=np.bool_)
        self._fitted: Iterator[tuple[int, LinearSVM]] = iter(())

    @override
    @contextmanager
    def running(self) -> Iterator[None]:
        # The threads end here, in whatever way the training ends: if the garbage collection ended them, it
        # could do so while another thread starts, and wait for ever.
        with closing(self._fit_remaining()) as self._fitted:
            yield

    @override
    def advance(self) -> Mapping[str, float]:
        j, svm = next(self._fitted)
        self._columns.append(j, svm.weights)
        self._intercept[j], self._converged[j] = svm.intercept, svm.converged
        self.completed = j + 1
        return {}

    def _fit_remaining(self) -> Generator[tuple[int, LinearSVM]]:
        yield from in_order(
            self._fit,
            range(self.completed, self.total),
            lambda j: solves_primal(self._problems.n_examples(j), self._n_features),
            self._context.n_jobs,
        )

    def _fit(self, j: int) -> LinearSVM:
        examples, positive, weights = self._problems.of_label(j)
        return fit_linear_svm(
            examples,
            positive,
            self._parameters.C,
            self._seed,
            class_weight=self._parameters.class_weight,
            weights=weights,
        )

    @override
    def arrays(self) -> State:
        state = {"intercept": self._intercept.copy(), "converged": self._converged.copy()}
        return {**self._columns.arrays(), **state}

    @override
    def restore(self, arrays: State) -> None:
        self._columns.restore(arrays, self.completed)
        self._intercept[:], self._converged[:] = arrays["intercept"], arrays["converged"]

    @override
    def finish(self) -> None:
        learner = self._learner
        learner.coef_, learner.intercept_ = self._columns.finish(), self._intercept
        if not self._converged.all():
            names = self._context.labels or [str(j) for j in range(self.total)]
            listed = abbreviated([names[j] for j in np.flatnonzero(~self._converged).tolist()])
            learner.summary_.warnings.append(
                f"liblinear did not reach its tolerance for {listed}; try a smaller C"
            )


class BinaryProblems:
    """The binary problem of each label: its examples, which of them are positive, and their weights.

    Args:
        problem: the examples.
        rows_of: returns the rows of the examples of a label; None: all.
    """

    def __init__(self, problem: Problem, rows_of: Callable[[int], Ints | None]) -> None:
        unknown = problem.context.unknown
        self._X = _with_int32_indices(problem.X)
        self._rows_of = rows_of
        self._columns = problem.Y.tocsc()
        self._unknown = unknown.tocsc() if unknown is not None else None
        self._weights = problem.weights

    def n_examples(self, j: int) -> int:
        """Return the number of examples of the problem of label j."""
        rows = self._rows(j)
        return self._X.shape[0] if rows is None else len(rows)

    def of_label(self, j: int) -> tuple[Matrix, Bools, Floats | None]:
        """Return the features of label j's n examples, (n,) which are positive, and (n,) their weights."""
        columns, weights = self._columns, self._weights
        positive = np.zeros(self._X.shape[0], dtype=np.bool_)
        positive[columns.indices[columns.indptr[j] : columns.indptr[j + 1]]] = True
        rows = self._rows(j)
        if rows is None:
            return self._X, positive, weights
        return self._X[rows], positive[rows], None if weights is None else weights[rows]

    def _rows(self, j: int) -> Ints | None:
        rows, unknown = self._rows_of(j), self._unknown
        if unknown is None:
            return rows
        return _known(rows, self._X.shape[0], unknown.indices[unknown.indptr[j] : unknown.indptr[j + 1]])


def in_order(
    fit: Callable[[int], LinearSVM], labels: range, is_parallel: Callable[[int], bool], n_jobs: int
) -> Iterator[tuple[int, LinearSVM]]:
    """Fit labels, several at the same time in threads, and yield the results in the order of the labels.

    liblinear releases the lock of the interpreter. But the process has only one generator of liblinear's
    random numbers, which order the coordinates of the dual problem. So a label is fitted in parallel only if
    liblinear solves its primal problem, which needs none. The bits do not depend on the number of threads.

    Args:
        fit: fits a label.
        labels: the labels.
        is_parallel: whether liblinear solves the primal problem of a label.
        n_jobs: number of threads.
    """
    if n_jobs == 1:
        for j in labels:
            yield j, fit(j)
        return
    with ThreadPoolExecutor(n_jobs) as pool:
        for parallel, run in groupby(labels, is_parallel):
            while group := list(islice(run, 2 * n_jobs if parallel else 1)):
                yield from zip(group, pool.map(fit, group), strict=True)


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
