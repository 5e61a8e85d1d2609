"""H-M3: the hierarchical maximum margin Markov network (Rousu, Saunders, Szedmak and Shawe-Taylor)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field
from typing_extensions import override

from models.arrays import AnyArray, Floats, Ints, Labels, Matrix, Vector
from models.base import Learner, LearnerParameters, Problem, State, Training
from models.base.abilities import Explaining
from models.base.products import product
from models.errors import ParameterError, UnsuitableDataError
from models.hierarchy.conditional_gradient import ConditionalGradient, Objectives
from models.hierarchy.decoding import best_labelings, indicators, max_marginals
from models.hierarchy.dense_blocks import blockwise_product, one_blas_thread
from models.hierarchy.forest import Forest, Scaling
from models.hierarchy.from_context import forest_from_context
from models.hierarchy.kernels import (
    AnyKernel,
    Kernel,
    LinearKernel,
    PolynomialKernel,
    RBFKernel,
    default_kernel,
)
from models.hierarchy.losses import EdgeLoss
from models.hierarchy.weights import DualWeights, PrimalWeights
from models.serialization.state import read_array, read_csr, read_integer, require

TRAINING_BYTES = 4 * 2**30
"""Memory that the weights, marginals and kernel matrix of a training may use."""

BLOCK_ROWS = 1024
"""Examples that are scored at once."""


class HM3Parameters(LearnerParameters):
    """Parameters of ``h_m3``."""

    algorithm: Literal["h_m3"]
    C: float = Field(1.0, gt=0)
    """Cost of the slacks, relative to the norm of the weights."""
    loss: EdgeLoss = "simplified_hierarchical"
    """Loss that scales the margins."""
    scaling: Scaling = "uniform"
    """How the cost of a mistake depends on its place in the tree; no effect on symmetric_difference."""
    kernel: Kernel = "linear"
    """Kernel between examples, by name or as an object with its parameters."""
    gap: float = Field(1e-2, gt=0, lt=1)
    """Relative duality gap at which training stops."""
    passes: int = Field(50, ge=1)
    """Maximum number of passes over the examples."""


class HM3(Learner, Explaining):
    """Maximum margin Markov network over the label tree, trained through its marginalized dual problem.

    The value of a labeling y of an example is Σ_e w_e^{y_e}·φ(x) over the edges e of the tree. Each edge has
    a weight vector for each of its four labelings ("Feature vectors"); a root has an edge from a parent that
    is always on. Training solves

        min ½‖w‖² + C Σ_i ξ_i   subject to   w·Δφ(x_i, y) ≥ ℓ(y_i, y) − ξ_i for all y
        ("Primal optimization problem")

    by conditional gradient ascent on the edge marginals, example by example, until the relative duality gap
    is small (see ``conditional_gradient``). The loss ℓ is the symmetric difference or the simplified
    hierarchical loss.

    The score of a label is a max-marginal: the value of the best labeling with the label on, minus the value
    of the best labeling with it off. So the sign rule gives the best labeling. A best labeling is not always
    closed under ancestors. Without a label tree, every label is a root.

    The linear kernel needs 4k weights for each feature. Other kernels need the kernel matrix of the g
    training examples. Training uses 32·k·(g + r) or 8·g·(g + 4k) bytes and is rejected above 4 GiB.

    Attributes:
        forest_: the label forest.
        edge_weights_: with the linear kernel, (r, 4, k) w by feature, edge labeling (2·parent + child) and
            position in the forest; with other kernels, (s, 4, k) the coefficients ν of the s support
            examples.
        support_: (s, r) the examples with a coefficient other than 0; None with the linear kernel.

    >>> from models.base import Context
    >>> tree = Context(parents=np.array([-1, 0]))
    >>> X, Y = [[1.0, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]], [[1, 0], [1, 1], [0, 0], [0, 0]]
    >>> HM3(C=10).fit(X, Y, context=tree).predict(X).tolist()
    [[1, 0], [1, 1], [0, 0], [0, 0]]
    """

    parameters = HM3Parameters
    algorithm: ClassVar[str] = "h_m3"
    randomized: ClassVar[bool] = True
    needs_scaled_features: ClassVar[bool] = True

    forest_: Forest
    kernel_: AnyKernel
    edge_weights_: Floats
    support_: Matrix | None

    def _training(self, problem: Problem, parameters: HM3Parameters) -> ConditionalGradientPasses:
        self.forest_ = forest_from_context(problem.context, problem.Y.shape[1], self.summary_)
        kernel = parameters.kernel
        self.kernel_ = default_kernel(kernel) if isinstance(kernel, str) else kernel
        if parameters.loss == "symmetric_difference" and parameters.scaling != "uniform":
            self.summary_.warnings.append(
                f"the scaling {parameters.scaling} has no effect on the loss symmetric_difference"
            )
        self._check_memory(*problem.X.shape)
        return ConditionalGradientPasses(self, problem.X, problem.Y, parameters)

    def _set_weights(
        self, X: Matrix, weights: PrimalWeights | DualWeights, optimizer: ConditionalGradient
    ) -> None:
        """Set the fitted attributes from the weights that the last evaluation computed."""
        if isinstance(weights, PrimalWeights):
            self.support_ = None
            flat = weights.w
        else:
            nu = optimizer.nu().reshape(X.shape[0], -1)
            support = np.flatnonzero(nu.any(axis=1))
            self.support_, flat = X[support], nu[support]
        self.edge_weights_ = flat.reshape(len(flat), 4, self.forest_.n_labels)

    def _summarize(self, objectives: Objectives, completed: int, parameters: HM3Parameters) -> None:
        self.summary_.facts |= {
            "passes": completed,
            "primal": objectives.primal,
            "dual": objectives.dual,
            "gap": objectives.relative_gap,
        }
        if self.support_ is not None:
            self.summary_.facts["support_examples"] = self.support_.shape[0]
        if objectives.relative_gap > parameters.gap:
            self.summary_.warnings.append(
                f"the relative duality gap is {objectives.relative_gap:.2g} after {completed} passes, above "
                f"the requested {parameters.gap:g}; allow more passes"
            )

    def _check_memory(self, g: int, r: int) -> None:
        """Raise an error if a training on g examples with r features needs too much memory."""
        width = 4 * self.n_labels_
        linear = isinstance(self.kernel_, LinearKernel)
        needed = 8 * (width * (g + r) if linear else g * (g + width))
        if needed > TRAINING_BYTES:
            purpose = "weights and marginals" if linear else f"the kernel matrix of {g} examples"
            raise UnsuitableDataError(
                f"h_m3 would need {needed / 2**30:.1f} GiB for {purpose}, and the limit is "
                f"{TRAINING_BYTES / 2**30:.0f} GiB; "
                + ("select fewer features" if linear else "train on fewer examples or with the linear kernel")
            )

    def score_one(self, x: Vector) -> Floats:
        """Return the scores of one example; see the base class."""
        if self.support_ is not None:
            return super().score_one(x)
        return self._scores_of_block(x).ravel()

    def _scores(self, X: Matrix) -> Floats:
        scores = np.empty((X.shape[0], self.n_labels_))
        for start in range(0, X.shape[0], BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            scores[rows] = self._scores_of_block(X[rows])
        return scores

    def _scores_of_block(self, X: Matrix | Vector) -> Floats:
        marginals = max_marginals(self.forest_, self._potentials(X))
        return np.asarray(marginals[:, self.forest_.positions])

    def _potentials(self, X: Matrix | Vector) -> Floats:
        """Return the (n, 4, k) potentials by position. A vector requires the linear kernel."""
        weights = self.edge_weights_.reshape(len(self.edge_weights_), 4 * self.n_labels_)
        if self.support_ is None or isinstance(X, Vector):
            flat = product(X, weights)
        else:
            with one_blas_thread():  # as in training
                flat = blockwise_product(self.kernel_(X, self.support_), weights)
        return np.asarray(flat).reshape(-1, 4, self.n_labels_)

    @property
    def can_explain(self) -> bool:
        """Whether ``explain`` is available: only with the linear kernel."""
        return self.support_ is None

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """Return the contribution of each feature to the score; the contributions add up to the score.

        With y⁺ the best labeling that has the label and y⁻ the best labeling that does not, a feature
        contributes x_f·Σ_e (w_e^{y⁺_e} − w_e^{y⁻_e}). The two labelings depend on x, so the explanation is
        valid for this example only.

        Raises:
            ParameterError: The kernel is not linear.
        """
        if self.support_ is not None:
            raise ParameterError("h_m3 explains its scores only with the linear kernel", "/explain")
        forest = self.forest_
        node = forest.positions[label]
        clamped = np.repeat(self._potentials(x), 2, axis=0)
        clamped[0, [0, 2], node] = -np.inf  # on: forbid the edge labelings with the child off
        clamped[1, [1, 3], node] = -np.inf
        on, off = indicators(forest, best_labelings(forest, clamped))
        weights = np.tensordot(self.edge_weights_[x.indices], on - off, axes=2)
        return x.indices.astype(np.int64), x.data * weights

    def _get_state(self) -> State:
        """Return the forest, the edge weights and, except with the linear kernel, the support examples."""
        state: State = {"parents": self.forest_.parents, "edge_weights": self.edge_weights_}
        if self.support_ is not None:
            state |= {
                "support.data": self.support_.data,
                "support.indices": self.support_.indices,
                "support.indptr": self.support_.indptr,
                "support.shape": np.array(self.support_.shape),
            }
            if isinstance(self.kernel_, PolynomialKernel):
                state["degree"] = np.array(self.kernel_.degree)
            elif isinstance(self.kernel_, RBFKernel):
                state["gamma"] = np.array(self.kernel_.gamma)
        return state

    def _set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Restore the learner from the arrays of ``get_state``."""
        self.forest_ = Forest(read_array(state, "parents", "int64", (None,)))
        self.n_labels_ = self.forest_.n_labels
        self.edge_weights_ = read_array(state, "edge_weights", "float64", (None, 4, self.n_labels_))
        self.n_features_in_ = len(self.edge_weights_)
        self.support_, self.kernel_ = None, LinearKernel()
        if "support.data" in state:
            s, self.n_features_in_ = read_array(state, "support.shape", "int64", (2,)).tolist()
            require(s == len(self.edge_weights_), "the numbers of weights and of support examples differ")
            self.support_ = read_csr(state, "support", self.n_features_in_, n_rows=s)
            self.kernel_ = (
                PolynomialKernel(degree=read_integer(state, "degree"))
                if "degree" in state
                else RBFKernel(gamma=float(read_array(state, "gamma", "float64", ())))
            )
        return self


