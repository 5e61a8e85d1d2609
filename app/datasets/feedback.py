"""Find the decisions with feedback from which a data set is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, select

from app.datasets.schemas import DatasetCreate
from app.db import tables
from app.db.session import Database, Transaction
from app.errors import NotFound

PAGE_SIZE = 1000
"""Number of rows that are read at a time."""

MIN_ANSWERED = 0.75
"""Share of the random sample of a router that must have feedback, so that the answers are a sample, too."""


def selection(tx: Transaction, body: DatasetCreate) -> dict[str, Any] | None:
    """Return which decisions a request selects, as JSON; None if it selects none.

    The last time is fixed, so that feedback that arrives later belongs to the next data set.

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
        Rows of ``id``, ``message_id``, ``message_key``, ``feedback``, ``feedback_at``, ``disposition`` and
        ``sampled``.
    """
    row = tables.Decision
    start, end = _window(request)
    columns = (row.id, row.message_id, row.message_key, row.feedback, row.feedback_at)
    states = [request["feedback"]] if "feedback" in request else ["agreed", "corrected"]
    for state in states:
        after = ""
        while True:
            statement = (
                select(*columns, row.disposition, row.sampled)
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
                if (start is None or each.feedback_at >= start) and each.feedback_at < end
            ]


def _window(request: dict[str, Any]) -> tuple[datetime | None, datetime]:
    """Return the time from which (None: any) and before which the feedback was submitted."""
    start = datetime.fromisoformat(request["from"]) if "from" in request else None
    return start, datetime.fromisoformat(request["to"])


@dataclass(frozen=True)
class SampleAnswers:
    """The numbers of messages of a router's random sample, and of those with feedback.

    Attributes:
        of_disposition: for each disposition, the number of messages of the sample, and of those with
            feedback.
    """

    of_disposition: dict[str, tuple[int, int]]

    @property
    def is_complete(self) -> bool:
        """Return whether the messages with feedback are a random sample, too.

        Of each disposition, ``MIN_ANSWERED`` of the messages have feedback, or all but one. If people answer
        only what the version doubts, or only its mistakes, the answers are no random sample.
        """
        return all(answered + 1 >= MIN_ANSWERED * drawn for drawn, answered in self.of_disposition.values())


def sample_answers(db: Database, request: dict[str, Any]) -> SampleAnswers:
    """Return how many messages of the random sample have feedback.

    Only those count that were routed between the first and the last one whose feedback is selected: people
    may still review later ones.

    Args:
        db: the database.
        request: the selection.
    """
    row = tables.Decision
    start, end = _window(request)
    of_router = (row.router_id == request["router_id"], row.sampled)
    is_selected = [row.feedback_at >= start] if start is not None else []
    is_answered = row.feedback_at < end
    with db.read() as session:
        first, last = session.execute(
            select(func.min(row.id), func.max(row.id)).where(*of_router, *is_selected, is_answered)
        ).one()
        if not first:  # no message of the sample has feedback
            return SampleAnswers({})
        counts = session.execute(
            select(row.disposition, func.count(), func.count().filter(is_answered))
            .where(*of_router, row.id >= first, row.id <= last)
            .group_by(row.disposition)
        ).all()
    return SampleAnswers({str(name): (drawn, answered) for name, drawn, answered in sorted(counts)})


def rows(db: Database, ids: Sequence[str]) -> list[tables.Decision]:
    """Return decisions by their ids, in this order. Decisions that were deleted are omitted."""
    with db.read() as session:
        found = {
            row.id: row for row in session.scalars(select(tables.Decision).where(tables.Decision.id.in_(ids)))
        }
    return [found[id_] for id_ in ids if id_ in found]
