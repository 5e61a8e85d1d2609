"""What nobody needs any more is collected: files that no row names, and rows that have had their time.

Every step looks first and deletes after, and deleting what is gone already is no error, so that any number
of workers may collect at the same time, and one that dies in between leaves work and no damage.

A file is written before the row that names it. One that no row names may therefore still be wanted, and is
left alone for a grace, or for as long as the job that wrote it runs.
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
"""How long the answers to requests with an ``Idempotency-Key``, and workers that fell silent, are kept."""

_AT_ONCE = 500
"""Keys that one query asks for."""


@dataclass(frozen=True)
class Collected:
    """What was removed.

    Attributes:
        files: how many files.
        rows: how many rows.
    """

    files: int
    rows: int


def collect(ctx: AppContext) -> Collected:
    """Remove what nobody needs."""
    files = _checkpoints(ctx)
    for folder, wanted in _FOLDERS.items():
        files += _orphans(ctx, folder, wanted)
    experiments.delete_unused_files(ctx)
    collected = Collected(files, _rows(ctx))
    if collected != Collected(0, 0):
        log.info("retention.collected", files=collected.files, rows=collected.rows)
    return collected


def _checkpoints(ctx: AppContext) -> int:
    """Those of jobs that have ended, and those that an earlier attempt left and no row names."""
    found = [file.key for file in ctx.storage.files(checkpoints.FOLDER)]
    doomed = []
    with ctx.db.read() as session:
        for keys in _portions(found):
            jobs = {
                job.id: job
                for job in session.scalars(
                    select(tables.Job).where(tables.Job.id.in_({checkpoints.job_of(key) for key in keys}))
                )
            }
            for key in keys:
                job = jobs.get(checkpoints.job_of(key))
                if job is not None and job.state not in FINISHED:
                    named = job.checkpoint is not None and job.checkpoint["key"] == key
                    if named or checkpoints.fence_of(key) >= job.fence:
                        continue
                doomed.append(key)
    return _remove(ctx, doomed)


def _orphans(ctx: AppContext, folder: str, wanted: Callable[[Session, Collection[str]], set[str]]) -> int:
    doomed: set[str] = set()
    with ctx.db.read() as session:
        before = database_now(session) - timedelta(seconds=ctx.settings.orphan_grace_seconds)
        found = [file.key for file in ctx.storage.files(folder) if file.modified < before]
        for keys in _portions(found):
            doomed |= set(keys) - wanted(session, keys)
    return _remove(ctx, doomed)


def _remove(ctx: AppContext, keys: Collection[str]) -> int:
    for key in keys:
        log.info("retention.removed", key=key)
        ctx.storage.delete(key)
    return len(keys)


def _wanted_uploads(session: Session, keys: Collection[str]) -> set[str]:
    return set(session.scalars(select(tables.Dataset.upload_key).where(tables.Dataset.upload_key.in_(keys))))


def _wanted_datasets(session: Session, keys: Collection[str]) -> set[str]:
    named = select(tables.Dataset.storage_key).where(tables.Dataset.storage_key.in_(keys))
    ingesting = set(
        session.scalars(
            select(tables.Dataset.id).where(
                tables.Dataset.id.in_({_owner(key) for key in keys}), tables.Dataset.state == "ingesting"
            )
        )
    )
    return {*session.scalars(named), *(key for key in keys if _owner(key) in ingesting)}


def _wanted_artifacts(session: Session, keys: Collection[str]) -> set[str]:
    versions = tables.ModelVersion
    named = select(versions.artifact_key).where(versions.artifact_key.in_(keys))
    unfinished = set(
        session.scalars(
            select(tables.Job.id).where(
                tables.Job.id.in_({_owner(key) for key in keys}), tables.Job.state.not_in(FINISHED)
            )
        )
    )
    return {*session.scalars(named), *(key for key in keys if _owner(key) in unfinished)}


def _wanted_experiments(session: Session, keys: Collection[str]) -> set[str]:
    ids = {_owner(key) for key in keys}
    there = set(session.scalars(select(tables.Experiment.id).where(tables.Experiment.id.in_(ids))))
    return {key for key in keys if _owner(key) in there}


def _wanted_scratch(session: Session, keys: Collection[str]) -> set[str]:  # noqa: ARG001 - none is named
    return set()


_FOLDERS: dict[str, Callable[[Session, Collection[str]], set[str]]] = {
    "uploads": _wanted_uploads,
    "datasets": _wanted_datasets,
    "artifacts": _wanted_artifacts,
    "experiments": _wanted_experiments,
    "tmp": _wanted_scratch,
}


def _rows(ctx: AppContext) -> int:
    with ctx.db.write() as tx:
        before = tx.now - KEEP_ROWS
        holding = select(tables.Job.lease_owner).where(tables.Job.lease_owner.is_not(None))
        removed = tx.session.execute(
            delete(tables.IdempotencyRecord)
            .where(tables.IdempotencyRecord.created_at < before)
            .returning(tables.IdempotencyRecord.key)
        ).all()
        forgotten = tx.session.execute(
            delete(tables.Worker)
            .where(tables.Worker.last_seen_at < before, tables.Worker.id.not_in(holding))
            .returning(tables.Worker.id)
        ).all()
        return len(removed) + len(forgotten)


def _owner(key: str) -> str:
    """What a file belongs to: the id with which its name begins.

    >>> _owner("artifacts/job_01.3.covey")
    'job_01'
    """
    return key.split("/", 1)[1].split(".", 1)[0]


def _portions(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), _AT_ONCE):
        yield keys[start : start + _AT_ONCE]
