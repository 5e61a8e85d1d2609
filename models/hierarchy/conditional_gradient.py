"""Conditional gradient ascent on the marginalized dual problem of H-M3 ("The optimization algorithm").

The marginals μ_i of an example are C times a point of the marginal polytope of the forest: the four marginals
of an edge add up to C. The dual objective is Σ_i ℓ_i·μ_i − ½‖w‖² with w = Σ_i φ(x_i) ⊗ (C·1[y_i] − μ_i). Its
gradient in μ_i is ℓ_i plus the potentials of x_i. Max-sum decoding solves the linear program over the
polytope, so a direction is a difference between the indicators of labelings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.hierarchy.decoding import best_labelings, indicators
from models.hierarchy.forest import Forest
from models.hierarchy.losses import EdgeLoss, edge_losses
from models.hierarchy.weights import Batch, Weights

BATCH_SIZE = 64
"""Examples whose directions are computed together. The optimizer steps along the directions one by one."""

STEPS_PER_VISIT = 8
"""Steps that each example takes when a pass visits it. Its gradient is updated after every step."""

NEGLIGIBLE_GAP = 0.1
"""A pass skips examples whose duality gap is below this fraction of the mean gap. Together they have at most
this fraction of the total gap."""

ZERO_TOLERANCE = 1e-12
"""Marginals below this fraction of C are rounding errors and become 0."""

BLOCK_ROWS = 1024
"""Examples that an evaluation processes at once."""


@dataclass(frozen=True)
class Objectives:
    """The objectives of both problems at the current marginals.

    Attributes:
        primal: ½‖w‖² + C Σ_i ξ_i.
        dual: Σ_i ℓ_i·μ_i − ½‖w‖².
        example_gaps: (g,) each example's part of the duality gap: by how much the linear program improves on
            its marginals.
    """

    primal: float
    dual: float
    example_gaps: Floats

    @property
    def relative_gap(self) -> float:
        """(primal − dual) / primal. The optimum lies between the two objectives."""
        return (self.primal - self.dual) / self.primal


class ConditionalGradient:
    """Optimizer of the dual problem of a training set.

    Args:
        forest: k nodes.
        truth: (g, k) true labelings by position.
        loss: the loss to train for.
        costs: (k,) coefficients of the loss by position.
        C: cost of the slacks.
        weights: the weight vector over the g examples.
        marginals: (g, 4, k) initial marginals by position; by default those of the true labelings.

    Attributes:
        marginals: (g, 4, k) μ.
    """

    def __init__(
        self,
        forest: Forest,
        truth: Bools,
        loss: EdgeLoss,
        costs: Floats,
        C: float,
        weights: Weights,
        marginals: Floats | None = None,
    ) -> None:
        self._forest, self._truth, self._loss, self._costs = forest, truth, loss, costs
        self._C = C
        self._weights = weights
        self.marginals = C * indicators(forest, truth) if marginals is None else marginals.copy()

    def evaluate(self) -> Objectives:
        """Recompute w from the marginals, so that rounding errors do not accumulate, and both objectives."""
        self._weights.reset(self.nu().reshape(len(self._truth), -1))
        squared_norm = slack = gain = 0.0
        gaps = np.empty(len(self._truth))
        for start in range(0, len(self._truth), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            true, marginals = indicators(self._forest, self._truth[rows]), self.marginals[rows]
            losses = self._losses(rows)
            potentials = self._weights.potentials(rows).reshape(losses.shape)
            squared_norm += float(((self._C * true - marginals) * potentials).sum())
            gain += float((losses * marginals).sum())
            gradient = losses + potentials
            best = indicators(self._forest, best_labelings(self._forest, gradient))
            slack += float((gradient * (best - true)).sum())
            gaps[rows] = (gradient * (self._C * best - marginals)).sum(axis=(1, 2))
        return Objectives(0.5 * squared_norm + self._C * slack, gain - 0.5 * squared_norm, gaps)

    def run_pass(self, objectives: Objectives, rng: np.random.Generator) -> None:
        """Visit every example with a relevant duality gap once, in random order, and at least one full batch.

        Args:
            objectives: at the current marginals.
            rng: draws the order.
        """
        gaps = objectives.example_gaps
        by_gap = np.argsort(-gaps, kind="stable")
        n_relevant = int((gaps > NEGLIGIBLE_GAP * gaps.mean()).sum())
        rows = rng.permutation(by_gap[: max(n_relevant, BATCH_SIZE)])
        for start in range(0, len(rows), BATCH_SIZE):
            batch_rows = rows[start : start + BATCH_SIZE]
            self._optimize(batch_rows, self._weights.batch(batch_rows))

    def nu(self) -> Floats:
        """Return (g, 4, k) ν_i = C·1[y_i] − μ_i, the coefficients of the examples in w."""
        return self._C * indicators(self._forest, self._truth) - self.marginals

    def _losses(self, rows: slice | Ints) -> Floats:
        return edge_losses(self._forest, self._truth[rows], self._loss, self._costs)

    def _optimize(self, rows: Ints, batch: Batch) -> None:
        """Take a few steps with each example of a batch.

        Directions are computed for the whole batch at once. Then the examples step along them one by one,
        each with an exact line search that takes the earlier steps into account, so no step lowers the dual
        objective. All steps but the last are pairwise steps: they move weight from the worst labeling that
        the marginals allow to the best labeling, without a list of labelings (Garber and Meshi,
        "Linear-memory and decomposition-invariant linearly convergent conditional gradient algorithm for
        structured polytopes", 2016). The last step is the paper's, towards the best labeling. It makes
        progress even if the face of the polytope leaves no room for pairwise steps.
        """
        gradient = self._losses(rows)
        gradient += batch.potentials.reshape(gradient.shape)
        marginals = self.marginals[rows]
        before = marginals.copy()
        for step in range(STEPS_PER_VISIT):
            best = indicators(self._forest, best_labelings(self._forest, gradient))
            if step < STEPS_PER_VISIT - 1:
                on_face = np.where(marginals > 0, -gradient, -np.inf)
                direction = best - indicators(self._forest, best_labelings(self._forest, on_face))
                max_steps = np.where(direction < 0, marginals, np.inf).min(axis=(1, 2))
            else:
                direction = self._C * best - marginals
                max_steps = np.ones(len(rows))
            flat = direction.reshape(len(rows), -1)
            slopes = np.einsum("ij,ij->i", gradient.reshape(flat.shape), flat)
            step_sizes = line_searches(slopes, batch.gram * (flat @ flat.T), max_steps)
            change = step_sizes[:, None] * flat
            marginals += change.reshape(marginals.shape)
            marginals[marginals < ZERO_TOLERANCE * self._C] = 0.0
            gradient -= (batch.gram @ change).reshape(gradient.shape)
        self.marginals[rows] = marginals
        batch.update((before - marginals).reshape(len(rows), -1))


def line_searches(slopes: Floats, curvature: Floats, max_steps: Floats) -> Floats:
    """Search exactly along several directions, one after the other.

    Args:
        slopes: (b,) slopes of the objective along the directions, before the first step.
        curvature: (b, b) by how much a unit step along one direction lowers the slope along another.
        max_steps: (b,) largest feasible steps; inf only if the direction is 0.

    Returns:
        (b,) step sizes: slope / curvature, clipped to the feasible range. If the curvature is 0, the largest
        feasible step for a positive slope, else 0.

    >>> line_searches(np.array([1.0, 1.0]), np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, 1.0])).tolist()
    [0.5, 0.25]
    """
    step_sizes = np.zeros(len(slopes))
    slopes = slopes.copy()
    for i, (denominator, max_step) in enumerate(
        zip(curvature.diagonal().tolist(), max_steps.tolist(), strict=True)
    ):
        slope = float(slopes[i])
        if slope > 0.0:
            step_sizes[i] = size = min(slope / denominator, max_step) if denominator > 0.0 else max_step
            slopes -= size * curvature[i]
    return step_sizes
