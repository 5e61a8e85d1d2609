"""ARFF: Mulan's multi-label files, sparse and dense, and the hierarchical ones of Clus.

Mulan keeps the labels' names in an XML file of its own; it comes in the same zip, or the names come as an
option. Hierarchical files have an attribute ``hierarchical a,a/b,c``, whose values are paths joined by ``@``.
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
from models.data.readers.lines import decode, numbered_lines
from models.data.readers.mulan_xml import MulanLabels, read_mulan_xml
from models.data.readers.options import FormatOptions, Name
from models.data.readers.zip_archive import ZipArchive, is_zip, open_zip_archive
from models.data.record import Declarations, Item, Items, Record, RecordError, check_name, quoted
from models.errors import BadDataError, BadRecord

_PART = re.compile(r"[-_. ](train|test)\.arff$", re.IGNORECASE)


class ARFFOptions(FormatOptions):
    """Which attributes of an ARFF file are what."""

    format: Literal["arff"]
    labels: Annotated[list[Name], Field(min_length=1)] | None = None
    """The attributes that are labels, where no XML file in the same zip says so."""
    id: Name | None = None
    """The attribute that holds the id."""
    ignore: tuple[Name, ...] = ()
    """Attributes to leave out."""


def read_arff(source: InputFile, options: ARFFOptions, limits: IngestLimits) -> Items:
    """The records of an ARFF file, or of a zip of one (or a training and a test file) and Mulan's XML.

    A nominal attribute becomes a feature ``name=value`` for each of its values, one of yes and no (1 and 0,
    true and false) a single feature; a file whose only other attribute is a string is one of texts. A
    missing value (``?``) is read as 0.
    """
    if not is_zip(source):
        yield from _read_file(source, options, limits, _chosen_labels(options, None))
        return
    with open_zip_archive(source, limits) as archive:
        labels = _chosen_labels(options, _xml_labels(archive))
        parts = _parts_of(archive)
        for index, split in parts:
            with archive.open(index) as member:
                place = f"{archive.names[index]}: " if len(parts) > 1 else ""
                for item in _read_file(InputFile(member, source.scratch), options, limits, labels, place):
                    if isinstance(item, Record):
                        item.split = split
                    yield replace(item, reason=place + item.reason) if isinstance(item, BadRecord) else item


def _chosen_labels(options: ARFFOptions, xml: MulanLabels | None) -> MulanLabels | None:
    if options.labels is None:
        return xml
    if xml is not None:
        raise BadDataError("the zip has an XML file of labels; leave the option labels out")
    return MulanLabels(list(dict.fromkeys(options.labels)), {})


def _xml_labels(archive: ZipArchive) -> MulanLabels | None:
    found = [index for index, name in enumerate(archive.names) if name.lower().endswith(".xml")]
    if len(found) > 1:
        raise BadDataError(f"the zip has {len(found)} XML files; keep the one that lists the labels")
    if not found:
        return None
    with archive.open(found[0]) as member:
        return read_mulan_xml(member)


def _parts_of(archive: ZipArchive) -> list[tuple[int, Split | None]]:
    """The ARFF files to read: two called after their split, else the only one."""
    found = [index for index, name in enumerate(archive.names) if name.lower().endswith(".arff")]
    parts: list[tuple[int, Split | None]] = [
        (index, "train" if match[1].lower() == "train" else "test")
        for index in found
        if (match := _PART.search(archive.names[index]))
    ]
    parts.sort(key=lambda part: part[1] != "train")
    if [split for _, split in parts] == ["train", "test"]:
        return parts
    if len(found) == 1:
        return parts or [(found[0], None)]
    raise BadDataError(
        f"the zip has {len(found)} ARFF files; give one, or two called NAME-train.arff and NAME-test.arff"
    )


def _read_file(
    source: InputFile, options: ARFFOptions, limits: IngestLimits, labels: MulanLabels | None, place: str = ""
) -> Iterator[Item]:
    lines = numbered_lines(source.stream, limits.record_bytes)
    try:
        layout = _Layout(read_header(lines), options, labels, limits)
    except BadDataError as error:
        raise BadDataError(place + str(error), error.records) from error
    yield layout.declared()
    for item in lines:
        if isinstance(item, BadRecord):
            yield item
            continue
        number, line = item
        line = line.strip()
        if not line or line.startswith(b"%"):
            continue
        try:
            yield layout.record(decode(line), number)
        except RecordError as error:
            yield error.at(number)
    yield layout.closing()


class _Layout:
    """The part that every attribute plays, and how rows are read by it.

    Raises:
        BadDataError: the head, the options and the labels do not go together.
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
        self._places = {attribute.name: j for j, attribute in enumerate(attributes)}
        if len(self._places) < len(attributes):
            raise BadDataError("two attributes have the same name")
        self._id = None if options.id is None else self._place(options.id, "the option id")
        self._hierarchy = self._only_hierarchy()
        self._label_places: dict[int, str] = {}
        self._parents: dict[str, str] = {}
        if self._hierarchy is not None:
            if labels is not None:
                raise BadDataError("the file has a hierarchical attribute; leave the names of labels out")
            self._labels, self._parents = _classes(attributes[self._hierarchy].values, limits)
        elif labels is not None:
            self._label_places = {self._place(name, "the list of labels"): name for name in labels.names}
            self._labels, self._parents = set(labels.names), dict(labels.parents)
        else:
            raise BadDataError(
                "nothing says which attributes are labels: upload a zip of this file and its Mulan XML, or "
                "name them in the option labels"
            )
        ignored = {self._place(name, "the option ignore") for name in options.ignore}
        others = {self._id, self._hierarchy, *self._label_places, *ignored}
        self._features = {j: a for j, a in enumerate(attributes) if j not in others}
        self._text = self._only_text()
        # What a sparse row leaves out is zero or a first value, and the latter may well set a feature.
        self._omitted = {
            j: set_
            for j, attribute in (self._features.items() if self._text is None else ())
            if (set_ := attribute.feature(attribute.omitted))[1]
        }

    def _place(self, name: str, where: str) -> int:
        if name not in self._places:
            raise BadDataError(f"there is no attribute {quoted(name)}, which {where} names")
        return self._places[name]

    def _only_hierarchy(self) -> int | None:
        found = [j for j, attribute in enumerate(self._attributes) if attribute.type == "hierarchical"]
        if len(found) > 1:
            raise BadDataError("the file has two hierarchical attributes")
        return found[0] if found else None

    def _only_text(self) -> int | None:
        strings = [j for j, attribute in self._features.items() if attribute.type == "string"]
        if strings and len(self._features) > 1:
            name = quoted(self._attributes[strings[0]].name)
            raise BadDataError(
                f"the attribute {name} is a string beside others; name it in the option id or ignore"
            )
        return strings[0] if strings else None

    def declared(self) -> Declarations:
        """The labels, features and tree of the head."""
        attributes = self._features.values() if self._text is None else ()
        features = [name for attribute in attributes for name in attribute.feature_names]
        for name in (*features, *self._labels):
            try:
                check_name(name, "a name", name, self._limits.name_length)
            except RecordError as error:
                raise BadDataError(f"attribute {quoted(name)}: {error.reason}") from error
        return Declarations(labels=sorted(self._labels), features=features, parents=self._parents)

    def closing(self) -> Declarations:
        """What is to be said after the last row."""
        if not self._n_missing:
            return Declarations()
        return Declarations(remarks=[f"{self._n_missing:,} values are missing (?) and were read as 0"])

    def record(self, line: str, number: int) -> Record:
        """The record of one row, dense or sparse.

        Raises:
            RecordError: names the attribute.
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
            raise RecordError(f"the row has {len(cells)} values, the head {len(self._attributes)} attributes")
        return dict(enumerate(cells))

    def _sparse_cells(self, line: str) -> dict[int, str]:
        if not line.endswith("}"):
            raise RecordError("the row has no closing brace")
        cells: dict[int, str] = {}
        for index, cell in parse_sparse_cells(line[1:-1]):
            if index >= len(self._attributes):
                raise RecordError(f"index {index} is past the last attribute, {len(self._attributes) - 1}")
            if index in cells:
                raise RecordError(f"index {index} stands twice", self._attributes[index].name)
            cells[index] = cell
        return cells

    def _features_of(self, cells: Mapping[int, str]) -> dict[str, float]:
        features = dict(set_ for j, set_ in self._omitted.items() if j not in cells)
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
        found = []
        for j, name in self._label_places.items():
            cell = cells[j] if j in cells else self._attributes[j].omitted
            word = cell.lower()
            if word in YES:
                found.append(name)
            elif word not in NO:
                raise RecordError(f"a label is 0 or 1, not {quoted(cell)}", name)
        return found

    def _classes_of(self, cell: str) -> list[str]:
        paths = [path.strip() for path in cell.split("@")] if cell else []
        for path in paths:
            if path not in self._labels:
                raise RecordError(f"{quoted(path)} is not one of the classes in the head")
        return paths


def _classes(paths: Sequence[str], limits: IngestLimits) -> tuple[set[str], dict[str, str]]:
    """All classes of a hierarchy, those on the way included, and the parent of each that has one.

    A class on the way has a name of its own, so that a path of n parts takes memory of n²; its length is
    looked at first, and classes beyond the limit of labels are not made.
    """
    classes: set[str] = set()
    parents: dict[str, str] = {}
    for path in paths:
        try:
            check_name(path, "a path of classes", "hierarchical", limits.name_length)
        except RecordError as error:
            raise BadDataError(f"{quoted(path)}: {error.reason}") from error
        parts = path.split("/")
        if not all(parts):
            raise BadDataError(f"{quoted(path)} is not a path of classes such as a/b/c")
        for depth in range(1, len(parts) + 1):
            here = "/".join(parts[:depth])
            classes.add(here)
            if depth > 1:
                parents[here] = "/".join(parts[: depth - 1])
        if len(classes) > limits.labels:
            break
    return classes, parents
