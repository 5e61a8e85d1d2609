"""Best labelings of a forest by the max-sum algorithm (Viterbi), exact and for many examples at once.

Every node has an edge from its parent; a root has an edge from a parent that is always on. An edge has four
labelings, numbered u = 2·(parent on) + (child on). *Potentials* are (n, 4, k) numbers: one for each example,
edge labeling and node, which stands for the edge that ends in it. Nodes are ordered by position (see
``Forest``). The value of a labeling is the sum of the potentials of its edges.
"""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Floats
from models.hierarchy.forest import Forest

OFF, ON = 0, 1


def best_labelings(forest: Forest, potentials: Floats) -> Bools:
    """Return the labeling with the largest value for each example.

    This solves the linear program over the marginal polytope of the forest, whose vertices are the labelings
    (H-M3 paper, "Conditional Gradient Ascent", step 1).

    Args:
        forest: k nodes.
        potentials: (n, 4, k) by position. -inf forbids an edge labeling; at least one labeling of each
            example must remain.

    Returns:
        (n, k) by position, true if the node is on. Among equal values, a node is off.
    """
    edges = potentials.reshape(len(potentials), 2, 2, forest.n_labels)
    best = _best_states(forest, edges)
    labelings = np.empty((len(edges), forest.n_labels), dtype=np.bool_)
    labelings[:, forest.levels[0]] = best[:, ON, forest.levels[0]]
    for level in forest.levels[1:]:
        parent_on = labelings[:, forest.parent_positions[level]]
        labelings[:, level] = np.where(parent_on, best[:, ON, level], best[:, OFF, level])
    return labelings


def max_marginals(forest: Forest, potentials: Floats) -> Floats:
    """Return the value of the best labeling with each node on minus that of the best labeling with it off.

    Args:
        forest: k nodes.
        potentials: (n, 4, k) by position, finite.

    Returns:
        (n, k) by position.
    """
    off_off, off_on, on_off, on_on = (potentials[:, labeling] for labeling in range(4))
    # Differences between a node on and off: ``below`` of the best value below the node, ``marginals`` of the
    # best value of the whole forest. ``message`` is the difference between the node's parent on and off, of
    # the best value of the node's edge and everything below.
    below = np.zeros((len(potentials), forest.n_labels))
    message = np.empty_like(below)
    for depth in range(len(forest.levels) - 1, 0, -1):
        level = forest.levels[depth]
        difference = np.maximum(on_off[:, level], on_on[:, level] + below[:, level])
        difference -= np.maximum(off_off[:, level], off_on[:, level] + below[:, level])
        message[:, level] = difference
        parents, sums = forest.sum_over_siblings(depth, difference)
        below[:, parents] = sums
    marginals = np.empty_like(below)
    roots = forest.levels[0]
    marginals[:, roots] = on_on[:, roots] - on_off[:, roots] + below[:, roots]
    for level in forest.levels[1:]:
        elsewhere = marginals[:, forest.parent_positions[level]] - message[:, level]
        on = np.maximum(off_on[:, level], on_on[:, level] + elsewhere)
        on -= np.maximum(off_off[:, level], on_off[:, level] + elsewhere)
        marginals[:, level] = on + below[:, level]
    return marginals


def indicators(forest: Forest, labelings: Bools) -> Floats:
    """Return the vertex of the marginal polytope for each labeling.

    Args:
        forest: k nodes.
        labelings: (n, k) by position.

    Returns:
        (n, 4, k) of 0 and 1: for each node a 1 at the labeling of its edge.
    """
    parent_on = parent_states(forest, labelings)
    result = np.empty((len(labelings), 4, forest.n_labels))
    result[:, 0], result[:, 1] = ~parent_on & ~labelings, ~parent_on & labelings
    result[:, 2], result[:, 3] = parent_on & ~labelings, parent_on & labelings
    return result


def parent_states(forest: Forest, labelings: Bools) -> Bools:
    """Return (n, k) by position: whether the parent of each node is on; true for a root."""
    parent_on = np.ones_like(labelings)
    first_child = forest.levels[0].stop
    parent_on[:, first_child:] = labelings[:, forest.parent_positions[first_child:]]
    return parent_on


def _best_states(forest: Forest, edges: Floats) -> Bools:
    """Return (n, 2, k) the best state of each node, given the state of its parent (second axis)."""
    off, on = edges[:, :, OFF].copy(), edges[:, :, ON].copy()  # (n, state of the parent, k)
    best = np.empty(off.shape, dtype=np.bool_)
    for depth in range(len(forest.levels) - 1, -1, -1):
        level = forest.levels[depth]
        np.greater(on[:, :, level], off[:, :, level], out=best[:, :, level])
        if depth:
            parents, sums = forest.sum_over_siblings(depth, np.maximum(on[:, :, level], off[:, :, level]))
            off[:, :, parents] += sums[:, OFF, None]
            on[:, :, parents] += sums[:, ON, None]
    return best
