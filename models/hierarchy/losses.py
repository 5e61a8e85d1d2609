"""The two losses that H-M3 can train for, as sums over the edges of the forest."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from models.arrays import Bools, Floats
from models.hierarchy.decoding import parents_on
from models.hierarchy.forest import Forest

EdgeLoss: TypeAlias = Literal["symmetric_difference", "simplified_hierarchical"]


def edge_losses(forest: Forest, truth: Bools, loss: EdgeLoss, costs: Floats) -> Floats:
    """What each labeling of each edge costs, ℓ_e(y_e, u), so that ℓ(y, y') = Σ_e ℓ_e(y_e, y'_e).

    Every node is the lower end of exactly one edge, and its whole loss stands there, so the sum is exact.
    That is possible for ℓ_Δ and ℓ_H̃, but not for ℓ_0/1 and ℓ_H ("Marginalizing the problem").

    Args:
        forest: k nodes.
        truth: (n, k) true labelings by position.
        loss: ``symmetric_difference``: a node costs where it is wrong. ``simplified_hierarchical``: where
            it is wrong and its parent right.
        costs: (k,) the coefficients c_j by position.

    Returns:
        (n, 4, k) losses by edge labeling and position (see ``decoding``); 0 at the true labeling of every
        edge.
    """
    losses = np.empty((len(truth), 4, forest.n_labels))
    parents = parents_on(forest, truth)
    for labeling in range(4):
        parent_on, child_on = divmod(labeling, 2)
        wrong = truth != bool(child_on)
        if loss == "simplified_hierarchical":
            wrong &= parents == bool(parent_on)
        losses[:, labeling] = wrong * costs
    return losses
