"""The report of a file, without storing anything."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from models.data.ingestion.ingest import process_file
from models.data.ingestion.report import DatasetReport
from models.data.limits import IngestLimits
from models.data.readers.input_file import open_input_file
from models.data.readers.options import FormatOptions
from models.data.record import Record
from models.labels import LabelTree


def inspect(
    path: Path,
    format: str | None = None,  # noqa: A002 - the contract's own word
    *,
    tree: LabelTree | None = None,
    options: FormatOptions | None = None,
    limits: IngestLimits | None = None,
    max_bad_records: int = 0,
    progress: Callable[[int], None] | None = None,
) -> DatasetReport:
    """Read a file as the service would and report on it.

    Args:
        path: the file, compressed or not.
        format: its format; told from the content without.
        tree: the label tree; label sets are closed under its ancestors.
        options: of the format; its defaults without.
        limits: caps on what a file may hold.
        max_bad_records: go on without this many bad records.
        progress: told how many bytes of the file have been read.

    Raises:
        BadDataError: the file cannot be used; carries the first 20 records at fault.
        ParameterError: an unknown format, or options of another one.
    """
    limits = limits or IngestLimits()
    with path.open("rb") as stream:
        source = open_input_file(stream, Path(tempfile.gettempdir()), limits, progress)
        return process_file(source, format, _DiscardSink(), {}, tree, options, limits, max_bad_records)


class _DiscardSink:
    """Keeps nothing."""

    def append(self, record: Record, id_: str, labels: list[str], /) -> None:
        """Drop an example."""
