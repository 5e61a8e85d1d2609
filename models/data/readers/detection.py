"""Detects the format of a file from its first bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BufferedReader
from typing import cast

from models.data.readers.input_file import InputFile
from models.data.readers.lines import BOM, reject_utf16
from models.data.readers.registry import FORMATS
from models.data.readers.zip_archive import is_zip
from models.errors import BadDataError

_ARFF = re.compile(rb"(?:\s*(?:%[^\n]*)?\n)*\s*@relation\b", re.IGNORECASE)
_SVMLIGHT = re.compile(rb"[^\s:]*(?:[ \t]+\d+:[-+.\deE]+)+[ \t]*(?:#.*)?")
_ZIP_MEMBER = re.compile(rb"PK\x03\x04.{22}(..)..", re.DOTALL)
_CSV_DELIMITERS = (b",", b";", b"\t", b"|")


def detect_format(file: InputFile) -> str:
    """Return the format of a file. Does not consume any bytes.

    Raises:
        BadDataError: the first bytes match no format.
    """
    start = cast("BufferedReader", file.stream).peek(2**16)
    reject_utf16(start)
    start = start.removeprefix(BOM)
    if start.startswith(b"PAR1"):
        return "parquet"
    if is_zip(file):
        return "arff" if any(name.lower().endswith(b".arff") for name in _member_names(start)) else "eml_zip"
    if start.startswith(b"From "):
        return "mbox"
    if _ARFF.match(start):
        return "arff"
    lines = [line for line in start.splitlines() if line.strip() and not line.startswith(b"#")]
    first = lines[0] if lines else b""
    if first.lstrip().startswith(b"{"):
        return "jsonl"
    if first.lstrip().startswith(b"["):
        raise BadDataError("the file looks like a JSON array; write one JSON object per line instead")
    if _SVMLIGHT.fullmatch(first):
        return "svmlight"
    if any(delimiter in first for delimiter in _CSV_DELIMITERS):
        return "csv"
    raise BadDataError(
        f"the format cannot be detected from the content; set format to one of {', '.join(FORMATS)}"
    )


def _member_names(start: bytes) -> Iterator[bytes]:
    """Yield the names of the first members of a zip, read from their local headers."""
    for header in _ZIP_MEMBER.finditer(start):
        yield start[header.end() : header.end() + int.from_bytes(header[1], "little")]
