"""Delete the versions and data sets that are older than the last ones and that nothing refers to.

They are deleted one after the other, as a client deletes them, so whatever refuses a client protects them
here too: an alias, a router, or a job.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from sqlalchemy import and_, exists, func, select
from sqlalchemy.orm import Session, aliased

from app.context import AppContext
from app.datasets import service as datasets
from app.db import tables
from app.db.session import database_now
from app.errors import Conflict, NotFound
from app.registry import service as registry

Candidate = TypeVar("Candidate")

MAX_DELETIONS = 200
"""Maximum number of versions, and of data sets, that one pass deletes."""

MIN_AGE = timedelta(days=1)
"""Nothing younger is deleted, so that a user who uploads or trains many has time to use them."""


def delete_old_versions(ctx: AppContext, stop: Callable[[], bool]) -> int:
    """Delete old versions of each model. Return their number."""
    if not (last := ctx.settings.keep_versions):
        return 0
    with ctx.db.read() as session:
        candidates = _old_versions(session, last)
    return _delete(candidates, lambda of: registry.delete_version(ctx, of[0], of[1]), stop)


def delete_old_datasets(ctx: AppContext, stop: Callable[[], bool]) -> int:
    """Delete old data sets. Return their number."""
    if not (last := ctx.settings.keep_datasets):
        return 0
    with ctx.db.read() as session:
        candidates = _old_datasets(session, last)
    return _delete(candidates, lambda of: datasets.delete(ctx, of), stop)


def _delete(
    candidates: list[Candidate], delete: Callable[[Candidate], None], stop: Callable[[], bool]
) -> int:
    deleted = 0
    for candidate in candidates:
        if stop() or deleted == MAX_DELETIONS:
            break
        try:
            delete(candidate)
        except (Conflict, NotFound):
            continue  # something uses it now, or a client has deleted it
        deleted += 1
    return deleted


def _old_versions(session: Session, last: int) -> list[tuple[str, int]]:
    """Return the versions with ``last`` newer ones, without those that an alias has or had before."""
    version, change, later = tables.ModelVersion, tables.AliasChange, aliased(tables.AliasChange)
    newest_first = func.row_number().over(partition_by=version.model, order_by=version.version.desc())
    numbered = select(version.model, version.version, newest_first.label("place")).subquery()
    has_alias = exists().where(
        tables.ModelAlias.model == version.model, tables.ModelAlias.version == version.version
    )
    can_roll_back_to = exists().where(
        change.model == version.model,
        change.from_version == version.version,
        ~exists().where(
            later.model == change.model, later.alias == change.alias, later.revision > change.revision
        ),
    )
    rows = session.execute(
        select(version.model, version.version)
        .join(numbered, and_(numbered.c.model == version.model, numbered.c.version == version.version))
        .where(
            version.created_at < database_now(session) - MIN_AGE,
            numbered.c.place > last,
            ~has_alias,
            ~can_roll_back_to,
        )
        .order_by(version.created_at)
    )
    return [(model, number) for model, number in rows]


def _old_datasets(session: Session, last: int) -> list[str]:
    """Return the data sets with at least ``last`` newer ones, without those that a result refers to."""
    dataset = tables.Dataset
    kept = session.scalars(select(dataset.id).order_by(dataset.id.desc()).limit(last)).all()
    if len(kept) < last:
        return []
    users = (tables.ModelVersion.dataset_id, tables.Evaluation.dataset_id, tables.Experiment.dataset_id)
    return list(
        session.scalars(
            select(dataset.id)
            .where(
                dataset.id < kept[-1],
                dataset.created_at < database_now(session) - MIN_AGE,
                *(~exists().where(user == dataset.id) for user in users),
            )
            .order_by(dataset.id)
        )
    )
