"""Reads the label list of a Mulan file: ``<labels><label name="a"><label name="b"/></label></labels>``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO
from xml.parsers import expat

from models.data.files.input_file import read_at_most
from models.data.record import quoted
from models.errors import BadDataError

_MAX_BYTES = 16 * 2**20


@dataclass(frozen=True)
class MulanLabels:
    """The attributes that are labels.

    Attributes:
        names: label names in the order of the file.
        parents: child to parent for nested labels.
    """

    names: Sequence[str]
    parents: Mapping[str, str]


def read_mulan_xml(stream: BinaryIO) -> MulanLabels:
    """Return the labels that an XML file lists.

    Entity declarations are rejected: a label list does not need them, and they can expand without limit.

    Raises:
        BadDataError: the file is not such a list, is larger than 16 MiB, has a label twice or without a name,
            or declares entities.
    """
    content = read_at_most(stream, _MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise BadDataError("the XML file of labels is larger than the limit of 16 MiB")
    names: dict[str, None] = {}
    parents: dict[str, str] = {}
    open_labels: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag.rpartition(":")[2] != "label":
            return
        name = attributes.get("name", "")
        if not name:
            raise BadDataError("the XML file of labels has a label without the attribute name")
        if name in names:
            raise BadDataError(f"the XML file of labels lists the label {quoted(name)} twice")
        names[name] = None
        if open_labels:
            parents[name] = open_labels[-1]
        open_labels.append(name)

    def end(tag: str) -> None:
        if tag.rpartition(":")[2] == "label":
            open_labels.pop()

    def reject_entity(*_: object) -> None:
        raise BadDataError("the XML file of labels declares entities; remove them")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.EntityDeclHandler = reject_entity
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        if isinstance(error, BadDataError):
            raise
        raise BadDataError(f"the XML file of labels cannot be read: {error}") from error
    if not names:
        raise BadDataError("the XML file of labels lists no label; add an element <label name=...> for each")
    return MulanLabels(list(names), parents)
