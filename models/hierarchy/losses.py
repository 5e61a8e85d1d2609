"""The two losses that H-M3 can train for, as sums over the edges of the forest."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from models.arrays import Bools, Floats
from models.hierarchy.decoding import parent_states
from models.hierarchy.forest import Forest

EdgeLoss: TypeAlias = Literal["symmetric_difference", "simplified_hierarchical"]


def edge_losses(forest: Forest, truth: Bools, loss: EdgeLoss, costs: Floats) -> Floats:
    """Return the loss of each labeling of each edge, ℓ_e, such that ℓ(y, y') = Σ_e ℓ_e(y_e, y'_e).

    Every node is the lower end of exactly one edge. That edge carries the whole loss of the node, so the sum
    is exact. Such edge losses exist for ℓ_Δ and ℓ_H̃, but not for ℓ_0/1 and ℓ_H (H-M3 paper, "Marginalizing
    the problem").

    Args:
        forest: k nodes.
        truth: (n, k) true labelings by position.
        loss: ``symmetric_difference``: a wrong node costs c_j. ``simplified_hierarchical``: a wrong node
            costs c_j if its parent is right.
        costs: (k,) the coefficients c_j by position.

    Returns:
        (n, 4, k) losses by edge labeling and position (see ``decoding``); 0 at the true labeling of every
        edge.
    """
    losses = np.empty((len(truth), 4, forest.n_labels))
    true_parents = parent_states(forest, truth)
    for labeling in range(4):
        parent_on, child_on = divmod(labeling, 2)
        wrong = truth != bool(child_on)
        if loss == "simplified_hierarchical":
            wrong &= true_parents == bool(parent_on)
        losses[:, labeling] = wrong * costs
    return losses
