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
    chosen = _upward(forest, edges)[1]
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
    edges = potentials.reshape(len(potentials), 2, 2, forest.n_labels)
    messages, _ = _upward(forest, edges)
    below = np.zeros((len(edges), 2, forest.n_labels))
    for depth in range(1, len(forest.levels)):
        owners, sums = forest.gather(depth, messages[:, :, forest.levels[depth]])
        below[:, :, owners] = sums
    best = np.empty_like(below)  # the best labeling of the node's tree, by the node's state
    roots = forest.levels[0]
    best[:, :, roots] = edges[:, ON, :, roots] + below[:, :, roots]
    for level in forest.levels[1:]:
        elsewhere = best[:, :, forest.parent_positions[level]] - messages[:, :, level]
        through = (edges[:, :, :, level] + elsewhere[:, :, None, :]).max(axis=1)
        best[:, :, level] = through + below[:, :, level]
    return best[:, ON] - best[:, OFF]


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


def _upward(forest: Forest, edges: Floats) -> tuple[Floats, Bools]:
    """From the leaves up: what each node's subtree adds at best by its parent's state, and its choice.

    Returns:
        messages (n, 2, k) and choices (n, 2, k), the second axis being the parent's state.
    """
    off, on = edges[:, :, OFF].copy(), edges[:, :, ON].copy()  # (n, parent's state, k)
    messages = np.empty_like(off)
    chosen = np.empty(off.shape, dtype=np.bool_)
    for depth in range(len(forest.levels) - 1, -1, -1):
        level = forest.levels[depth]
        np.greater(on[:, :, level], off[:, :, level], out=chosen[:, :, level])
        np.maximum(on[:, :, level], off[:, :, level], out=messages[:, :, level])
        if depth:
            owners, sums = forest.gather(depth, messages[:, :, level])
            off[:, :, owners] += sums[:, OFF, None]
            on[:, :, owners] += sums[:, ON, None]
    return messages, chosen
