"""Reads the labels of an example from the value of one field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from models.data.limits import IngestLimits
from models.data.record import RecordError, check_name, json_pointer, json_type, quoted
from models.data.values.label_cells import (
    ParsedLabels,
    find_syntax,
    label_of_number,
    parse_cell,
    parse_value,
)
from models.data.values.scalars import is_missing, without_numpy
from models.errors import BadDataError

__all__ = ["LabelNumbers", "ParsedLabels", "parse_labels"]


def parse_labels(value: object, field: str, separator: str, limits: IngestLimits) -> ParsedLabels:
    """Return the labels of an example; none for a missing value.

    Args:
        value: a cell (see :func:`models.data.values.label_cells.split_labels`), a list, an array, a whole
            number, or an object that maps labels to 1, to 0, or to -1 or null for an unknown label.
        field: the column, or the JSON pointer, that an error names.
        separator: the separator between labels in a cell.
        limits: limits on names.

    Raises:
        RecordError: the value cannot be read as labels, or a label is invalid.

    >>> parse_labels({"a": 1, "b": 0, "c": None}, "/cats", ",", IngestLimits())
    ParsedLabels(labels=['a'], unknown=['c'])
    """
    if type(value) is str:
        if len(value) <= limits.name_length and value.isprintable() and not find_syntax(value):
            # No label can be invalid. Most cells are so, and checking each label would take longer.
            labels = [name for part in value.split(separator) if (name := part.strip())]
            if len(labels) < 2 or labels[0] not in {"0", "1"}:
                return ParsedLabels(labels, [])
        parsed = parse_cell(value, separator, field)
    elif type(value) is list and _are_names(value, limits):
        return ParsedLabels(value, [])
    else:
        value = without_numpy(value)
        if type(value) is str:
            return parse_labels(value, field, separator, limits)
        if is_missing(value):
            return ParsedLabels([], [])
        if isinstance(value, (list, tuple, Mapping)):
            parsed = parse_value(value, field)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            parsed = ParsedLabels([label_of_number(value, field)], [])
        else:
            raise RecordError(f"labels must be a list of strings, not {json_type(value)}", field)
    if type(value) is str and "\n" in value.strip() and any("\n" in name for name in parsed.labels):
        raise RecordError(
            "a label must not contain a line end; if each line of the cell is a label, "
            "set the option label_separator to a line end",
            field,
        )
    is_list = isinstance(value, (list, tuple)) and field.startswith("/")
    for names in parsed:
        for j, name in enumerate(names):
            check_name(name, "a label", field + json_pointer(j) if is_list else field, limits.name_length)
    return parsed


def _are_names(members: list[Any], limits: IngestLimits) -> bool:
    """Return whether members are names that need no further check. Faster than to check them one by one."""
    try:
        text = "".join(members)
    except TypeError:
        return False
    return (
        len(text) <= limits.name_length
        and text.isprintable()
        and "" not in members
        and not any(map(str.isspace, members))
        and "0" not in members
        and "1" not in members
    )


class LabelNumbers:
    """Maps the numbers of labels to their names.

    Args:
        names: the names in the order of the numbers.
        first: the number of the first name.

    Raises:
        BadDataError: two labels have the same name.
    """

    def __init__(self, names: Sequence[str], first: int) -> None:
        self.names = names
        self._first = first
        self._by_number = {str(number): name for number, name in enumerate(names, first)}
        if len(set(names)) < len(names):
            twice = next(name for name, count in Counter(names).items() if count > 1)
            raise BadDataError(f"label_names contains {quoted(twice)} twice")

    def name_all(self, numbers: ParsedLabels, column: str) -> ParsedLabels:
        """Return the names of labels.

        Raises:
            RecordError: a label is not the number of a name.
        """
        try:
            labels, unknown = ([self._by_number[n.removesuffix(".0")] for n in part] for part in numbers)
        except KeyError as error:
            raise RecordError(
                f"the label {quoted(error.args[0])} is not a number from {self._first} to "
                f"{self._first + len(self.names) - 1}, for which there are names",
                column,
            ) from None
        return ParsedLabels(labels, unknown)
