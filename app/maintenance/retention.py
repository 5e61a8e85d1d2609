"""Deletes data that is no longer needed: files that no row references, and expired rows.

Each step first reads and then deletes, and deleting a missing file is no error. So any number of workers can
do this at the same time, and a worker that dies in between leaves work for the others, but no damage.

A file is written before the row that references it. An unreferenced file may therefore still be needed. It is
kept for a grace period, and as long as the job that wrote it is running.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.context import AppContext
from app.db import tables
from app.db.session import database_now
from app.experiments import completion as experiments
from app.jobs import checkpoints
from app.jobs.queue import FINISHED

log = structlog.get_logger()

KEEP_ROWS = timedelta(days=1)
"""Age at which idempotency records are deleted, and time since the last heartbeat at which workers are."""

BATCH_SIZE = 500
"""Maximum number of keys in one query."""


@dataclass(frozen=True)
class RetentionResult:
    """What was deleted.

    Attributes:
        files: number of files.
        rows: number of rows.
    """

    files: int
    rows: int


def apply_retention(ctx: AppContext) -> RetentionResult:
    """Delete files and rows that are no longer needed."""
    files = _delete_checkpoints(ctx)
    for folder, referenced_keys in _FOLDERS.items():
        files += _delete_orphans(ctx, folder, referenced_keys)
    experiments.delete_unused_files(ctx)
    result = RetentionResult(files, _delete_rows(ctx))
    if result != RetentionResult(0, 0):
        log.info("retention.applied", files=result.files, rows=result.rows)
    return result


def _delete_checkpoints(ctx: AppContext) -> int:
    """Delete checkpoints of finished jobs, and unreferenced checkpoints of earlier attempts."""
    all_keys = [file.key for file in ctx.storage.files(checkpoints.FOLDER)]
    to_delete = []
    with ctx.db.read() as session:
        for keys in _batches(all_keys):
            jobs = {
                job.id: job
                for job in session.scalars(
                    select(tables.Job).where(tables.Job.id.in_({checkpoints.job_of(key) for key in keys}))
                )
            }
            for key in keys:
                job = jobs.get(checkpoints.job_of(key))
                if job is not None and job.state not in FINISHED:
                    is_referenced = job.checkpoint is not None and job.checkpoint["key"] == key
                    if is_referenced or checkpoints.fence_of(key) >= job.fence:
                        continue
                to_delete.append(key)
    return _delete_files(ctx, to_delete)


def _delete_orphans(
    ctx: AppContext, folder: str, referenced_keys: Callable[[Session, Collection[str]], set[str]]
) -> int:
    """Delete the files of a folder that are not referenced and are older than the grace period."""
    to_delete: set[str] = set()
    with ctx.db.read() as session:
        before = database_now(session) - timedelta(seconds=ctx.settings.orphan_grace_seconds)
        old_keys = [file.key for file in ctx.storage.files(folder) if file.modified < before]
        for keys in _batches(old_keys):
            to_delete |= set(keys) - referenced_keys(session, keys)
    return _delete_files(ctx, to_delete)


def _delete_files(ctx: AppContext, keys: Collection[str]) -> int:
    for key in keys:
        log.info("retention.file_deleted", key=key)
        ctx.storage.delete(key)
    return len(keys)


def _referenced_uploads(session: Session, keys: Collection[str]) -> set[str]:
    return set(session.scalars(select(tables.Dataset.upload_key).where(tables.Dataset.upload_key.in_(keys))))


def _referenced_datasets(session: Session, keys: Collection[str]) -> set[str]:
    referenced = select(tables.Dataset.storage_key).where(tables.Dataset.storage_key.in_(keys))
    ingesting = set(
        session.scalars(
            select(tables.Dataset.id).where(
                tables.Dataset.id.in_({_owner(key) for key in keys}), tables.Dataset.state == "ingesting"
            )
        )
    )
    return {*session.scalars(referenced), *(key for key in keys if _owner(key) in ingesting)}


def _referenced_artifacts(session: Session, keys: Collection[str]) -> set[str]:
    versions = tables.ModelVersion
    referenced = select(versions.artifact_key).where(versions.artifact_key.in_(keys))
    unfinished = set(
        session.scalars(
            select(tables.Job.id).where(
                tables.Job.id.in_({_owner(key) for key in keys}), tables.Job.state.not_in(FINISHED)
            )
        )
    )
    return {*session.scalars(referenced), *(key for key in keys if _owner(key) in unfinished)}


def _referenced_experiments(session: Session, keys: Collection[str]) -> set[str]:
    ids = {_owner(key) for key in keys}
    existing = set(session.scalars(select(tables.Experiment.id).where(tables.Experiment.id.in_(ids))))
    return {key for key in keys if _owner(key) in existing}


def _no_references(session: Session, keys: Collection[str]) -> set[str]:  # noqa: ARG001 - same signature
    return set()


_FOLDERS: dict[str, Callable[[Session, Collection[str]], set[str]]] = {
    "uploads": _referenced_uploads,
    "datasets": _referenced_datasets,
    "artifacts": _referenced_artifacts,
    "experiments": _referenced_experiments,
    "tmp": _no_references,
}


def _delete_rows(ctx: AppContext) -> int:
    """Delete old idempotency records and workers. A worker that still holds a lease is kept."""
    with ctx.db.write() as tx:
        before = tx.now - KEEP_ROWS
        lease_owners = select(tables.Job.lease_owner).where(tables.Job.lease_owner.is_not(None))
        records = tx.session.execute(
            delete(tables.IdempotencyRecord)
            .where(tables.IdempotencyRecord.created_at < before)
            .returning(tables.IdempotencyRecord.key)
        ).all()
        workers = tx.session.execute(
            delete(tables.Worker)
            .where(tables.Worker.last_seen_at < before, tables.Worker.id.not_in(lease_owners))
            .returning(tables.Worker.id)
        ).all()
        return len(records) + len(workers)


def _owner(key: str) -> str:
    """Return the id with which a file's name begins: of a data set, job, experiment or request.

    >>> _owner("artifacts/job_01.3.covey")
    'job_01'
    """
    return key.split("/", 1)[1].split(".", 1)[0]


def _batches(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), BATCH_SIZE):
        yield keys[start : start + BATCH_SIZE]
