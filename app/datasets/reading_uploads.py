"""Read the uploaded content of a data set."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from app.context import AppContext
from app.db import tables
from app.jobs.progress import ProgressReporter
from app.settings import Settings
from models.data.ingestion.ingest import ingest
from models.data.ingestion.label_changes import LabelChanges
from models.data.ingestion.report import DatasetReport
from models.data.limits import IngestLimits
from models.data.readers.registry import FormatOptions
from models.data.record import Items
from models.errors import BadDataError
from models.labels import LabelTree

CONTENT_FACTOR = 4
"""After decompression, the content of a data set can be this many times as large as an upload."""

OPTIONS: TypeAdapter[FormatOptions] = TypeAdapter(FormatOptions)


@dataclass(frozen=True)
class DatasetContent:
    """The content of a data set that has been stored as a Parquet file.

    Attributes:
        report: its counts and warnings.
        sha256: SHA-256 of the content, in hexadecimal.
        size_bytes: size of the content.
        lineage: what the data set was made from, as the API returns it; None for an upload.
    """

    report: DatasetReport
    sha256: str
    size_bytes: int
    lineage: dict[str, Any] | None = None


def read_upload(
    ctx: AppContext, row: tables.Dataset, target: Path, report: ProgressReporter
) -> DatasetContent:
    """Read the uploaded content of a data set.

    Args:
        ctx: the application context.
        row: the data set.
        target: the Parquet file to create.
        report: receives the progress.

    Raises:
        BadDataError: the content cannot be read; the error has the bad records.
    """
    content = _content(ctx, row)
    size = content.stat().st_size
    # Some formats read parts of the file twice.
    ingested = ingest_upload(
        ctx, row, target, progress=lambda done: report("reading", min(done, size), size, "bytes")
    )
    with content.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    return DatasetContent(ingested, sha256, size)


def ingest_upload(
    ctx: AppContext,
    row: tables.Dataset,
    target: Path,
    *,
    progress: Callable[[int], None] | None = None,
    transform: Callable[[Items], Items] | None = None,
) -> DatasetReport:
    """Ingest the uploaded file of a data set with its options.

    Args:
        ctx: the application context.
        row: the data set.
        target: the Parquet file to create.
        progress: receives the number of bytes so far.
        transform: changes, adds and omits records.

    Raises:
        BadDataError: the content cannot be read; the error has the bad records.
    """
    with _content(ctx, row).open("rb") as stream:
        _check_compression(stream, row.upload_encoding)
        return ingest(
            stream,
            row.format,
            target,
            tree=label_tree(row),
            options=_format_options(row),
            limits=ingest_limits(ctx.settings),
            max_bad_records=int(row.options.get("max_bad_records", 0)),
            changes=label_changes(row),
            progress=progress,
            transform=transform,
        )


def _content(ctx: AppContext, row: tables.Dataset) -> Path:
    assert row.upload_key is not None, "the content is attached before the job is enqueued"  # noqa: S101
    return ctx.storage.local(row.upload_key)


def label_tree(row: tables.Dataset) -> LabelTree | None:
    """Return the label tree of a data set; None if it has none."""
    return LabelTree(row.label_tree) if row.label_tree else None


def _format_options(row: tables.Dataset) -> FormatOptions | None:
    options = row.options.get("format")
    return None if options is None else OPTIONS.validate_python(options)


def label_changes(row: tables.Dataset) -> LabelChanges | None:
    """Return the requested changes of labels; None if there are none."""
    changes = row.options.get("label_changes")
    if changes is None:
        return None
    return LabelChanges(changes["rename"], frozenset(changes["remove"]), changes["merge_similar"])


def ingest_limits(settings: Settings) -> IngestLimits:
    """Return the limits on the content of a data set from the settings."""
    return IngestLimits(
        text_chars=settings.max_text_chars,
        examples=settings.max_examples,
        labels=settings.max_labels,
        decompressed_bytes=settings.max_upload_bytes * CONTENT_FACTOR,
    )


_MAGIC_BYTES = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}


def _check_compression(stream: BufferedReader, encoding: str | None) -> None:
    """Check that content has the encoding of its header. Readers detect the compression from the content."""
    if encoding is not None and not stream.peek(4).startswith(_MAGIC_BYTES[encoding]):
        raise BadDataError(
            f"the upload had the header Content-Encoding: {encoding}, but its content is not {encoding}; "
            "omit the header"
        )
