"""The formats by name, their options and their readers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from typing import Annotated, Any, TypeAlias, cast

from pydantic import Field

from models.data.limits import IngestLimits
from models.data.readers.arff import ARFFOptions, read_arff
from models.data.readers.csv import CSVOptions, read_csv
from models.data.readers.eml_zip import EmlZipOptions, read_eml_zip
from models.data.readers.input_file import InputFile
from models.data.readers.jsonl import JSONLOptions, read_jsonl
from models.data.readers.lines import BOM, reject_utf16
from models.data.readers.mbox import MboxOptions, read_mbox
from models.data.readers.options import FormatOptions
from models.data.readers.parquet import ParquetOptions, read_parquet
from models.data.readers.svmlight import SVMLightOptions, read_svmlight
from models.data.readers.zip_archive import is_zip
from models.data.record import Items
from models.errors import BadDataError

OptionsUnion: TypeAlias = Annotated[
    JSONLOptions | CSVOptions | SVMLightOptions | ARFFOptions | ParquetOptions | MboxOptions | EmlZipOptions,
    Field(discriminator="format"),
]
"""The options of any format, told apart by ``format``."""


@dataclass(frozen=True)
class Format:
    """How a format is read.

    Attributes:
        options: the type of its options.
        read: yields the records of a file.
    """

    options: type[FormatOptions]
    read: Callable[[InputFile, Any, IngestLimits], Items]


FORMATS: dict[str, Format] = {
    "jsonl": Format(JSONLOptions, read_jsonl),
    "csv": Format(CSVOptions, read_csv),
    "svmlight": Format(SVMLightOptions, read_svmlight),
    "arff": Format(ARFFOptions, read_arff),
    "parquet": Format(ParquetOptions, read_parquet),
    "mbox": Format(MboxOptions, read_mbox),
    "eml_zip": Format(EmlZipOptions, read_eml_zip),
}
"""The formats by the names of the contract."""

_ARFF = re.compile(rb"(?:\s*(?:%[^\n]*)?\n)*\s*@relation\b", re.IGNORECASE)
_SVMLIGHT = re.compile(rb"[^\s:]*(?:[ \t]+\d+:[-+.\deE]+)+[ \t]*(?:#.*)?")
_MEMBER = re.compile(rb"PK\x03\x04.{22}(..)..", re.DOTALL)


def detect(source: InputFile) -> str:
    """The format of a file by its first bytes, which are left to be read.

    Raises:
        BadDataError: they look like none.
    """
    start = cast("BufferedReader", source.stream).peek(2**16)
    reject_utf16(start)
    start = start.removeprefix(BOM)
    if start.startswith(b"PAR1"):
        return "parquet"
    if is_zip(source):
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
        raise BadDataError("the file looks like one JSON array; write one object a line instead")
    if _SVMLIGHT.fullmatch(first):
        return "svmlight"
    if any(delimiter in first for delimiter in (b",", b";", b"\t", b"|")):
        return "csv"
    raise BadDataError(f"the format cannot be told from the content; name one of {', '.join(FORMATS)}")


def _member_names(start: bytes) -> Iterator[bytes]:
    """The names of the first members of a zip, from the heads before their contents."""
    for head in _MEMBER.finditer(start):
        yield start[head.end() : head.end() + int.from_bytes(head[1], "little")]
