"""Best labelings of a forest by max-sum, exact, for many examples at once.

Every node has an edge from its parent, a root's from a parent that is always on, and an edge has four
labelings u = 2·(parent on) + (child on). *Potentials* are (n, 4, k) numbers, one for each example, edge
labeling and node (named by the edge's lower end), nodes by position (see ``Forest``); a labeling is worth
the sum of its edges' potentials.
"""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Floats
from models.hierarchy.forest import Forest

OFF, ON = 0, 1


def best_labelings(forest: Forest, potentials: Floats) -> Bools:
    """The labeling of the greatest worth of every example: the linear program over the marginal polytope.

    Args:
        forest: k nodes.
        potentials: (n, 4, k) by position; -inf forbids an edge labeling, as long as some labeling is allowed.

    Returns:
        (n, k) by position, true where the node is on. A node that is worth as much off as on is off.
    """
    edges = potentials.reshape(len(potentials), 2, 2, forest.n_labels)
    chosen = _choices(forest, edges)
    labelings = np.empty((len(edges), forest.n_labels), dtype=np.bool_)
    labelings[:, forest.levels[0]] = chosen[:, ON, forest.levels[0]]
    for level in forest.levels[1:]:
        parent_on = labelings[:, forest.parent_positions[level]]
        labelings[:, level] = np.where(parent_on, chosen[:, ON, level], chosen[:, OFF, level])
    return labelings


def max_marginals(forest: Forest, potentials: Floats) -> Floats:
    """For each node the worth of the best labeling with the node on, minus that of the best with it off.

    Args:
        forest: k nodes.
        potentials: (n, 4, k) by position, finite.

    Returns:
        (n, k) by position.
    """
    off_off, off_on, on_off, on_on = (potentials[:, labeling] for labeling in range(4))
    # Only differences between a node on and off matter: ``below`` of what hangs from the node, ``message`` of
    # what the node's subtree adds to its parent, ``marginals`` of everything.
    below = np.zeros((len(potentials), forest.n_labels))
    message = np.empty_like(below)
    for depth in range(len(forest.levels) - 1, 0, -1):
        level = forest.levels[depth]
        parent_on = np.maximum(on_off[:, level], on_on[:, level] + below[:, level])
        parent_on -= np.maximum(off_off[:, level], off_on[:, level] + below[:, level])
        message[:, level] = parent_on
        owners, sums = forest.gather(depth, parent_on)
        below[:, owners] = sums
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
    """The point of the marginal polytope that a labeling is.

    Args:
        forest: k nodes.
        labelings: (n, k) by position.

    Returns:
        (n, 4, k) of 0 and 1: for every node exactly one of its edge's labelings.
    """
    parent_on = parents_on(forest, labelings)
    marks = np.empty((len(labelings), 4, forest.n_labels))
    marks[:, 0], marks[:, 1] = ~parent_on & ~labelings, ~parent_on & labelings
    marks[:, 2], marks[:, 3] = parent_on & ~labelings, parent_on & labelings
    return marks


def parents_on(forest: Forest, labelings: Bools) -> Bools:
    """(n, k) by position: whether each node's parent is on, true for a root."""
    parent_on = np.ones_like(labelings)
    below = forest.levels[0].stop
    parent_on[:, below:] = labelings[:, forest.parent_positions[below:]]
    return parent_on


def _choices(forest: Forest, edges: Floats) -> Bools:
    """From the leaves up: what each node had best be, (n, 2, k), the second axis being its parent's state."""
    off, on = edges[:, :, OFF].copy(), edges[:, :, ON].copy()  # (n, parent's state, k)
    chosen = np.empty(off.shape, dtype=np.bool_)
    for depth in range(len(forest.levels) - 1, -1, -1):
        level = forest.levels[depth]
        np.greater(on[:, :, level], off[:, :, level], out=chosen[:, :, level])
        if depth:
            owners, sums = forest.gather(depth, np.maximum(on[:, :, level], off[:, :, level]))
            off[:, :, owners] += sums[:, OFF, None]
            on[:, :, owners] += sums[:, ON, None]
    return chosen
