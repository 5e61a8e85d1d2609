"""The ingestion job: stores the content of a data set, or what it is made from, as a Parquet file."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert

from app.context import AppContext
from app.datasets import service
from app.datasets.reading_feedback import ReadKeptMessage, read_feedback
from app.datasets.reading_sources import read_sources
from app.datasets.reading_uploads import read_upload
from app.db import tables
from app.db.session import Transaction
from app.db.tables import Job
from app.jobs import queue
from app.jobs.progress import ProgressReporter
from app.jobs.queue import Claim
from app.jobs.retry import write_with_retry
from app.jobs.work import Work


class Ingestion(Work):
    """The job kind ``ingest``.

    Args:
        read_kept: reads the message of a decision; None if the message is not kept.
    """

    def __init__(self, read_kept: ReadKeptMessage) -> None:
        self._read_kept = read_kept

    def run(self, ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
        """Read the content, or what the data set is made from, and set the data set to ready.

        Raises:
            BadDataError: the content cannot be read; the error has the bad records.
        """
        assert claim.dataset_id is not None, "an ingestion job has a data set"  # noqa: S101
        with ctx.db.read() as session:
            row = session.get_one(tables.Dataset, claim.dataset_id)
        key = f"datasets/{row.id}.{claim.fence}.parquet"
        with ctx.storage.temporary_file(".parquet") as target:
            if row.options.get("from_feedback") is not None:
                content = read_feedback(ctx, row, target, report, self._read_kept)
            else:
                read = read_upload if row.lineage is None else read_sources
                content = read(ctx, row, target, report)
            ctx.storage.put(key, target)
        # The Parquet file has all examples. An upload is only needed to read it again in another way.
        is_kept = row.uploaded_at is not None
        summary = content.report.to_json()
        counts = summary.pop("label_counts")
        parents = summary.pop("label_tree")

        def finish(tx: Transaction) -> None:
            queue.finish(tx, claim, "succeeded")
            fresh = tx.session.get_one(tables.Dataset, row.id)
            fresh.state = "ready"
            fresh.ready_at = tx.now
            fresh.storage_key = key
            fresh.sha256 = content.sha256
            fresh.size_bytes = content.size_bytes
            fresh.report = summary
            fresh.format = fresh.format or content.report.format
            fresh.label_tree = parents or fresh.label_tree
            fresh.lineage = content.lineage
            if not is_kept:
                fresh.upload_key = None
            service.unlock_sources(tx, row.id)
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
        if row.upload_key is not None and not is_kept:
            ctx.deletion.delete([row.upload_key])

    def on_failure(self, tx: Transaction, job: Job | Claim, error: dict[str, Any]) -> None:
        """Set the data set to failed, with the error. It accepts other content if content was uploaded."""
        row = tx.session.get(tables.Dataset, job.dataset_id, with_for_update=True)
        if row is not None:
            service.unlock_sources(tx, row.id)
            row.state = "failed"
            row.error = error
