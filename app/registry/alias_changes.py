"""The history of aliases: who moved an alias when, from which version to which, and why.

A change is recorded in the transaction that makes it. The history outlives its alias, so an alias that is
created again continues the numbers of its revisions, and no revision names two states.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session

from app.db import tables
from app.db.session import Transaction

Reason: TypeAlias = Literal["training", "import", "partial_fit", "put", "rollback", "delete"]
"""The cause of a change of an alias: a promotion by a training, an import or a partial fit, or a request."""


@dataclass(frozen=True)
class Cause:
    """The reason for a change of an alias, and who makes it.

    Attributes:
        reason: what changes the alias.
        key_id: the API key of the request, or of the request that created the training job; None if the
            service requires no key.
        job_id: the training job; None for other reasons.
    """

    reason: Reason
    key_id: str | None = None
    job_id: str | None = None


def record(
    tx: Transaction, row: tables.ModelAlias, *, before: int | None, after: int | None, cause: Cause
) -> None:
    """Record a change of an alias.

    Args:
        tx: the transaction that changes the alias.
        row: the alias, with the revision of this change.
        before: number of the version before the change; None if the alias did not exist.
        after: number of the version after the change; None if the alias is deleted.
        cause: why and by whom the alias is changed.
    """
    tx.session.add(
        tables.AliasChange(
            model=row.model,
            alias=row.alias,
            revision=row.revision,
            from_version=before,
            to_version=after,
            reason=cause.reason,
            key_id=cause.key_id,
            job_id=cause.job_id,
            changed_at=tx.now,
        )
    )


def last_revision(session: Session, model: str, alias: str) -> int:
    """Return the revision of the last recorded change of an alias; 0 if there is none."""
    change = tables.AliasChange
    statement = select(func.max(change.revision)).where(change.model == model, change.alias == alias)
    return session.scalar(statement) or 0


def find_previous_version(session: Session, model: str, alias: str) -> int | None:
    """Return the version that a rollback of an alias goes back to; None if there is none.

    This is the last version before the current one that still exists. What a rollback has left behind does
    not count: after 1, 2, 3 and a rollback to 2, the next rollback goes to 1.
    """
    current = session.scalar(
        select(tables.ModelAlias.version).where(
            tables.ModelAlias.model == model, tables.ModelAlias.alias == alias
        )
    )
    earlier = [version for version in _earlier_versions(session, model, alias) if version != current]
    existing = set(
        session.scalars(select(tables.ModelVersion.version).where(tables.ModelVersion.model == model))
    )
    return next((version for version in earlier if version in existing), None)


def _earlier_versions(session: Session, model: str, alias: str) -> Iterator[int]:
    """Yield the versions that an alias has named before, the last one first."""
    change = tables.AliasChange
    changes = session.execute(
        select(change.from_version, change.to_version, change.reason)
        .where(change.model == model, change.alias == alias)
        .order_by(change.revision.desc())
    ).all()
    restored: int | None = None
    for before, after, reason in changes:
        if restored is not None and after != restored:
            continue  # the changes that a rollback has undone
        restored = after if reason == "rollback" else None
        if restored is None and before is not None:
            yield before


def has_named(session: Session, model: str, alias: str, version: int) -> bool:
    """Whether an alias has named a version, as far as its history goes back."""
    change = tables.AliasChange
    of_alias = (change.model == model) & (change.alias == alias)
    named = (change.from_version == version) | (change.to_version == version)
    return bool(session.scalar(select(exists().where(of_alias, named))))
