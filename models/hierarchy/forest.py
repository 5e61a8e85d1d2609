"""The label forest as numbers: levels, and how much a mistake at each node costs."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from models.arrays import AnyArray, Floats, Ints
from models.errors import ParameterError

Scaling: TypeAlias = Literal["uniform", "sibling", "subtree"]


class Forest:
    """A forest over k labels, ready for passes up and down that treat a whole level at once.

    Nodes are renumbered level by level, the children of a parent side by side, so that a level is a slice
    and what a parent gathers from its children is one reduction. ``positions`` are those numbers.

    Args:
        parents: for each of the k labels the index of its parent, -1 for a root.

    Attributes:
        parents: (k,) the same, by label.
        order: (k,) the label at each position.
        inverse: (k,) the position of each label.
        parent_positions: (k,) for each position that of its parent, -1 for a root.
        levels: slices of positions, the roots first.

    Raises:
        ParameterError: an index out of range, or a cycle.

    >>> forest = Forest(np.array([2, 2, -1, 0]))
    >>> forest.order.tolist(), forest.levels
    ([2, 0, 1, 3], [slice(0, 1, None), slice(1, 3, None), slice(3, 4, None)])
    """

    def __init__(self, parents: AnyArray) -> None:
        self.parents: Ints = np.asarray(parents, dtype=np.int64)
        n_labels = self.parents.size
        if self.parents.ndim != 1 or ((self.parents < -1) | (self.parents >= n_labels)).any():
            raise ParameterError(
                "a label tree of k labels has k parents: indices, or -1 for a root", "/label_tree"
            )
        order: list[int] = []
        self.levels: list[slice] = []
        children: list[list[int]] = [[] for _ in range(n_labels)]
        for label, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(label)
        level = np.flatnonzero(self.parents == -1).tolist()
        while level:
            self.levels.append(slice(len(order), len(order) + len(level)))
            order += level
            level = [child for node in level for child in children[node]]
        if len(order) < n_labels:
            raise ParameterError("the label tree has a cycle; remove one of its edges", "/label_tree")
        self.order: Ints = np.array(order, dtype=np.int64)
        self.inverse: Ints = np.argsort(self.order)
        above = self.parents[self.order]
        self.parent_positions: Ints = np.where(above >= 0, self.inverse[above], -1)
        # For each level but the first: where its runs of siblings begin, and the positions of their parents.
        self._runs: list[tuple[Ints, Ints]] = []
        for below in self.levels[1:]:
            owners = self.parent_positions[below]
            starts = np.flatnonzero(np.diff(owners, prepend=-2))
            self._runs.append((starts, owners[starts]))

    @property
    def n_labels(self) -> int:
        """Number k of labels."""
        return self.parents.size

    def gather(self, depth: int, messages: Floats) -> tuple[Ints, Floats]:
        """Sum what the nodes of a level say to their parents.

        Args:
            depth: the children's level, at least 1.
            messages: (..., size of that level) by position.

        Returns:
            positions of the parents, and (..., number of these parents) sums.
        """
        starts, owners = self._runs[depth - 1]
        return owners, np.add.reduceat(messages, starts, axis=-1)

    def on_path_minimum(self, margins: Floats) -> Floats:
        """The smallest margin on each node's path from its root.

        Args:
            margins: (n, k) by label.

        Returns:
            (n, k) by label: positive exactly where the node and all its ancestors are positive.
        """
        smallest = margins[:, self.order]
        for level in self.levels[1:]:
            np.minimum(smallest[:, level], smallest[:, self.parent_positions[level]], out=smallest[:, level])
        return np.ascontiguousarray(smallest[:, self.inverse])

    def path(self, label: int) -> list[int]:
        """The labels from a root down to ``label``, both included."""
        labels = [label]
        while (parent := int(self.parents[labels[-1]])) >= 0:
            labels.append(parent)
        return labels[::-1]

    def coefficients(self, scaling: Scaling) -> Floats:
        """What a mistake at each label costs, c_j ("Scaling the loss").

        Args:
            scaling: ``uniform``: 1. ``sibling``: the parent's coefficient shared equally among its children,
                the roots sharing 1. ``subtree``: size of the subtree over the number of all nodes.

        Returns:
            (k,) by label.

        >>> Forest(np.array([-1, 0, 0])).coefficients("sibling").tolist()
        [1.0, 0.5, 0.5]
        """
        costs = np.ones(self.n_labels)
        if scaling == "sibling":
            siblings = np.bincount(self.parents + 1, minlength=self.n_labels + 1)[self.parents + 1]
            for level in self.levels:
                labels = self.order[level]
                above = self.parents[labels]
                costs[labels] = np.where(above >= 0, costs[above], 1.0) / siblings[labels]
        elif scaling == "subtree":
            for level in reversed(self.levels[1:]):
                labels = self.order[level]
                np.add.at(costs, self.parents[labels], costs[labels])
            costs /= self.n_labels
        return costs
