"""Reads ARFF: the multi-label files of Mulan, sparse and dense, and the hierarchical files of Clus.

Mulan lists the labels in a separate XML file. Either the zip contains this file, or the option ``labels``
lists the labels. Hierarchical files have an attribute ``hierarchical a,a/b,c``, whose values are class
paths joined by ``@``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from models.data.examples import Split
from models.data.limits import IngestLimits
from models.data.readers.arff_syntax import (
    MISSING,
    NO,
    YES,
    Attribute,
    parse_cells,
    parse_sparse_cells,
    read_header,
)
from models.data.readers.input_file import InputFile
from models.data.readers.lines import decode_utf8, numbered_lines
from models.data.readers.mulan_xml import MulanLabels, read_mulan_xml
from models.data.readers.options import FormatOptionsBase, Name
from models.data.readers.zip_archive import ZipArchive, is_zip, open_zip_archive
from models.data.record import Declarations, Item, Items, Record, RecordError, check_name, quoted
from models.errors import BadDataError, BadRecord

_SPLIT_NAME = re.compile(r"[-_. ](train|test)\.arff$", re.IGNORECASE)


class ARFFOptions(FormatOptionsBase):
    """The roles of the attributes of an ARFF file."""

    format: Literal["arff"]
    labels: Annotated[list[Name], Field(min_length=1)] | None = None
    """The attributes that are labels, if the zip contains no XML file with them."""
    id: Name | None = None
    """The attribute with the id."""
    ignore: tuple[Name, ...] = ()
    """Attributes to omit."""


def read_arff(file: InputFile, options: ARFFOptions, limits: IngestLimits) -> Items:
    """Yield the records of an ARFF file, or of a zip with one ARFF file (or train and test) and Mulan's XML.

    A nominal attribute becomes one feature ``name=value`` for each of its values. If its two values are a yes
    and a no (1 and 0, true and false), it becomes a single feature. If the only attribute that is not a label
    is a string, it is the text of the document. A missing value (``?``) is read as 0.
    """
    if not is_zip(file):
        yield from _read_file(file, options, limits, _find_labels(options, None))
        return
    with open_zip_archive(file, limits) as archive:
        labels = _find_labels(options, _xml_labels(archive))
        files = _find_arff_files(archive)
        for index, split in files:
            with archive.open(index) as member:
                prefix = f"{archive.names[index]}: " if len(files) > 1 else ""
                for item in _read_file(InputFile(member, file.temp_folder), options, limits, labels, prefix):
                    if isinstance(item, Record):
                        item.split = split
                    yield replace(item, reason=prefix + item.reason) if isinstance(item, BadRecord) else item


def _find_labels(options: ARFFOptions, xml: MulanLabels | None) -> MulanLabels | None:
    if options.labels is None:
        return xml
    if xml is not None:
        raise BadDataError("the zip contains an XML file of labels; omit the option labels")
    return MulanLabels(list(dict.fromkeys(options.labels)), {})


def _xml_labels(archive: ZipArchive) -> MulanLabels | None:
    files = [index for index, name in enumerate(archive.names) if name.lower().endswith(".xml")]
    if len(files) > 1:
        raise BadDataError(
            f"the zip contains {len(files)} XML files; keep only the one that lists the labels"
        )
    if not files:
        return None
    with archive.open(files[0]) as member:
        return read_mulan_xml(member)


def _find_arff_files(archive: ZipArchive) -> list[tuple[int, Split | None]]:
    """Return the ARFF files to read: two that are named after their split, else the only one."""
    files = [index for index, name in enumerate(archive.names) if name.lower().endswith(".arff")]
    splits: list[tuple[int, Split | None]] = [
        (index, "train" if match[1].lower() == "train" else "test")
        for index in files
        if (match := _SPLIT_NAME.search(archive.names[index]))
    ]
    splits.sort(key=lambda item: item[1] != "train")
    if [split for _, split in splits] == ["train", "test"]:
        return splits
    if len(files) == 1:
        return splits or [(files[0], None)]
    raise BadDataError(
        f"the zip contains {len(files)} ARFF files; include one, or two with the names "
        "NAME-train.arff and NAME-test.arff"
    )


def _read_file(
    file: InputFile, options: ARFFOptions, limits: IngestLimits, labels: MulanLabels | None, prefix: str = ""
) -> Iterator[Item]:
    lines = numbered_lines(file.stream, limits.record_bytes)
    try:
        layout = _Layout(read_header(lines), options, labels, limits)
    except BadDataError as error:
        raise BadDataError(prefix + str(error), error.records) from error
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


class _Layout:
    """Assigns a role to every attribute, and reads rows accordingly.

    Raises:
        BadDataError: the header, the options and the list of labels contradict each other.
    """

    def __init__(
        self,
        attributes: Sequence[Attribute],
        options: ARFFOptions,
        labels: MulanLabels | None,
        limits: IngestLimits,
    ) -> None:
        self._attributes = attributes
        self._limits = limits
        self._n_missing = 0
        self._index_of = {attribute.name: j for j, attribute in enumerate(attributes)}
        if len(self._index_of) < len(attributes):
            raise BadDataError("two attributes have the same name; rename one")
        self._id = None if options.id is None else self._find(options.id, "the option id")
        self._hierarchy = self._find_hierarchy()
        self._label_indices: dict[int, str] = {}
        self._parents: dict[str, str] = {}
        if self._hierarchy is not None:
            if labels is not None:
                raise BadDataError(
                    "the file has a hierarchical attribute, which defines the labels; omit the list of labels"
                )
            self._labels, self._parents = _classes(attributes[self._hierarchy].values, limits)
        elif labels is not None:
            self._label_indices = {self._find(name, "the list of labels"): name for name in labels.names}
            self._labels, self._parents = set(labels.names), dict(labels.parents)
        else:
            raise BadDataError(
                "the labels are unknown; upload a zip of this file and its Mulan XML, or list the label "
                "attributes in the option labels"
            )
        ignored = {self._find(name, "the option ignore") for name in options.ignore}
        others = {self._id, self._hierarchy, *self._label_indices, *ignored}
        self._features = {j: a for j, a in enumerate(attributes) if j not in others}
        self._text = self._find_text()
        # A sparse row omits zeros and first values. A first value of a nominal attribute can set a feature.
        self._omitted = {
            j: feature
            for j, attribute in (self._features.items() if self._text is None else ())
            if (feature := attribute.feature(attribute.omitted))[1]
        }

    def _find(self, name: str, where: str) -> int:
        if name not in self._index_of:
            raise BadDataError(f"{where} names the attribute {quoted(name)}, which does not exist")
        return self._index_of[name]

    def _find_hierarchy(self) -> int | None:
        indices = [j for j, attribute in enumerate(self._attributes) if attribute.type == "hierarchical"]
        if len(indices) > 1:
            raise BadDataError("the file has more than one hierarchical attribute; keep one")
        return indices[0] if indices else None

    def _find_text(self) -> int | None:
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
        attributes = self._features.values() if self._text is None else ()
        features = [name for attribute in attributes for name in attribute.feature_names]
        for name in (*features, *self._labels):
            try:
                check_name(name, "a name", name, self._limits.name_length)
            except RecordError as error:
                raise BadDataError(f"attribute {quoted(name)}: {error.reason}") from error
        return Declarations(labels=sorted(self._labels), features=features, parents=self._parents)

    def final_declarations(self) -> Declarations:
        """Return the warnings that are known only after the last row."""
        if not self._n_missing:
            return Declarations()
        return Declarations(warnings=[f"missing values (?): {self._n_missing:,}; they were read as 0"])

    def record(self, line: str, number: int) -> Record:
        """Return the record of one row, dense or sparse.

        Raises:
            RecordError: a cell is invalid; names the attribute.
        """
        cells = self._sparse_cells(line) if line.startswith("{") else self._dense_cells(line)
        record = Record(line=number, labels=self._labels_of(cells))
        if self._id is not None:
            id_ = cells.get(self._id, "")
            name = self._attributes[self._id].name
            record.id = check_name(id_, "the id", name, self._limits.name_length)
        if self._text is not None:
            text = cells.get(self._text, MISSING)
            record.text = "" if text == MISSING else text
        else:
            record.features = self._features_of(cells)
        return record

    def _dense_cells(self, line: str) -> dict[int, str]:
        cells = parse_cells(line)
        if len(cells) != len(self._attributes):
            raise RecordError(
                f"the row has {len(cells)} values, but the header declares {len(self._attributes)} attributes"
            )
        return dict(enumerate(cells))

    def _sparse_cells(self, line: str) -> dict[int, str]:
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
        return cells

    def _features_of(self, cells: Mapping[int, str]) -> dict[str, float]:
        features = dict(feature for j, feature in self._omitted.items() if j not in cells)
        for j, cell in cells.items():
            attribute = self._features.get(j)
            if attribute is None:
                continue
            if cell == MISSING:
                self._n_missing += 1
                continue
            name, value = attribute.feature(cell)
            if value:
                features[name] = value
        return features

    def _labels_of(self, cells: Mapping[int, str]) -> list[str]:
        if self._hierarchy is not None:
            return self._classes_of(cells.get(self._hierarchy, ""))
        labels = []
        for j, name in self._label_indices.items():
            cell = cells[j] if j in cells else self._attributes[j].omitted
            word = cell.lower()
            if word in YES:
                labels.append(name)
            elif word not in NO:
                raise RecordError(f"a label must be 0 or 1, not {quoted(cell)}", name)
        return labels

    def _classes_of(self, cell: str) -> list[str]:
        paths = [path.strip() for path in cell.split("@")] if cell else []
        for path in paths:
            if path not in self._labels:
                raise RecordError(f"the header does not declare the class {quoted(path)}")
        return paths


def _classes(paths: Sequence[str], limits: IngestLimits) -> tuple[set[str], dict[str, str]]:
    """Return all classes of a hierarchy, including ancestors, and the parent of each class that has one.

    Every ancestor has a full path as its name, so that a path of n parts takes memory in the order of n². The
    function therefore checks the length of each path first, and stops at the limit on labels.
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
