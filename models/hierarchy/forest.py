"""The label forest as arrays: levels, paths, and the cost of a mistake at each node."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from models.arrays import AnyArray, Floats, Ints
from models.errors import ParameterError

Scaling: TypeAlias = Literal["uniform", "sibling", "subtree"]


class Forest:
    """A forest over k labels, with passes up and down that process a whole level at once.

    The forest numbers the nodes level by level, with the children of a parent next to each other. So a level
    is a slice, and the sum over the children of every parent is a single reduction. These numbers are called
    *positions*.

    Args:
        parents: (k,) for each label the index of its parent, -1 for a root.

    Attributes:
        parents: (k,) the argument, as an array.
        order: (k,) the label at each position.
        positions: (k,) the position of each label; the inverse of ``order``.
        parent_positions: (k,) for each position the position of its parent, -1 for a root.
        levels: slices of positions, the roots first.

    Raises:
        ParameterError: An index is out of range, or there is a cycle.

    >>> forest = Forest(np.array([2, 2, -1, 0]))
    >>> forest.order.tolist(), forest.levels
    ([2, 0, 1, 3], [slice(0, 1, None), slice(1, 3, None), slice(3, 4, None)])
    """

    def __init__(self, parents: AnyArray) -> None:
        self.parents: Ints = np.asarray(parents, dtype=np.int64)
        n_labels = self.parents.size
        if self.parents.ndim != 1 or ((self.parents < -1) | (self.parents >= n_labels)).any():
            raise ParameterError(
                "a label tree of k labels needs k parents: indices of labels, or -1 for a root", "/label_tree"
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
        self.positions: Ints = np.argsort(self.order)
        parent_labels = self.parents[self.order]
        self.parent_positions: Ints = np.where(parent_labels >= 0, self.positions[parent_labels], -1)
        # For each level but the first: where each group of siblings starts, and the position of its parent.
        self._siblings: list[tuple[Ints, Ints]] = []
        for level_slice in self.levels[1:]:
            parent_of = self.parent_positions[level_slice]
            starts = np.flatnonzero(np.diff(parent_of, prepend=-2))
            self._siblings.append((starts, parent_of[starts]))

    @property
    def n_labels(self) -> int:
        """Number k of labels."""
        return self.parents.size

    def sum_over_siblings(self, depth: int, values: Floats) -> tuple[Ints, Floats]:
        """Sum the values of the nodes of a level for each parent.

        Args:
            depth: the level, at least 1.
            values: (..., size of the level) by position.

        Returns:
            The positions of the parents, and (..., number of these parents) sums.
        """
        starts, parent_of = self._siblings[depth - 1]
        return parent_of, np.add.reduceat(values, starts, axis=-1)

    def path_minimum(self, margins: Floats) -> Floats:
        """Return the smallest margin on the path from the root to each node.

        Args:
            margins: (n, k) by label.

        Returns:
            (n, k) by label: positive if and only if the margins of the node and all its ancestors are
            positive.
        """
        smallest = margins[:, self.order]
        for level in self.levels[1:]:
            np.minimum(smallest[:, level], smallest[:, self.parent_positions[level]], out=smallest[:, level])
        return np.ascontiguousarray(smallest[:, self.positions])

    def path(self, label: int) -> list[int]:
        """Return the labels on the path from a root to ``label``, both included."""
        labels = [label]
        while (parent := int(self.parents[labels[-1]])) >= 0:
            labels.append(parent)
        return labels[::-1]

    def coefficients(self, scaling: Scaling) -> Floats:
        """Return the cost c_j of a mistake at each label (H-M3 paper, "Scaling the loss").

        Args:
            scaling: ``uniform``: every cost is 1. ``sibling``: the cost of a parent is divided equally among
                its children, and the roots share 1. ``subtree``: the size of the subtree divided by the
                number of all nodes.

        Returns:
            (k,) by label.

        >>> Forest(np.array([-1, 0, 0])).coefficients("sibling").tolist()
        [1.0, 0.5, 0.5]
        """
        costs = np.ones(self.n_labels)
        if scaling == "sibling":
            n_siblings = np.bincount(self.parents + 1, minlength=self.n_labels + 1)[self.parents + 1]
            for level in self.levels:
                labels = self.order[level]
                parents = self.parents[labels]
                costs[labels] = np.where(parents >= 0, costs[parents], 1.0) / n_siblings[labels]
        elif scaling == "subtree":
            for level in reversed(self.levels[1:]):
                labels = self.order[level]
                np.add.at(costs, self.parents[labels], costs[labels])
            costs /= self.n_labels
        return costs
