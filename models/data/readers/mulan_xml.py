"""Mulan's list of labels: ``<labels><label name="a"><label name="b"/></label></labels>``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO
from xml.parsers import expat

from models.data.readers.input_file import read_at_most
from models.errors import BadDataError

_MOST_BYTES = 16 * 2**20


@dataclass(frozen=True)
class MulanLabels:
    """The attributes that are labels.

    Attributes:
        names: in the order of the file.
        parents: child to parent, where labels are nested.
    """

    names: Sequence[str]
    parents: Mapping[str, str]


def read_mulan_xml(stream: BinaryIO) -> MulanLabels:
    """The labels that an XML file lists.

    Raises:
        BadDataError: not such a file, more than 16 MiB, a label twice or without a name, or entities (which
            such a file has no need of and which can blow up).
    """
    content = read_at_most(stream, _MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise BadDataError("the XML file of labels has more than 16 MiB")
    names: dict[str, None] = {}
    parents: dict[str, str] = {}
    open_labels: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag.rpartition(":")[2] != "label":
            return
        name = attributes.get("name", "")
        if not name or name in names:
            raise BadDataError(
                f"the XML file lists the label {name!r} twice" if name else "a label has no name"
            )
        names[name] = None
        if open_labels:
            parents[name] = open_labels[-1]
        open_labels.append(name)

    def end(tag: str) -> None:
        if tag.rpartition(":")[2] == "label":
            open_labels.pop()

    def refuse_entity(*_: object) -> None:
        raise BadDataError("the XML file of labels declares entities; remove them")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.EntityDeclHandler = refuse_entity
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        if isinstance(error, BadDataError):
            raise
        raise BadDataError(f"the XML file of labels cannot be read: {error}") from error
    if not names:
        raise BadDataError("the XML file lists no label")
    return MulanLabels(list(names), parents)
