"""The registry of file formats: the name, options and reader of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypeAliasType

from models.data.limits import IngestLimits
from models.data.readers.arff import ARFFOptions, read_arff
from models.data.readers.csv import CSVOptions, read_csv
from models.data.readers.eml_zip import EmlZipOptions, read_eml_zip
from models.data.readers.input_file import InputFile
from models.data.readers.jsonl import JSONLOptions, read_jsonl
from models.data.readers.mbox import MboxOptions, read_mbox
from models.data.readers.options import FormatOptionsBase
from models.data.readers.parquet import ParquetOptions, read_parquet
from models.data.readers.svmlight import SVMLightOptions, read_svmlight
from models.data.record import Items

FormatOptions = TypeAliasType(
    "FormatOptions",
    Annotated[
        JSONLOptions
        | CSVOptions
        | SVMLightOptions
        | ARFFOptions
        | ParquetOptions
        | MboxOptions
        | EmlZipOptions,
        Field(discriminator="format", description="Options for reading a file, discriminated by `format`."),
    ],
)
"""The options of any format; the field ``format`` selects the class."""


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        options: the class of its options.
        read: the reader, which yields the records of a file.
    """

    options: type[FormatOptionsBase]
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
"""The formats by their names in the HTTP API."""
