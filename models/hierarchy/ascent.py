"""Conditional gradient ascent on H-M3's marginalised dual problem ("The optimization algorithm").

An example's marginals μ_i are C times a point of the marginal polytope of the forest, an edge's four adding
up to C. The dual objective is Σ_i ℓ_i·μ_i − ½‖w‖² with w = Σ_i φ(x_i) ⊗ (C·1[y_i] − μ_i), its gradient in
μ_i is ℓ_i plus the potentials of x_i, and the linear program over the polytope is a max-sum pass: a
direction is a difference of labelings' indicators.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.hierarchy.decoding import best_labelings, indicators
from models.hierarchy.forest import Forest
from models.hierarchy.kernels import Batch, Weights
from models.hierarchy.losses import EdgeLoss, edge_losses

BATCH = 64
"""Examples whose directions are found together. Their steps are taken one after the other."""

STEPS = 8
"""Steps an example takes each time it is visited, with its gradient kept up to date."""

NEGLIGIBLE_GAP = 0.1
"""A pass leaves out examples whose gap is below this part of the mean: at most that part of the whole gap."""

DUST = 1e-12
"""Marginals below this part of C are rounding, and 0."""

ROWS_OF_A_CHECK = 1024


@dataclass(frozen=True)
class Check:
    """Where the optimisation stands.

    Attributes:
        primal: ½‖w‖² + C Σ_i ξ_i.
        dual: Σ_i ℓ_i·μ_i − ½‖w‖².
        gaps: (g,) each example's part of the duality gap: what the best labeling gains over its marginals.
    """

    primal: float
    dual: float
    gaps: Floats

    @property
    def relative_gap(self) -> float:
        """(primal − dual) / primal; the optimum lies between the two."""
        return (self.primal - self.dual) / self.primal


class Ascent:
    """The dual problem of a training part and the ascent on it.

    Args:
        forest: k nodes.
        truth: (g, k) true labelings by position.
        loss: the loss to train for.
        costs: (k,) its coefficients by position.
        C: cost of the slacks.
        weights: keeps w over the g examples.
        marginals: (g, 4, k) by position to start from, else the true labelings'.

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

    def check(self) -> Check:
        """Compute w afresh from the marginals, so that no rounding gathers, and both objectives from it."""
        self._weights.restart(self.nu().reshape(len(self._truth), -1))
        squared_norm = slack = gain = 0.0
        gaps = np.empty(len(self._truth))
        for start in range(0, len(self._truth), ROWS_OF_A_CHECK):
            rows = slice(start, start + ROWS_OF_A_CHECK)
            true, marginals = indicators(self._forest, self._truth[rows]), self.marginals[rows]
            losses = self._losses(rows)
            potentials = self._weights.potentials(rows).reshape(losses.shape)
            squared_norm += float(((self._C * true - marginals) * potentials).sum())
            gain += float((losses * marginals).sum())
            gradient = losses + potentials
            best = indicators(self._forest, best_labelings(self._forest, gradient))
            slack += float((gradient * (best - true)).sum())
            gaps[rows] = (gradient * (self._C * best - marginals)).sum(axis=(1, 2))
        return Check(0.5 * squared_norm + self._C * slack, gain - 0.5 * squared_norm, gaps)

    def run_pass(self, check: Check, order: np.random.Generator) -> None:
        """Visit once, in a random order, every example that matters, and no fewer than a batch.

        Args:
            check: of the marginals as they are; tells which examples contribute to the duality gap.
            order: draws the order.
        """
        by_gap = np.argsort(-check.gaps, kind="stable")
        mattering = int((check.gaps > NEGLIGIBLE_GAP * check.gaps.mean()).sum())
        rows = order.permutation(by_gap[: max(mattering, BATCH)])
        for start in range(0, len(rows), BATCH):
            chosen = rows[start : start + BATCH]
            self._ascend(chosen, self._weights.batch(chosen))

    def nu(self) -> Floats:
        """(g, 4, k) ν_i = C·1[y_i] − μ_i, the weight of each example in w."""
        return self._C * indicators(self._forest, self._truth) - self.marginals

    def _losses(self, rows: slice | Ints) -> Floats:
        return edge_losses(self._forest, self._truth[rows], self._loss, self._costs)

    def _ascend(self, rows: Ints, batch: Batch) -> None:
        """Take a few steps with the examples of a batch.

        Directions are found for the whole batch at once; then each example in turn goes the best way along
        its own, given where those before it went, so that every step is an exact line search and none
        lowers the dual. The first steps shift weight from the worst labeling that the marginals allow to
        the best one (a pairwise step, which needs no list of labelings: Garber and Meshi, "Linear-memory
        and decomposition-invariant linearly convergent conditional gradient algorithm for structured
        polytopes", 2016). The last is the paper's, towards the best labeling, and moves even where the face
        of the polytope leaves no room for the others.
        """
        gradient = self._losses(rows)
        gradient += batch.potentials.reshape(gradient.shape)
        marginals = self.marginals[rows]
        before = marginals.copy()
        for step in range(STEPS):
            best = indicators(self._forest, best_labelings(self._forest, gradient))
            if step < STEPS - 1:
                on_face = np.where(marginals > 0, -gradient, -np.inf)
                direction = best - indicators(self._forest, best_labelings(self._forest, on_face))
                longest = np.where(direction < 0, marginals, np.inf).min(axis=(1, 2))
            else:
                direction = self._C * best - marginals
                longest = np.ones(len(rows))
            flat = direction.reshape(len(rows), -1)
            numerators = np.einsum("ij,ij->i", gradient.reshape(flat.shape), flat)
            lengths = line_searches(numerators, batch.gram * (flat @ flat.T), longest)
            moved = lengths[:, None] * flat
            marginals += moved.reshape(marginals.shape)
            marginals[marginals < DUST * self._C] = 0.0
            gradient -= (batch.gram @ moved).reshape(gradient.shape)
        self.marginals[rows] = marginals
        batch.move((before - marginals).reshape(len(rows), -1))


def line_searches(numerators: Floats, curvature: Floats, longest: Floats) -> Floats:
    """Exact line searches along given directions, one after the other.

    Args:
        numerators: (b,) slopes of the objective along the directions, all taken at the start.
        curvature: (b, b) how much a unit step along one direction lowers the slope along another.
        longest: (b,) the longest feasible steps; inf only where the direction is 0.

    Returns:
        (b,) steps: (numerator / denominator) clipped to what is feasible; with denominator 0 the longest
        where the numerator is positive, else 0.

    >>> line_searches(np.array([1.0, 1.0]), np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, 1.0])).tolist()
    [0.5, 0.25]
    """
    steps = np.zeros(len(numerators))
    slopes = numerators.copy()
    for i, (denominator, limit) in enumerate(
        zip(curvature.diagonal().tolist(), longest.tolist(), strict=True)
    ):
        slope = float(slopes[i])
        if slope > 0.0:
            steps[i] = length = min(slope / denominator, limit) if denominator > 0.0 else limit
            slopes -= length * curvature[i]
    return steps