class ConditionalGradientPasses(Training):
    """Passes of the conditional gradient over the examples, until the relative duality gap is small."""

    unit: ClassVar[str] = "passes"

    def __init__(self, learner: HM3, X: Matrix, Y: Labels, parameters: HM3Parameters) -> None:
        super().__init__(parameters.passes)
        self._learner = learner
        self._X = X
        self._Y = Y
        self._parameters = parameters
        width = 4 * learner.forest_.n_labels
        self._weights = (
            PrimalWeights(X, width)
            if isinstance(learner.kernel_, LinearKernel)
            else DualWeights(learner.kernel_, X, width)
        )
        self._optimizer: ConditionalGradient | None = None

    @override
    def running(self) -> AbstractContextManager[object]:
        return one_blas_thread()  # the result must not depend on threads

    def _start(self, marginals: Floats | None) -> ConditionalGradient:
        p, forest = self._parameters, self._learner.forest_
        scaling: Scaling = p.scaling if p.loss == "simplified_hierarchical" else "uniform"
        optimizer = self._optimizer = ConditionalGradient(
            forest,
            self._Y.toarray()[:, forest.order].astype(np.bool_),
            p.loss,
            forest.coefficients(scaling)[forest.order],
            p.C,
            self._weights,
            marginals,
        )
        self._objectives = optimizer.evaluate()
        return optimizer

    @override
    def advance(self) -> Mapping[str, float] | None:
        optimizer = self._optimizer or self._start(None)
        if self._objectives.relative_gap <= self._parameters.gap:
            return None
        rng = np.random.default_rng([self._learner.random_state, self.completed])
        optimizer.run_pass(self._objectives, rng)
        self.completed += 1
        found = self._objectives = optimizer.evaluate()
        return {"primal": found.primal, "dual": found.dual, "gap": found.relative_gap}

    @override
    def arrays(self) -> State:
        assert self._optimizer is not None, "a step was taken"  # noqa: S101
        return {"marginals": self._optimizer.marginals.copy()}

    @override
    def restore(self, arrays: State) -> None:
        self._start(arrays["marginals"])

    @override
    def scores(self) -> Callable[[Matrix], Floats]:
        def score(X: Matrix) -> Floats:
            self._set_weights()
            return np.asarray(self._learner.decision_function(X))

        return score

    @override
    def finish(self) -> None:
        self._set_weights()
        self._learner._summarize(self._objectives, self.completed, self._parameters)  # noqa: SLF001

    def _set_weights(self) -> None:
        optimizer = self._optimizer
        assert optimizer is not None, "the training has started"  # noqa: S101
        self._learner._set_weights(self._X, self._weights, optimizer)  # noqa: SLF001
