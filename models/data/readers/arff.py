"""Reads ARFF: the multi-label files of Mulan and MEKA, sparse and dense, and the hierarchical files of Clus.

Mulan lists the labels in a separate XML file. MEKA states their number in the name of the relation.
Otherwise, the option ``labels`` lists the labels. Hierarchical files have an attribute
``hierarchical a,a/b,c``, whose values are class paths joined by ``@``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from models.data.files.input_file import InputFile
from models.data.files.lines import decode_utf8, numbered_lines
from models.data.limits import IngestLimits
from models.data.options import FormatOptionsBase, Name
from models.data.record import Declarations, Items, Record, RecordError, check_name, quoted
from models.data.syntax.arff import (
    MISSING,
    NO,
    YES,
    Attribute,
    Header,
    parse_row,
    parse_sparse_cells,
    read_header,
    split_weight,
    without_comment,
)
from models.data.syntax.mulan_xml import MulanLabels, read_mulan_xml
from models.data.values.labels import parse_labels
from models.data.values.scalars import parse_id
from models.errors import BadDataError, BadRecord

_LABEL_SEPARATOR = ","


class ARFFOptions(FormatOptionsBase):
    """The roles of the attributes of an ARFF file."""

    format: Literal["arff"]
    labels: Annotated[list[Name], Field(min_length=1)] | None = None
    """The attributes that are labels, if neither an XML file in the zip nor the name of the relation states
    them. If the values of an attribute are not 0 and 1, each value is a label."""
    id: Name | None = None
    """The attribute with the id."""
    ignore: tuple[Name, ...] = ()
    """Attributes to omit."""


def read_arff(file: InputFile, options: ARFFOptions, limits: IngestLimits) -> Items:
    """Yield the records of an ARFF file.

    A nominal attribute becomes one feature ``name=value`` for each of its values. If its two values are a yes
    and a no (1 and 0, true and false), it becomes a single feature. If the only attribute that is not a label
    is a string, it is the text of the document. A missing value (``?``) of a feature is read as 0, and one of
    a label as unknown. Weights of rows are ignored.
    """
    labels = _listed_labels(file, options)
    lines = numbered_lines(file.stream, limits.record_bytes)
    layout = _Layout(read_header(lines), options, labels, limits)
    yield layout.declarations()
    for item in lines:
        if isinstance(item, BadRecord):
            yield item
            continue
        number, line = item
        line = line.strip()
        if not line or line.startswith(b"%"):
            continue
        try:
            yield layout.record(decode_utf8(line), number)
        except RecordError as error:
            yield error.at_line(number)
    yield layout.final_declarations()


def _listed_labels(file: InputFile, options: ARFFOptions) -> MulanLabels | None:
    """Return the labels that the option or the XML file in the zip lists."""
    if len(file.companions) > 1:
        raise BadDataError(
            f"the zip contains {len(file.companions)} XML files; keep only the one that lists the labels"
        )
    if options.labels is not None:
        if file.companions:
            raise BadDataError("the zip contains an XML file of labels; omit the option labels")
        return MulanLabels(list(dict.fromkeys(options.labels)), {})
    for open_xml in file.companions:
        with open_xml() as member:
            return read_mulan_xml(member)
    return None


class _Layout:
    """Assigns a role to every attribute, and reads rows accordingly.

    Raises:
        BadDataError: the header, the options and the list of labels contradict each other.
    """

    def __init__(
        self, header: Header, options: ARFFOptions, labels: MulanLabels | None, limits: IngestLimits
    ) -> None:
        self._attributes = attributes = header.attributes
        self._limits = limits
        self._n_missing = 0
        self._n_weights = 0
        self._index_of: dict[str, int] = {}
        for j, attribute in enumerate(attributes):
            if self._index_of.setdefault(attribute.name, j) != j:
                raise BadDataError(f"two attributes have the name {quoted(attribute.name)}; rename one")
        self._id = None if options.id is None else self._find(options.id, "the option id")
        self._hierarchy = self._find_hierarchy()
        self._label_attributes: _LabelAttributes | None = None
        label_indices: list[int] = []
        self._labels: set[str]
        self._parents: dict[str, str]
        if self._hierarchy is not None:
            if labels is not None:
                raise BadDataError(
                    "the file has a hierarchical attribute, which defines the labels; omit the list of labels"
                )
            self._labels, self._parents = _read_hierarchy(attributes[self._hierarchy].values, limits)
        else:
            label_indices = self._find_labels(header, labels)
            parents = {} if labels is None else labels.parents
            self._label_attributes = _LabelAttributes(attributes, label_indices, parents, limits)
            self._labels, self._parents = self._label_attributes.names, self._label_attributes.parents
        ignored = {self._find(name, "the option ignore") for name in options.ignore}
        others = {self._id, self._hierarchy, *label_indices, *ignored}
        self._features = {j: a for j, a in enumerate(attributes) if j not in others}
        self._text = self._find_text()
        # A sparse row omits zeros and first values. A first value of a nominal attribute can set a feature.
        self._omitted = {
            j: feature
            for j, attribute in (self._features.items() if self._text is None else ())
            if (feature := attribute.feature(attribute.omitted))[1]
        }

    def _find(self, name: str, where: str) -> int:
        return _find_attribute(name, self._index_of, where)

    def _find_hierarchy(self) -> int | None:
        indices = [j for j, attribute in enumerate(self._attributes) if attribute.type == "hierarchical"]
        if len(indices) > 1:
            raise BadDataError("the file has more than one hierarchical attribute; keep one")
        return indices[0] if indices else None

    def _find_labels(self, header: Header, labels: MulanLabels | None) -> list[int]:
        if labels is not None:
            return [self._find(name, "the list of labels") for name in labels.names]
        n_labels = header.n_labels_of_meka()
        if n_labels is not None:
            return _indices_of_meka(n_labels, len(header.attributes))
        raise BadDataError(
            "the labels are unknown; upload a zip of this file and its Mulan XML, or list the label "
            "attributes in the option labels"
        )

    def _find_text(self) -> int | None:
        for attribute in self._features.values():
            if attribute.type in {"date", "relational"}:
                raise BadDataError(
                    f"the attribute {quoted(attribute.name)} has the type {attribute.type}, which "
                    "cannot be a feature; name it in the option ignore"
                )
        strings = [j for j, attribute in self._features.items() if attribute.type == "string"]
        if strings and len(self._features) > 1:
            name = quoted(self._attributes[strings[0]].name)
            raise BadDataError(
                f"the attribute {name} is a string, but there are other features; "
                "name it in the option id or ignore"
            )
        return strings[0] if strings else None

    def declarations(self) -> Declarations:
        """Return the labels, features and label tree that the header declares."""
        attributes: list[Attribute] = list(self._features.values()) if self._text is None else []
        features = [name for attribute in attributes for name in attribute.feature_names]
        for name in (*features, *self._labels):
            try:
                check_name(name, "a name", name, self._limits.name_length)
            except RecordError as error:
                raise BadDataError(f"attribute {quoted(name)}: {error.reason}") from error
        return Declarations(labels=sorted(self._labels), features=features, parents=self._parents)

    def final_declarations(self) -> Declarations:
        """Return the warnings that are known only after the last row."""
        warnings = []
        if self._n_missing:
            warnings.append(f"missing values (?): {self._n_missing:,}; they were read as 0")
        if self._n_weights:
            warnings.append(
                f"rows with a weight: {self._n_weights:,}; the weights were ignored; every row counts once"
            )
        return Declarations(warnings=warnings)

    def record(self, line: str, number: int) -> Record:
        """Return the record of one row, dense or sparse.

        Raises:
            RecordError: a cell is invalid; names the attribute.
        """
        try:
            return self._record(line, number)
        except RecordError:
            # A comment at the end of a row is rare. Searching for it only now keeps texts such as 50 % whole.
            shorter = without_comment(line) if "%" in line else line
            if shorter == line:
                raise
            return self._record(shorter, number)

    def _record(self, line: str, number: int) -> Record:
        cells, has_weight = self._sparse_cells(line) if line.startswith("{") else self._dense_cells(line)
        record = Record(line=number, labels=())
        if self._label_attributes is not None:
            record.labels, unknown = self._label_attributes.read(cells)
            if unknown:
                record.unknown = unknown
        elif self._hierarchy is not None:
            record.labels = _classes_of(cells.get(self._hierarchy, ""), self._labels)
        if self._id is not None:
            id_ = cells.get(self._id, MISSING)
            name = self._attributes[self._id].name
            record.id = None if id_ == MISSING else parse_id(id_, name, self._limits)
        if self._text is not None:
            text = cells.get(self._text, MISSING)
            record.text = "" if text == MISSING else text
        else:
            record.features, n_missing = self._features_of(cells)
            self._n_missing += n_missing
        self._n_weights += has_weight
        return record

    def _dense_cells(self, line: str) -> tuple[dict[int, str], bool]:
        cells, has_weight = parse_row(line, len(self._attributes))
        if len(cells) != len(self._attributes):
            raise RecordError(
                f"the row has {len(cells)} values, but the header declares {len(self._attributes)} attributes"
            )
        return dict(enumerate(cells)), has_weight

    def _sparse_cells(self, line: str) -> tuple[dict[int, str], bool]:
        line, has_weight = split_weight(line.rstrip(","))
        if not line.endswith("}"):
            raise RecordError("the row has no closing brace")
        cells: dict[int, str] = {}
        for index, cell in parse_sparse_cells(line[1:-1]):
            if index >= len(self._attributes):
                raise RecordError(
                    f"index {index} is greater than the last index, {len(self._attributes) - 1}"
                )
            if index in cells:
                raise RecordError(f"index {index} occurs twice in the row", self._attributes[index].name)
            cells[index] = cell
        return cells, has_weight

    def _features_of(self, cells: Mapping[int, str]) -> tuple[dict[str, float], int]:
        """Return the features of a row, and the number of missing values."""
        n_missing = 0
        features = dict(feature for j, feature in self._omitted.items() if j not in cells)
        for j, cell in cells.items():
            attribute = self._features.get(j)
            if attribute is None:
                continue
            if cell == MISSING:
                n_missing += 1
                continue
            name, value = attribute.feature(cell)
            if value:
                features[name] = value
        return features, n_missing


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


class _LabelAttributes:
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
                parsed = parse_labels(cell, name, _LABEL_SEPARATOR, self._limits)
                labels += parsed.labels
                unknown += parsed.unknown
        return labels, unknown


def _has_only_yes_and_no(attribute: Attribute) -> bool:
    return attribute.type == "numeric" or all(value.lower() in YES | NO for value in attribute.values)


def _find_attribute(name: str, index_of: Mapping[str, int], where: str) -> int:
    """Return the position of the attribute with a name.

    Raises:
        BadDataError: the attribute does not exist.
    """
    if name not in index_of:
        raise BadDataError(f"{where} names the attribute {quoted(name)}, which does not exist")
    return index_of[name]


def _indices_of_meka(n_labels: int, n_attributes: int) -> list[int]:
    """Return the positions of the labels for the option ``-C`` of MEKA.

    Raises:
        BadDataError: the file has fewer attributes than labels.

    >>> _indices_of_meka(2, 5), _indices_of_meka(-2, 5)
    ([0, 1], [3, 4])
    """
    if not 0 < abs(n_labels) < n_attributes:
        raise BadDataError(
            f"the name of the relation states {abs(n_labels):,} labels (-C {n_labels}), but the file has "
            f"{n_attributes:,} attributes; correct the number, or list the attributes in the option labels"
        )
    return list(range(n_labels)) if n_labels > 0 else list(range(n_attributes + n_labels, n_attributes))


def _classes_of(cell: str, classes: set[str]) -> list[str]:
    """Return the classes of a cell of a hierarchical attribute, which are joined by ``@``.

    Raises:
        RecordError: the header does not declare a class.
    """
    paths = [path.strip() for path in cell.split("@")] if cell else []
    for path in paths:
        if path not in classes:
            raise RecordError(f"the header does not declare the class {quoted(path)}")
    return paths


def _read_hierarchy(paths: Sequence[str], limits: IngestLimits) -> tuple[set[str], dict[str, str]]:
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
