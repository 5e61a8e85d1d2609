"""Finds features that are the numbers of rows or ids, from which a model can learn nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from models.data.record import join_first

_FRAME_NAME = re.compile(r"__index_level_\d+__|Unnamed: \d+(?:\.\d+)*")
_ID_NAME = re.compile(
    r"(?:.*[\s_.-])?(?:[ug]?uid|guid|id|ids|index|idx|key|nr|no|num|number|row|lfd|nummer|level_\d+)\.?"
    r"|.*[a-z](?-i:Id|ID|Nr|No)",
    re.IGNORECASE,
)
_MAX_VALUES = 10_000
_MIN_ROWS = 2
_MIN_ROWS_ANY_NAME = 10
_MAX_LISTED = 10


def is_row_number(name: str) -> bool:
    """Return whether pandas gives this name to row numbers: ``Unnamed: 0`` or ``__index_level_0__``."""
    return _FRAME_NAME.fullmatch(name) is not None


class RowNumberFinder:
    """Watches features for row numbers and ids.

    A feature with the name of an id must have distinct whole numbers, at least in the first 10,000 rows. A
    feature with any other name must count the rows from 0 or 1.

    Args:
        names: names of the features.
    """

    def __init__(self, names: Iterable[str]) -> None:
        names = list(names)
        self._ids: dict[str, set[float]] = {name: set() for name in names if _ID_NAME.fullmatch(name)}
        self._counters: dict[str, int] = {name: -1 for name in names if name not in self._ids}
        self._n_rows = 0
        self.is_watching = bool(names)

    def add(self, features: Mapping[str, float]) -> None:
        """Watch the features of the next row."""
        n_rows = self._n_rows
        self._n_rows += 1
        if self._counters:
            if n_rows == 0:
                self._counters = {
                    name: int(features[name]) for name in self._counters if features[name] in {0, 1}
                }
            else:
                counters = self._counters
                self._counters = {
                    name: first for name, first in counters.items() if features[name] == first + n_rows
                }
        if n_rows < _MAX_VALUES:
            for name, values in list(self._ids.items()):
                value = features[name]
                if value in values or not value.is_integer():
                    del self._ids[name]
                values.add(value)
        self.is_watching = bool(self._counters) or (bool(self._ids) and self._n_rows < _MAX_VALUES)

    def warnings(self) -> list[str]:
        """Return the warning about features that are probably row numbers or ids."""
        found = list(self._ids) if self._n_rows >= _MIN_ROWS else []
        found += list(self._counters) if self._n_rows >= _MIN_ROWS_ANY_NAME else []
        if not found:
            return []
        warning = (
            f"features that look like row numbers or ids: {join_first(found, _MAX_LISTED)}; they tell "
            "nothing about a document: list them in the option ignore, or set the option id to the column of "
            "the ids"
        )
        return [warning]
