"""Finds the decisions with feedback from which a data set is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select

from app.datasets.schemas import DatasetCreate
from app.db import tables
from app.db.session import Database, Transaction
from app.http.errors import NotFound

PAGE_SIZE = 1000
"""Number of rows that are read at a time."""


def selection(tx: Transaction, body: DatasetCreate) -> dict[str, Any] | None:
    """Return which decisions a request selects, as JSON; None if it selects none.

    The last time is fixed, so that feedback that arrives meanwhile belongs to the next data set.

    Raises:
        NotFound: there is no such router.
    """
    request = body.from_feedback
    if request is None:
        return None
    router = tx.session.get(tables.Router, request.router)
    if router is None:
        message = f"there is no router {request.router}"
        raise NotFound(message, errors=[("/from_feedback/router", message)])
    times = {"from": request.from_, "to": request.to or tx.now}
    return {
        "router": request.router,
        "router_id": router.id,
        **{name: time.isoformat() for name, time in times.items() if time is not None},
        **({"feedback": request.feedback} if request.feedback else {}),
    }


def find(db: Database, request: dict[str, Any]) -> Iterator[Sequence[Row[Any]]]:
    """Yield pages of the selected decisions.

    Args:
        db: the database.
        request: the selection.

    Yields:
        Rows of ``id``, ``message_id``, ``message_key``, ``feedback`` and ``feedback_at``.
    """
    row = tables.Decision
    start, end = (
        datetime.fromisoformat(request[name]) if name in request else None for name in ("from", "to")
    )
    states = [request["feedback"]] if "feedback" in request else ["agreed", "corrected"]
    for state in states:
        after = ""
        while True:
            statement = (
                select(row.id, row.message_id, row.message_key, row.feedback, row.feedback_at)
                .where(row.router_id == request["router_id"], row.feedback_state == state, row.id > after)
                .order_by(row.id)
                .limit(PAGE_SIZE)
            )
            with db.read() as session:
                page = session.execute(statement).all()
            if not page:
                break
            after = page[-1].id
            yield [
                each
                for each in page
                if (start is None or each.feedback_at >= start) and (end is None or each.feedback_at < end)
            ]


def rows(db: Database, ids: Sequence[str]) -> list[tables.Decision]:
    """Return decisions by their ids, in this order. Decisions that were deleted are omitted."""
    with db.read() as session:
        found = {
            row.id: row for row in session.scalars(select(tables.Decision).where(tables.Decision.id.in_(ids)))
        }
    return [found[id_] for id_ in ids if id_ in found]
