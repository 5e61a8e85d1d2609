"""Label order and the label tree.

Label order is the order of the label names by code point. It is used everywhere: if two labels tie, the one
that sorts first wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from models.arrays import Ints
from models.errors import ParameterError


class LabelTree:
    """A forest of labels: each label has at most one parent.

    Args:
        parents: maps each child to its parent. A label without a parent is a root.

    Raises:
        ParameterError: the tree has a cycle; the message lists its labels.

    >>> tree = LabelTree({"C11": "CCAT", "C12": "CCAT"})
    >>> tree.closure(["C11"])
    ['C11', 'CCAT']
    >>> tree.roots
    ['CCAT']
    """

    def __init__(self, parents: Mapping[str, str]) -> None:
        self.parents: dict[str, str] = dict(sorted(parents.items()))
        self.labels: list[str] = sorted({*self.parents, *self.parents.values()})
        self._ancestors: dict[str, tuple[str, ...]] = {}
        for label in self.labels:
            self._collect_ancestors(label)

    def _collect_ancestors(self, label: str) -> None:
        path = [label]
        while (parent := self.parents.get(path[-1])) is not None:
            if parent in path:
                cycle = " -> ".join([*path[path.index(parent) :], parent])
                raise ParameterError(
                    f"the label tree has a cycle: {cycle}; remove one of its edges", "/label_tree"
                )
            path.append(parent)
        self._ancestors[label] = tuple(path[1:])

    @property
    def roots(self) -> list[str]:
        """Labels without a parent, in label order."""
        return [label for label in self.labels if label not in self.parents]

    def ancestors(self, label: str) -> tuple[str, ...]:
        """The ancestors of a label, its parent first; empty for a root or a label outside the tree."""
        return self._ancestors.get(label, ())

    def closure(self, labels: Iterable[str]) -> list[str]:
        """The labels and all their ancestors, without duplicates, in label order."""
        return sorted({name for label in labels for name in (label, *self.ancestors(label))})

    def parent_indices(self, labels: Sequence[str]) -> Ints:
        """The tree as indices into ``labels``.

        Args:
            labels: k label names in label order.

        Returns:
            (k,) the index of each label's parent, or -1 if the label has no parent among ``labels``.
        """
        index = {label: j for j, label in enumerate(labels)}
        return np.array([index.get(self.parents.get(label, ""), -1) for label in labels], dtype=np.int64)
