"""The ingestion job: reads and checks the content of a data set and stores it as a Parquet file."""

from __future__ import annotations

import hashlib
from io import BufferedReader
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import insert

from app.context import AppContext
from app.db import tables
from app.db.session import Transaction
from app.db.tables import Job
from app.jobs import queue
from app.jobs.progress import ProgressReporter
from app.jobs.queue import Claim
from app.jobs.retry import write_with_retry
from app.settings import Settings
from models.data.ingestion.ingest import ingest
from models.data.ingestion.label_changes import LabelChanges
from models.data.limits import IngestLimits
from models.data.readers.registry import FormatOptions
from models.errors import BadDataError
from models.labels import LabelTree

OPTIONS: TypeAdapter[FormatOptions] = TypeAdapter(FormatOptions)


class Ingestion:
    """The job kind ``ingest``."""

    def run(self, ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
        """Read the content and set the data set to ready.

        Raises:
            BadDataError: the content cannot be read; the error has the bad records.
        """
        assert claim.dataset_id is not None, "an ingestion job has a data set"  # noqa: S101
        with ctx.db.read() as session:
            row = session.get_one(tables.Dataset, claim.dataset_id)
        assert row.upload_key is not None, "the content is attached before the job is enqueued"  # noqa: S101
        content = ctx.storage.local(row.upload_key)
        size = content.stat().st_size
        key = f"datasets/{row.id}.{claim.fence}.parquet"
        with ctx.storage.temporary_file(".parquet") as target:
            with content.open("rb") as stream:
                _check_compression(stream, row.upload_encoding)
                ingested = ingest(
                    stream,
                    row.format,
                    target,
                    tree=LabelTree(row.label_tree) if row.label_tree else None,
                    options=_format_options(row),
                    limits=ingest_limits(ctx.settings),
                    max_bad_records=int(row.options.get("max_bad_records", 0)),
                    changes=_label_changes(row),
                    # Some formats read parts of the file twice.
                    progress=lambda done: report("reading", min(done, size), size, "bytes"),
                )
            with content.open("rb") as stream:
                sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            ctx.storage.put(key, target)
        summary = ingested.to_json()
        counts = summary.pop("label_counts")
        parents = summary.pop("label_tree")

        def finish(tx: Transaction) -> None:
            queue.finish(tx, claim, "succeeded")
            fresh = tx.session.get_one(tables.Dataset, row.id)
            fresh.state = "ready"
            fresh.ready_at = tx.now
            fresh.storage_key = key
            fresh.sha256 = sha256
            fresh.size_bytes = size
            fresh.report = summary
            fresh.label_tree = parents or fresh.label_tree
            fresh.upload_key = None
            labels = [
                {
                    "dataset_id": row.id,
                    "position": position,
                    "label": label,
                    "count": count,
                    "parent": parents.get(label),
                }
                for position, (label, count) in enumerate(counts.items())
            ]
            if labels:
                tx.session.execute(insert(tables.DatasetLabel), labels)

        write_with_retry(ctx.db, finish)
        # The Parquet file has all examples, so the upload is no longer needed.
        ctx.deletion.delete([row.upload_key])

    def on_failure(self, tx: Transaction, job: Job | Claim, error: dict[str, Any]) -> None:
        """Set the data set to failed, with the error. It accepts other content."""
        row = tx.session.get(tables.Dataset, job.dataset_id, with_for_update=True)
        if row is not None:
            row.state = "failed"
            row.error = error


def _format_options(row: tables.Dataset) -> FormatOptions | None:
    options = row.options.get("format")
    return None if options is None else OPTIONS.validate_python(options)


def _label_changes(row: tables.Dataset) -> LabelChanges | None:
    changes = row.options.get("label_changes")
    if changes is None:
        return None
    return LabelChanges(changes["rename"], frozenset(changes["remove"]), changes["merge_similar"])


def ingest_limits(settings: Settings) -> IngestLimits:
    """Return the limits on the content of a data set from the settings."""
    return IngestLimits(
        text_chars=settings.max_text_chars,
        record_bytes=settings.max_record_bytes,
        examples=settings.max_examples,
        labels=settings.max_labels,
        tree_depth=settings.max_tree_depth,
        features=settings.max_features,
        decompressed_bytes=settings.max_content_bytes,
        compression_ratio=settings.max_compression_ratio,
    )


_MAGIC_BYTES = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}


def _check_compression(stream: BufferedReader, encoding: str | None) -> None:
    """Check that content has the encoding of its header. Readers detect the compression from the content."""
    if encoding is not None and not stream.peek(4).startswith(_MAGIC_BYTES[encoding]):
        raise BadDataError(
            f"the upload had the header Content-Encoding: {encoding}, but its content is not {encoding}; "
            "omit the header"
        )
