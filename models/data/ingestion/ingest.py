"""Reads a file into a stored data set with a report, in one pass and in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from models.data.files.input_file import open_input_file
from models.data.ingestion.label_changes import LabelChanges
from models.data.ingestion.processing import ProcessedFile, RecordProcessor, process_file
from models.data.ingestion.report import DatasetReport
from models.data.limits import IngestLimits
from models.data.options import FormatOptionsBase
from models.data.record import Item, Items
from models.data.store import DatasetWriter
from models.labels import LabelTree


def ingest(
    stream: BinaryIO,
    format: str | None,  # noqa: A002 - the name in the HTTP API
    target: Path,
    *,
    tree: LabelTree | None = None,
    options: FormatOptionsBase | None = None,
    limits: IngestLimits | None = None,
    max_bad_records: int = 0,
    changes: LabelChanges | None = None,
    progress: Callable[[int], None] | None = None,
    transform: Callable[[Items], Items] | None = None,
) -> DatasetReport:
    """Read a file into a stored data set.

    The stream is read once; gzip and zstd are decompressed on the fly. The target is created only after the
    whole file has been read and accepted.

    Args:
        stream: the bytes of the file.
        format: its format, a key of ``FORMATS``; None detects the format from the content.
        target: the Parquet file to create, for :class:`~models.data.store.StoredExamples`.
        tree: the label tree; every label set also gets the ancestors of its labels.
        options: options of the format; None means the defaults.
        limits: limits on the content; None means the defaults.
        max_bad_records: number of bad records to skip; one more rejects the file.
        changes: labels to rename, remove or merge; None keeps them as they are.
        progress: receives the number of bytes read so far, after every few hundred kilobytes; an exception
            that it raises stops the ingestion.
        transform: changes, adds and omits records before they are checked; None keeps them as they are.

    Returns:
        The counts and warnings of the data set.

    Raises:
        BadDataError: the file cannot be used; lists the first 20 bad records.
        ParameterError: the format is unknown, or the options belong to another format.
    """
    limits = limits or IngestLimits()
    features: dict[str, int] = {}
    file = open_input_file(stream, target.parent, limits, progress)
    with DatasetWriter(target, features) as writer:
        return _commit(
            writer,
            process_file(
                file, format, writer, features, tree, options, limits, max_bad_records, changes, transform
            ),
        )


def store_items(
    items: Iterable[Item],
    target: Path,
    *,
    tree: LabelTree | None = None,
    limits: IngestLimits | None = None,
    max_bad_records: int = 0,
    changes: LabelChanges | None = None,
) -> DatasetReport:
    """Write records that do not come from one file to a stored data set.

    Args:
        items: the records, and declarations before them.
        target: the Parquet file to create.
        tree: the label tree; every label set also gets the ancestors of its labels.
        limits: limits on the content; None means the defaults.
        max_bad_records: number of bad records to skip; one more rejects all.
        changes: labels to rename, remove or merge; None keeps them as they are.

    Raises:
        BadDataError: the records cannot be used; lists the first 20 bad records.
    """
    features: dict[str, int] = {}
    with DatasetWriter(target, features) as writer:
        processor = RecordProcessor(
            writer, features, tree, limits or IngestLimits(), max_bad_records, changes
        )
        processor.process(items)
        return _commit(writer, processor.result())


def _commit(writer: DatasetWriter, processed: ProcessedFile) -> DatasetReport:
    report = processed.report
    writer.commit(
        labels=list(report.label_counts), parents=report.label_tree, final_names=processed.final_names
    )
    return report
