"""Reads a label tree from a file of ``child,parent`` lines."""

from __future__ import annotations

import csv
from typing import BinaryIO

from models.data.files.lines import decode_utf8, numbered_lines
from models.data.record import RecordError, check_name, quoted
from models.errors import BadDataError, BadRecord
from models.labels import LabelTree

_MAX_LINE_BYTES = 2**16
_MAX_NAME_LENGTH = 512


def read_label_tree(stream: BinaryIO) -> LabelTree:
    r"""Read a label tree from lines ``child,parent``, or child and parent separated by a tab.

    A line can also contain only a root. If any line does, the file must list all roots: a parent that is
    neither a child in another line nor a listed root is an error. Quote names with commas as in CSV. Empty
    lines and lines that begin with ``#`` are skipped.

    Raises:
        BadDataError: a line has no valid pair, a label has two parents, or a parent is unknown; names the
            line and the label.
        ParameterError: the tree has a cycle; names its labels.

    >>> import io
    >>> read_label_tree(io.BytesIO(b"C11,CCAT\nC12,CCAT\n")).parents
    {'C11': 'CCAT', 'C12': 'CCAT'}
    """
    parents: dict[str, str] = {}
    lines: dict[str, int] = {}
    roots: set[str] = set()
    for item in numbered_lines(stream, _MAX_LINE_BYTES):
        if isinstance(item, BadRecord):
            raise _bad_line(item.line, item.reason)
        number, line = item
        if not line.strip() or line.startswith(b"#"):
            continue
        try:
            child, parent = _parse_pair(decode_utf8(line))
        except RecordError as error:
            raise _bad_line(number, error.reason) from error
        if child in lines and (child in roots or parent is None or parents[child] != parent):
            first = "no parent" if child in roots else f"the parent {quoted(parents[child])}"
            second = "no parent" if parent is None else f"the parent {quoted(parent)}"
            raise _bad_line(
                number,
                f"the label {quoted(child)} has {first} in line {lines[child]} and {second} here; "
                "remove one of the lines",
            )
        lines[child] = number
        if parent is None:
            roots.add(child)
        else:
            parents[child] = parent
    for child, parent in parents.items():
        if roots and parent not in lines:
            raise _bad_line(
                lines[child], f"the parent {quoted(parent)} is neither a root nor a child; add a line for it"
            )
    return LabelTree(parents)


def _parse_pair(line: str) -> tuple[str, str | None]:
    delimiter = "\t" if "\t" in line else ","
    try:
        names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter, strict=True))]
    except csv.Error as error:
        raise RecordError(f"invalid quotes: {error}") from error
    if len(names) == 2 and not names[1]:
        names.pop()
    if len(names) > 2:
        raise RecordError(f"a line must contain a child and its parent, not {len(names)} names")
    checked = [check_name(name, "a label", "", _MAX_NAME_LENGTH) for name in names]
    return checked[0], checked[1] if len(checked) == 2 else None


def _bad_line(line: int, reason: str) -> BadDataError:
    return BadDataError(f"line {line}: {reason}", [BadRecord(line, reason)])
