"""Label order and the label tree.

Label order is the order of the label names by code point. It is used everywhere: if two labels tie, the one
that sorts first wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from models.arrays import Ints
from models.errors import ParameterError

MAX_DEPTH = 100
"""Default limit on the number of levels of a label tree.

Every example of a label is also one of all its ancestors, so the number of levels multiplies the labels of a
data set.
"""

_MAX_LISTED = 10


class LabelTree:
    """A forest of labels: each label has at most one parent.

    The time to build it is linear in the number of labels, apart from sorting them.

    Args:
        parents: maps each child to its parent. A label without a parent is a root.

    Attributes:
        parents: the argument, sorted.
        labels: all labels of the tree, in label order.
        depth: number of levels; 1 if there are only roots, 0 if there are no labels.

    Raises:
        ParameterError: the tree has a cycle; the message lists its labels.

    >>> tree = LabelTree({"C11": "CCAT", "C12": "CCAT"})
    >>> tree.closure(["C11"])
    ['C11', 'CCAT']
    >>> tree.roots, tree.depth
    (['CCAT'], 2)
    """

    def __init__(self, parents: Mapping[str, str]) -> None:
        self.parents: dict[str, str] = dict(sorted(parents.items()))
        self.labels: list[str] = sorted({*self.parents, *self.parents.values()})
        self.depth = self._count_levels()

    def _count_levels(self) -> int:
        level: dict[str, int] = {}
        for label in self.labels:
            path: dict[str, None] = {}  # an ordered set
            name: str | None = label
            while name is not None and name not in level:
                if name in path:
                    raise _cycle(list(path), name)
                path[name] = None
                name = self.parents.get(name)
            above = level[name] if name is not None else 0
            level.update((member, above + n) for n, member in enumerate(reversed(path), 1))
        return max(level.values(), default=0)

    def check_depth(self, limit: int) -> None:
        """Check the number of levels.

        Raises:
            ParameterError: the tree has more levels than the limit.
        """
        if self.depth > limit:
            raise ParameterError(
                f"the label tree has {self.depth:,} levels; the limit is {limit:,}; remove levels that no "
                "message needs",
                "/label_tree",
            )

    @property
    def roots(self) -> list[str]:
        """Labels without a parent, in label order."""
        return [label for label in self.labels if label not in self.parents]

    def ancestors(self, label: str) -> tuple[str, ...]:
        """The ancestors of a label, its parent first; empty for a root or a label outside the tree."""
        ancestors: list[str] = []
        while (parent := self.parents.get(label)) is not None:
            ancestors.append(parent)
            label = parent
        return tuple(ancestors)

    def closure(self, labels: Iterable[str]) -> list[str]:
        """The labels and all their ancestors, without duplicates, in label order."""
        closed: set[str] = set()
        for label in labels:
            name: str | None = label
            while name is not None and name not in closed:  # the ancestors of a known label are known, too
                closed.add(name)
                name = self.parents.get(name)
        return sorted(closed)

    def parent_indices(self, labels: Sequence[str]) -> Ints:
        """The tree as indices into ``labels``.

        Args:
            labels: k label names in label order.

        Returns:
            (k,) the index of each label's parent, or -1 if the label has no parent among ``labels``.
        """
        index = {label: j for j, label in enumerate(labels)}
        return np.array([index.get(self.parents.get(label, ""), -1) for label in labels], dtype=np.int64)


def _cycle(path: list[str], first: str) -> ParameterError:
    cycle = path[path.index(first) :]
    shown = cycle[:_MAX_LISTED]
    others = f" and {len(cycle) - len(shown):,} more" if len(cycle) > len(shown) else f" -> {first}"
    return ParameterError(
        f"the label tree has a cycle: {' -> '.join(shown)}{others}; remove one of its edges", "/label_tree"
    )
