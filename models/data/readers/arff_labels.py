"""Finds the labels of an ARFF file: which attributes are labels, and which labels a row has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.data.limits import IngestLimits
from models.data.readers.arff_syntax import MISSING, NO, YES, Attribute
from models.data.record import RecordError, check_name, quoted
from models.data.values.labels import parse_labels
from models.errors import BadDataError

_SEPARATOR = ","


@dataclass(frozen=True)
class _ClassAttribute:
    """A nominal attribute with other values than a yes and a no: each value is a label.

    Attributes:
        attribute: the attribute.
        label_by_value: the label of each value.
        labels: all its labels.
    """

    attribute: Attribute
    label_by_value: Mapping[str, str]
    labels: tuple[str, ...]


class LabelAttributes:
    """The attributes that are labels.

    An attribute with the values 0 and 1 is one label. The values of any other nominal attribute are labels:
    by their own names if it is the only attribute with labels, otherwise as ``name=value``. A string
    attribute contains a list of labels.

    Attributes:
        names: the labels that the header declares.
        parents: the label tree as child to parent.
    """

    def __init__(
        self,
        attributes: Sequence[Attribute],
        indices: Sequence[int],
        parents: Mapping[str, str],
        limits: IngestLimits,
    ) -> None:
        self._limits = limits
        self.names: set[str] = set()
        self.parents = dict(parents)
        self._flags: dict[int, tuple[str, bool]] = {}
        self._classes: dict[int, _ClassAttribute] = {}
        self._lists: dict[int, str] = {}
        in_tree = set(parents) | set(parents.values())
        for j in indices:
            attribute = attributes[j]
            if attribute.type in {"numeric", "nominal"} and _has_only_yes_and_no(attribute):
                self._flags[j] = attribute.name, attribute.omitted.lower() in YES
                self.names.add(attribute.name)
                continue
            if attribute.name in in_tree:
                raise BadDataError(
                    f"the label {quoted(attribute.name)} is part of the label tree, but its values are not "
                    "0 and 1"
                )
            if attribute.type == "nominal":
                prefix = "" if len(indices) == 1 else f"{attribute.name}="
                label_by_value = {value: prefix + value for value in attribute.values if value != MISSING}
                self._classes[j] = _ClassAttribute(attribute, label_by_value, tuple(label_by_value.values()))
                self.names.update(label_by_value.values())
            elif attribute.type == "string":
                self._lists[j] = attribute.name
            else:
                raise BadDataError(
                    f"the attribute {quoted(attribute.name)} has the type {attribute.type} and cannot be a "
                    "label; remove it from the list of labels"
                )

    def read(self, cells: Mapping[int, str]) -> tuple[list[str], list[str]]:
        """Return the labels of a row, and its unknown labels, whose value is missing (``?``).

        Raises:
            RecordError: a cell is not a value of its attribute.
        """
        labels: list[str] = []
        unknown: list[str] = []
        for j, (name, omitted) in self._flags.items():
            cell = cells.get(j)
            if cell is None:
                if omitted:
                    labels.append(name)
            elif cell in YES:
                labels.append(name)
            elif cell not in NO:
                if cell == MISSING:
                    unknown.append(name)
                elif cell.lower() in YES:
                    labels.append(name)
                elif cell.lower() not in NO:
                    raise RecordError(f"a label must be 0 or 1, not {quoted(cell)}", name)
        for j, classes in self._classes.items():
            cell = cells.get(j, classes.attribute.omitted)
            if cell == MISSING:
                unknown += classes.labels
            elif cell in classes.label_by_value:
                labels.append(classes.label_by_value[cell])
            else:
                raise RecordError(
                    f"{quoted(cell)} is not a value that the header declares", classes.attribute.name
                )
        for j, name in self._lists.items():
            cell = cells.get(j, "")
            if cell != MISSING:
                parsed = parse_labels(cell, name, _SEPARATOR, self._limits)
                labels += parsed.labels
                unknown += parsed.unknown
        return labels, unknown


def _has_only_yes_and_no(attribute: Attribute) -> bool:
    return attribute.type == "numeric" or all(value.lower() in YES | NO for value in attribute.values)


def find_attribute(name: str, index_of: Mapping[str, int], where: str) -> int:
    """Return the position of the attribute with a name.

    Raises:
        BadDataError: the attribute does not exist.
    """
    if name not in index_of:
        raise BadDataError(f"{where} names the attribute {quoted(name)}, which does not exist")
    return index_of[name]


def indices_of_meka(n_labels: int, n_attributes: int) -> list[int]:
    """Return the positions of the labels for the option ``-C`` of MEKA.

    Raises:
        BadDataError: the file has fewer attributes than labels.

    >>> indices_of_meka(2, 5), indices_of_meka(-2, 5)
    ([0, 1], [3, 4])
    """
    if not 0 < abs(n_labels) < n_attributes:
        raise BadDataError(
            f"the name of the relation states {abs(n_labels):,} labels (-C {n_labels}), but the file has "
            f"{n_attributes:,} attributes; correct the number, or list the attributes in the option labels"
        )
    return list(range(n_labels)) if n_labels > 0 else list(range(n_attributes + n_labels, n_attributes))


def classes_of(cell: str, classes: set[str]) -> list[str]:
    """Return the classes of a cell of a hierarchical attribute, which are joined by ``@``.

    Raises:
        RecordError: the header does not declare a class.
    """
    paths = [path.strip() for path in cell.split("@")] if cell else []
    for path in paths:
        if path not in classes:
            raise RecordError(f"the header does not declare the class {quoted(path)}")
    return paths


def read_hierarchy(paths: Sequence[str], limits: IngestLimits) -> tuple[set[str], dict[str, str]]:
    """Return all classes of a hierarchy, including ancestors, and the parent of each class that has one.

    Every ancestor has a full path as its name, so that a path of n parts takes memory in the order of n². The
    function therefore checks the length of each path first, and stops at the limit on labels.

    Raises:
        BadDataError: a path is invalid.
    """
    classes: set[str] = set()
    parents: dict[str, str] = {}
    for path in paths:
        try:
            check_name(path, "a class path", "hierarchical", limits.name_length)
        except RecordError as error:
            raise BadDataError(f"{quoted(path)}: {error.reason}") from error
        parts = path.split("/")
        if not all(parts):
            raise BadDataError(f"{quoted(path)} is not a class path such as a/b/c")
        for depth in range(1, len(parts) + 1):
            name = "/".join(parts[:depth])
            classes.add(name)
            if depth > 1:
                parents[name] = "/".join(parts[: depth - 1])
        if len(classes) > limits.labels:
            break
    return classes, parents
