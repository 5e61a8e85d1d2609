"""Reads a file and reports on it without storing anything."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from models.data.files.input_file import open_input_file
from models.data.ingestion.label_changes import LabelChanges
from models.data.ingestion.processing import process_file
from models.data.ingestion.report import DatasetReport
from models.data.limits import IngestLimits
from models.data.options import FormatOptionsBase
from models.data.record import Record
from models.labels import LabelTree


def inspect(
    path: Path,
    format: str | None = None,  # noqa: A002 - the name in the HTTP API
    *,
    tree: LabelTree | None = None,
    options: FormatOptionsBase | None = None,
    limits: IngestLimits | None = None,
    max_bad_records: int = 0,
    changes: LabelChanges | None = None,
    progress: Callable[[int], None] | None = None,
) -> DatasetReport:
    """Read and check a file exactly as ingestion does, and report on it.

    Args:
        path: the file, compressed or not.
        format: its format; None detects the format from the content.
        tree: the label tree; every label set also gets the ancestors of its labels.
        options: options of the format; None means the defaults.
        limits: limits on the content; None means the defaults.
        max_bad_records: number of bad records to skip; one more rejects the file.
        changes: labels to rename, remove or merge; None keeps them as they are.
        progress: receives the number of bytes read so far.

    Raises:
        BadDataError: the file cannot be used; lists the first 20 bad records.
        ParameterError: the format is unknown, or the options belong to another format.
    """
    limits = limits or IngestLimits()
    with path.open("rb") as stream:
        file = open_input_file(stream, Path(tempfile.gettempdir()), limits, progress)
        return process_file(
            file, format, _DiscardSink(), {}, tree, options, limits, max_bad_records, changes
        ).report


class _DiscardSink:
    """Discards the examples."""

    def append(self, record: Record, id_: str, labels: list[str], /) -> None:
        """Discard one example."""
