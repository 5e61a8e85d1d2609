"""Reads ARFF: the multi-label files of Mulan and MEKA, sparse and dense, and the hierarchical files of Clus.

Mulan lists the labels in a separate XML file. MEKA states their number in the name of the relation.
Otherwise, the option ``labels`` lists the labels. Hierarchical files have an attribute
``hierarchical a,a/b,c``, whose values are class paths joined by ``@``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from models.data.limits import IngestLimits
from models.data.options import FormatOptionsBase, Name
from models.data.readers.arff_labels import (
    LabelAttributes,
    classes_of,
    find_attribute,
    indices_of_meka,
    read_hierarchy,
)
from models.data.readers.arff_syntax import (
    MISSING,
    Attribute,
    Header,
    parse_row,
    parse_sparse_cells,
    read_header,
    split_weight,
    without_comment,
)
from models.data.readers.input_file import InputFile
from models.data.readers.lines import decode_utf8, numbered_lines
from models.data.readers.mulan_xml import MulanLabels, read_mulan_xml
from models.data.record import Declarations, Items, Record, RecordError, check_name, quoted
from models.data.values.scalars import parse_id
from models.errors import BadDataError, BadRecord


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
        self._label_attributes: LabelAttributes | None = None
        label_indices: list[int] = []
        self._labels: set[str]
        self._parents: dict[str, str]
        if self._hierarchy is not None:
            if labels is not None:
                raise BadDataError(
                    "the file has a hierarchical attribute, which defines the labels; omit the list of labels"
                )
            self._labels, self._parents = read_hierarchy(attributes[self._hierarchy].values, limits)
        else:
            label_indices = self._find_labels(header, labels)
            parents = {} if labels is None else labels.parents
            self._label_attributes = LabelAttributes(attributes, label_indices, parents, limits)
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
        return find_attribute(name, self._index_of, where)

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
            return indices_of_meka(n_labels, len(header.attributes))
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
            record.labels = classes_of(cells.get(self._hierarchy, ""), self._labels)
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
