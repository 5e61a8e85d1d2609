"""H-M3: the hierarchical maximum margin Markov network (Rousu, Saunders, Szedmak and Shawe-Taylor)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field
from threadpoolctl import threadpool_limits

from models.arrays import AnyArray, Floats, Ints, Labels, Matrix
from models.base import Context, Learner, LearnerParameters, Monitor, State, Step
from models.errors import UnsuitableDataError
from models.hierarchy.ascent import Ascent, Check
from models.hierarchy.decoding import best_labelings, indicators, max_marginals
from models.hierarchy.forest import Forest, Scaling
from models.hierarchy.kernels import (
    AnyKernel,
    DualWeights,
    Kernel,
    LinearKernel,
    PolynomialKernel,
    PrimalWeights,
    RBFKernel,
    kernel_named,
)
from models.hierarchy.losses import EdgeLoss
from models.hierarchy.problem import forest_of
from models.serialization.state import read_array, read_csr, read_integer, require

TRAINING_BYTES = 4 * 2**30
"""What a training keeps may take this much memory."""

ROWS_OF_A_BLOCK = 1024


class HM3Parameters(LearnerParameters):
    """Parameters of ``h_m3``."""

    algorithm: Literal["h_m3"]
    C: float = Field(1.0, gt=0)
    """Cost of the slacks against the norm of the weights."""
    loss: EdgeLoss = "simplified_hierarchical"
    """Loss by which the margins are scaled."""
    scaling: Scaling = "uniform"
    """What a mistake costs by its place in the tree; symmetric_difference knows no scaling."""
    kernel: Kernel = "linear"
    """Kernel between examples, by name or with its parameters."""
    gap: float = Field(1e-2, gt=0, lt=1)
    """Relative duality gap at which training ends."""
    passes: int = Field(50, ge=1)
    """Passes over the examples at most."""


class HM3(Learner):
    """Maximum margin Markov network over the label tree, trained through its marginalised dual problem.

    A labeling y of an example is worth Σ_e w_e^{y_e}·φ(x) over the edges e of the tree, each with a weight
    vector for its four labelings ("Feature vectors"); a root has an edge from a parent that is always on.
    Training solves

        min ½‖w‖² + C Σ_i ξ_i   with   w·Δφ(x_i, y) ≥ ℓ(y_i, y) − ξ_i for all y ("Primal optimization
        problem")

    by conditional gradient ascent on the edge marginals, example by example (``ascent``), until the
    relative duality gap is small. The loss ℓ is the symmetric difference or the simplified hierarchical
    loss.

    The score of a label is a max-marginal: the worth of the best labeling with the label on, minus that of
    the best with it off. So the sign rule gives the best labeling; it need not be closed under ancestors.
    Without a label tree every label is a root.

    A linear kernel keeps 4k weights a feature; other kernels keep the kernel matrix of the g examples. All
    that a training keeps, 32·k·(g + r) or 8·g·(g + 4k) bytes, may take 4 GiB; more is refused.

    Args:
        C: cost of the slacks.
        loss: ``simplified_hierarchical`` or ``symmetric_difference``.
        scaling: ``uniform``, ``sibling`` or ``subtree``; scales only the hierarchical loss.
        kernel: ``linear``, ``polynomial`` or ``rbf``, or one with its parameters, ``{"kind": "rbf",
            "gamma": 2.0}``.
        gap: relative duality gap at which training ends.
        passes: passes at most.
        random_state: seed of the examples' order.

    Attributes:
        forest_: the label forest.
        edge_weights_: (r, 4, k) for a linear kernel w by feature, edge labeling (2·parent + child) and
            position in the forest; (s, 4, k) for another the weights ν of the s support examples.
        support_: (s, r) the examples with a weight, None for a linear kernel.

    >>> from models.base import Context
    >>> tree = Context(parents=np.array([-1, 0]))
    >>> X, Y = [[1.0, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]], [[1, 0], [1, 1], [0, 0], [0, 0]]
    >>> HM3(C=10).fit(X, Y, context=tree).predict(X).tolist()
    [[1, 0], [1, 1], [0, 0], [0, 0]]
    """

    parameters = HM3Parameters
    algorithm: ClassVar[str] = "h_m3"

    forest_: Forest
    kernel_: AnyKernel
    edge_weights_: Floats
    support_: Matrix | None

    def __init__(
        self,
        C: float = 1.0,
        loss: str = "simplified_hierarchical",
        scaling: str = "uniform",
        kernel: Any = "linear",
        gap: float = 1e-2,
        passes: int = 50,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.scaling = scaling
        self.kernel = kernel
        self.gap = gap
        self.passes = passes
        self.random_state = random_state

    def _fit(
        self,
        X: Matrix,
        Y: Labels,
        parameters: HM3Parameters,
        context: Context,
        monitor: Monitor,
        resume: State | None,
    ) -> None:
        self.forest_ = forest_of(context, Y.shape[1], self.summary_)
        given = parameters.kernel
        self.kernel_ = kernel_named(given) if isinstance(given, str) else given
        if parameters.loss == "symmetric_difference" and parameters.scaling != "uniform":
            self.summary_.warnings.append(
                f"symmetric_difference counts labels, so the scaling {parameters.scaling} has no effect"
            )
        self._refuse_too_large(*X.shape)
        with threadpool_limits(1, user_api="blas"):  # bits must not depend on the number of threads
            self._train(X, Y, parameters, monitor, resume)

    def _train(
        self, X: Matrix, Y: Labels, parameters: HM3Parameters, monitor: Monitor, resume: State | None
    ) -> None:
        forest = self.forest_
        width = 4 * forest.n_labels
        weights = (
            PrimalWeights(X, width)
            if isinstance(self.kernel_, LinearKernel)
            else DualWeights(self.kernel_, X, width)
        )
        scaling: Scaling = parameters.scaling if parameters.loss == "simplified_hierarchical" else "uniform"
        ascent = Ascent(
            forest,
            Y.toarray()[:, forest.order].astype(np.bool_),
            parameters.loss,
            forest.coefficients(scaling)[forest.order],
            parameters.C,
            weights,
            None if resume is None else resume["marginals"],
        )
        completed = 0 if resume is None else int(resume["completed"])
        check = ascent.check()
        while completed < parameters.passes and check.relative_gap > parameters.gap:
            ascent.run_pass(check, np.random.default_rng([self.random_state, completed]))
            completed += 1
            check = ascent.check()
            monitor(
                Step(
                    completed,
                    parameters.passes,
                    "passes",
                    {"primal": check.primal, "dual": check.dual, "gap": check.relative_gap},
                    partial(_snapshot, ascent, completed),
                    partial(self._scores_so_far, X, weights, ascent),
                )
            )
        self._become(X, weights, ascent)
        self._note(check, completed, parameters)

    def _become(self, X: Matrix, weights: PrimalWeights | DualWeights, ascent: Ascent) -> None:
        """Be the learner of these weights, as a check has just left them."""
        if isinstance(weights, PrimalWeights):
            self.support_ = None
            kept = weights.w
        else:
            nu = ascent.nu().reshape(X.shape[0], -1)
            supporting = np.flatnonzero(nu.any(axis=1))
            self.support_, kept = X[supporting], nu[supporting]
        self.edge_weights_ = kept.reshape(len(kept), 4, self.forest_.n_labels)

    def _scores_so_far(
        self, training: Matrix, weights: PrimalWeights | DualWeights, ascent: Ascent, X: Matrix
    ) -> Floats:
        self._become(training, weights, ascent)
        return self._scores(X)

    def _note(self, check: Check, completed: int, parameters: HM3Parameters) -> None:
        self.summary_.facts |= {
            "passes": completed,
            "primal": check.primal,
            "dual": check.dual,
            "gap": check.relative_gap,
        }
        if self.support_ is not None:
            self.summary_.facts["support_examples"] = self.support_.shape[0]
        if check.relative_gap > parameters.gap:
            self.summary_.warnings.append(
                f"the relative duality gap is {check.relative_gap:.2g} after {completed} passes, above the "
                f"{parameters.gap:g} asked for; allow more passes"
            )

    def _refuse_too_large(self, g: int, r: int) -> None:
        width = 4 * self.n_labels_
        linear = isinstance(self.kernel_, LinearKernel)
        needed = 8 * (width * (g + r) if linear else g * (g + width))
        if needed > TRAINING_BYTES:
            what = "weights and marginals" if linear else f"the kernel matrix of {g} examples"
            raise UnsuitableDataError(
                f"h_m3 would need {needed / 2**30:.1f} GiB for {what}, and the limit is "
                f"{TRAINING_BYTES / 2**30:.0f} GiB; "
                + ("select fewer features" if linear else "train on fewer examples or with the linear kernel")
            )

    def _scores(self, X: Matrix) -> Floats:
        scores = np.empty((X.shape[0], self.n_labels_))
        for start in range(0, X.shape[0], ROWS_OF_A_BLOCK):
            rows = slice(start, start + ROWS_OF_A_BLOCK)
            marginals = max_marginals(self.forest_, self._potentials(X[rows]))
            scores[rows] = marginals[:, self.forest_.inverse]
        return scores

    def _potentials(self, X: Matrix) -> Floats:
        """(n, 4, k) by position."""
        weights = self.edge_weights_.reshape(len(self.edge_weights_), -1)
        if self.support_ is None:
            flat = X @ weights
        else:
            with threadpool_limits(1, user_api="blas"):  # as in training
                flat = self.kernel_.of(X, self.support_) @ weights
        return np.asarray(flat).reshape(X.shape[0], 4, self.n_labels_)

    @property
    def can_explain(self) -> bool:
        """Whether the kernel is linear."""
        return self.support_ is None

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """What each feature adds to the score, which is their exact sum, for a linear kernel.

        With y⁺ the best labeling that has the label and y⁻ the best that has not, a feature adds x_f times
        the difference of its edge weights, Σ_e w_e^{y⁺_e} − w_e^{y⁻_e}. The two labelings depend on x, so
        the reading holds for this example.

        Raises:
            ParameterError: the kernel is not linear.
        """
        if self.support_ is not None:
            return super().explain(x, label)
        forest = self.forest_
        node = forest.inverse[label]
        clamped = np.repeat(self._potentials(x), 2, axis=0)
        clamped[0, [0, 2], node] = -np.inf  # on: the labelings of its edge with the child off are forbidden
        clamped[1, [1, 3], node] = -np.inf
        on, off = indicators(forest, best_labelings(forest, clamped))
        weights = np.tensordot(self.edge_weights_[x.indices], on - off, axes=2)
        return x.indices.astype(np.int64), x.data * weights

    def get_state(self) -> State:
        """The forest, the edge weights, and for kernels other than the linear one the support examples."""
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

    def set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Become the learner with these weights."""
        self.forest_ = Forest(read_array(state, "parents", "int64", (None,)))
        self.n_labels_ = self.forest_.n_labels
        self.edge_weights_ = read_array(state, "edge_weights", "float64", (None, 4, self.n_labels_))
        self.n_features_in_ = len(self.edge_weights_)
        self.support_, self.kernel_ = None, LinearKernel()
        if "support.data" in state:
            s, self.n_features_in_ = read_array(state, "support.shape", "int64", (2,)).tolist()
            require(s == len(self.edge_weights_), "there are not as many weights as support examples")
            self.support_ = read_csr(state, "support", self.n_features_in_, n_rows=s)
            self.kernel_ = (
                PolynomialKernel(degree=read_integer(state, "degree"))
                if "degree" in state
                else RBFKernel(gamma=float(read_array(state, "gamma", "float64", ())))
            )
        return self


def _snapshot(ascent: Ascent, completed: int) -> State:
    return {"marginals": ascent.marginals.copy(), "completed": np.array(completed)}
