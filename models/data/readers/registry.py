"""The registry of file formats: the name, options and reader of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypeAliasType

from models.data.files.input_file import InputFile
from models.data.limits import IngestLimits
from models.data.options import FormatOptionsBase
from models.data.readers.arff import ARFFOptions, read_arff
from models.data.readers.csv import CSVOptions, read_csv
from models.data.readers.eml_zip import EmlZipOptions, read_eml_zip
from models.data.readers.fasttext import FastTextOptions, read_fasttext
from models.data.readers.jsonl import JSONLOptions, read_jsonl
from models.data.readers.mbox import MboxOptions, read_mbox
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
        | FastTextOptions
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
        suffixes: the suffixes of its files, by which a zip with one of them is recognized; none for a format
            that is itself a zip.
        companions: the suffixes of files that the reader needs in addition to the data.
        is_text: whether its files consist of lines.
    """

    options: type[FormatOptionsBase]
    read: Callable[[InputFile, Any, IngestLimits], Items]
    suffixes: tuple[str, ...]
    companions: tuple[str, ...] = ()
    is_text: bool = True


FORMATS: dict[str, Format] = {
    "jsonl": Format(JSONLOptions, read_jsonl, (".jsonl", ".ndjson", ".jl", ".json")),
    "csv": Format(CSVOptions, read_csv, (".csv", ".tsv", ".tab")),
    "svmlight": Format(SVMLightOptions, read_svmlight, (".svm", ".svmlight", ".libsvm")),
    "arff": Format(ARFFOptions, read_arff, (".arff",), companions=(".xml",)),
    "fasttext": Format(FastTextOptions, read_fasttext, (".fasttext", ".ft")),
    "parquet": Format(ParquetOptions, read_parquet, (".parquet", ".pq"), is_text=False),
    "mbox": Format(MboxOptions, read_mbox, (".mbox", ".mbx")),
    "eml_zip": Format(EmlZipOptions, read_eml_zip, (), is_text=False),
}
"""The formats by their names in the HTTP API."""
