"""Delete files that no row needs.

A file is written before the row that references it. An unreferenced file may therefore still be needed. It is
kept for a grace period, by the clock of the storage, and as long as the job that wrote it is running.
Deleting a missing file is no error, so any number of workers can do this at the same time.

Kept messages are many files, in a folder for each day. Retention deletes them with their rows, so only those
without a row are looked for: in the last two days and in one older day of each pass.

The storage can be slow, so no transaction is open while files are listed or deleted: each batch of names is
checked in a short session of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.context import AppContext
from app.db import tables
from app.db.backup_lock import are_files_locked
from app.experiments import shared_files
from app.jobs import checkpoints
from app.jobs.queue import FINISHED
from app.routing import kept_messages
from app.storage import FileInfo

log = structlog.get_logger()

GRACE = 12
"""An unreferenced file is kept for this many times the period of deletions: an hour by default."""

BATCH_SIZE = 500
"""Maximum number of keys in one query."""

Needed = Callable[[Session, Collection[str]], set[str]]
"""Returns which of the keys are needed."""


def delete_unused(ctx: AppContext, stop: Callable[[], bool]) -> int:
    """Delete the files that no row needs. Return their number."""
    now = ctx.storage.check().now
    old = now - timedelta(seconds=ctx.settings.collect_seconds * GRACE)
    deleted = 0
    for folder, needed in _FOLDERS_OF_RUNNING_WORK.items():
        deleted += _delete(ctx, stop, ctx.storage.files(folder), needed)
    folders = {**_FOLDERS, **dict.fromkeys(_days_to_search(ctx, now), _needed_messages)}
    for folder, needed in folders.items():
        files = (file for file in ctx.storage.files(folder) if file.modified < old)
        deleted += _delete(ctx, stop, files, needed)
    return deleted


def _days_to_search(ctx: AppContext, now: datetime) -> list[str]:
    """Return the last two folders of messages, and an older one, so that each is searched in its turn."""
    days = ctx.storage.days(kept_messages.FOLDER)
    older = days[:-2]
    turn = int(now.timestamp() // ctx.settings.collect_seconds)
    return [*days[-2:], *older[turn % len(older) :][:1]] if older else days


def _delete(ctx: AppContext, stop: Callable[[], bool], files: Iterable[FileInfo], needed: Needed) -> int:
    deleted = 0
    for keys in _batches(file.key for file in files):
        if stop():
            break
        with ctx.db.read() as session:
            needed_keys = needed(session, keys)
            if are_files_locked(session):
                log.info("retention.files_locked")
                break
        unused = [key for key in keys if key not in needed_keys]
        for key in unused:
            log.info("retention.file_deleted", key=key)
            ctx.storage.delete(key)
        deleted += len(unused)
    return deleted


def _needed_checkpoints(session: Session, keys: Collection[str]) -> set[str]:
    """Return the checkpoints of unfinished jobs, except unreferenced ones of earlier attempts."""
    jobs = {
        job.id: job
        for job in session.execute(
            select(tables.Job.id, tables.Job.checkpoint, tables.Job.fence).where(
                tables.Job.id.in_({checkpoints.job_of(key) for key in keys}),
                tables.Job.state.not_in(FINISHED),
            )
        )
    }
    return {
        key
        for key in keys
        if (job := jobs.get(checkpoints.job_of(key))) is not None
        and (
            (job.checkpoint is not None and job.checkpoint["key"] == key)
            or checkpoints.fence_of(key) >= job.fence
        )
    }


def _needed_shared(session: Session, keys: Collection[str]) -> set[str]:
    """Return the files that the cells of running experiments share."""
    experiments = tables.Experiment
    running = set(
        session.scalars(
            select(experiments.id).where(
                experiments.id.in_({_owner(key) for key in keys}), experiments.state == "running"
            )
        )
    )
    return {key for key in keys if _owner(key) in running}


def _needed_uploads(session: Session, keys: Collection[str]) -> set[str]:
    return set(session.scalars(select(tables.Dataset.upload_key).where(tables.Dataset.upload_key.in_(keys))))


def _needed_datasets(session: Session, keys: Collection[str]) -> set[str]:
    referenced = select(tables.Dataset.storage_key).where(tables.Dataset.storage_key.in_(keys))
    ingesting = set(
        session.scalars(
            select(tables.Dataset.id).where(
                tables.Dataset.id.in_({_owner(key) for key in keys}), tables.Dataset.state == "ingesting"
            )
        )
    )
    return {*session.scalars(referenced), *(key for key in keys if _owner(key) in ingesting)}


def _needed_artifacts(session: Session, keys: Collection[str]) -> set[str]:
    versions = tables.ModelVersion
    referenced = select(versions.artifact_key).where(versions.artifact_key.in_(keys))
    return {*session.scalars(referenced), *_of_unfinished_jobs(session, keys)}


def _needed_predictions(session: Session, keys: Collection[str]) -> set[str]:
    predictions = tables.BatchPrediction
    referenced = select(predictions.result_key).where(predictions.result_key.in_(keys))
    return {*session.scalars(referenced), *_of_unfinished_jobs(session, keys)}


def _of_unfinished_jobs(session: Session, keys: Collection[str]) -> set[str]:
    """Return the files whose names begin with the id of an unfinished job."""
    unfinished = set(
        session.scalars(
            select(tables.Job.id).where(
                tables.Job.id.in_({_owner(key) for key in keys}), tables.Job.state.not_in(FINISHED)
            )
        )
    )
    return {key for key in keys if _owner(key) in unfinished}


def _needed_experiments(session: Session, keys: Collection[str]) -> set[str]:
    ids = {_owner(key) for key in keys}
    existing = set(session.scalars(select(tables.Experiment.id).where(tables.Experiment.id.in_(ids))))
    return {key for key in keys if _owner(key) in existing}


def _needed_messages(session: Session, keys: Collection[str]) -> set[str]:
    kept = tables.Decision.kept_message
    return {key for key in session.scalars(select(kept).where(kept.in_(keys))) if key is not None}


def _none_needed(session: Session, keys: Collection[str]) -> set[str]:  # noqa: ARG001 - same signature
    return set()


_FOLDERS_OF_RUNNING_WORK: dict[str, Needed] = {
    checkpoints.FOLDER: _needed_checkpoints,
    shared_files.FOLDER: _needed_shared,
}
"""Folders without a grace period: their files are written by work whose row exists, and says that it runs."""

_FOLDERS: dict[str, Needed] = {
    "uploads": _needed_uploads,
    "datasets": _needed_datasets,
    "artifacts": _needed_artifacts,
    "predictions": _needed_predictions,
    "experiments": _needed_experiments,
    "tmp": _none_needed,
}


def _owner(key: str) -> str:
    """Return the id with which a file's name begins: of a data set, job, experiment or request.

    >>> _owner("artifacts/job_01.3.covey")
    'job_01'
    """
    return key.split("/", 1)[1].split(".", 1)[0]


def _batches(keys: Iterator[str]) -> Iterator[list[str]]:
    while batch := list(islice(keys, BATCH_SIZE)):
        yield batch
