"""Names of those who have sent requests."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select, union_all
from sqlalchemy.orm import Session

from app.db.tables import ApiKey, User


def names_of(session: Session, ids: Iterable[str | None]) -> dict[str, str]:
    """Return the names of API keys and users by their ids, without those that were deleted."""
    wanted = {id_ for id_ in ids if id_ is not None}
    statement = union_all(
        *(select(table.id, table.name).where(table.id.in_(wanted)) for table in (ApiKey, User))
    )
    names: dict[str, str] = dict(session.execute(statement).all())
    return names
