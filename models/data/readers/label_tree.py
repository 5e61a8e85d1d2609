"""A label tree from a file of pairs."""

from __future__ import annotations

import csv
from typing import BinaryIO

from models.data.readers.lines import decode, numbered_lines
from models.data.record import RecordError, check_name, quoted
from models.errors import BadDataError, BadRecord
from models.labels import LabelTree

_MOST_LINE_BYTES = 2**16
_MOST_NAME_LENGTH = 512


def read_label_tree(stream: BinaryIO) -> LabelTree:
    r"""The tree of a file with a pair ``child,parent`` (or child, tab, parent) a line.

    A root may stand alone on a line. Where one does, all roots must: then a parent that is neither a child
    of another label nor such a root is a slip of the pen. Names with commas are quoted as in CSV; empty
    lines and lines that begin with ``#`` are passed over.

    Raises:
        BadDataError: a line that is not a pair, a label with two parents, or an unknown parent; by name.
        ParameterError: a cycle, by name.

    >>> import io
    >>> read_label_tree(io.BytesIO(b"C11,CCAT\nC12,CCAT\n")).parents
    {'C11': 'CCAT', 'C12': 'CCAT'}
    """
    parents: dict[str, str] = {}
    lines: dict[str, int] = {}
    roots: set[str] = set()
    for item in numbered_lines(stream, _MOST_LINE_BYTES):
        if isinstance(item, BadRecord):
            raise _refusal(item.line, item.reason)
        number, line = item
        if not line.strip() or line.startswith(b"#"):
            continue
        try:
            child, parent = _pair(decode(line))
        except RecordError as error:
            raise _refusal(number, error.reason) from error
        if child in lines and (child in roots or parent is None or parents[child] != parent):
            first = "no parent" if child in roots else repr(parents[child])
            second = "no parent" if parent is None else repr(parent)
            raise _refusal(
                number,
                f"the label {quoted(child)} has two parents: {first} in line {lines[child]}, now {second}",
            )
        lines[child] = number
        if parent is None:
            roots.add(child)
        else:
            parents[child] = parent
    for child, parent in parents.items():
        if roots and parent not in lines:
            raise _refusal(
                lines[child], f"the parent {quoted(parent)} is unknown; it is neither a root nor a child"
            )
    return LabelTree(parents)


def _pair(line: str) -> tuple[str, str | None]:
    delimiter = "\t" if "\t" in line else ","
    try:
        names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter, strict=True))]
    except csv.Error as error:
        raise RecordError(f"quotes are out of order: {error}") from error
    if len(names) == 2 and not names[1]:
        names.pop()
    if len(names) > 2:
        raise RecordError(f"a line holds a child and its parent, not {len(names)} names")
    checked = [check_name(name, "a label", "", _MOST_NAME_LENGTH) for name in names]
    return checked[0], checked[1] if len(checked) == 2 else None


def _refusal(line: int, reason: str) -> BadDataError:
    return BadDataError(f"line {line}: {reason}", [BadRecord(line, reason)])
