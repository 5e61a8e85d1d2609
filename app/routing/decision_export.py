"""Export all decisions that meet conditions, as lines of JSON or as a table, with one page in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Literal

from app.api.paging import MAX_LIMIT, read_page
from app.context import AppContext
from app.pages.spreadsheets import Cell, to_csv
from app.routing import decisions
from app.routing.decision_search import DecisionFilter
from app.routing.schemas import RecordedDecision
from app.threads import REQUESTS

_COLUMNS = (
    *("decision_id", "created_at", "router", "model", "version", "disposition", "departments"),
    *("destinations", "set_probability", "review_reason", "fallback_reason", "sampled", "feedback"),
    *("feedback_state", "feedback_at", "message_id", "subject", "sender", "automated"),
)

_MARK = "\ufeff"
"""The byte order mark, without which spreadsheets do not read UTF-8."""


async def export(
    ctx: AppContext, router_name: str, conditions: DecisionFilter, form: Literal["ndjson", "csv"]
) -> AsyncGenerator[bytes]:
    """Return the parts of an export. The first page is read at once.

    Raises:
        NotFound: there is no such router.
    """

    def read(cursor: str | None) -> tuple[bytes, str | None]:
        page = decisions.page(ctx, router_name, conditions, read_page(MAX_LIMIT, cursor))
        return _encode(page.items, form), page.next_cursor

    first = await REQUESTS.run(read, None)

    async def parts() -> AsyncGenerator[bytes]:
        if form == "csv":
            yield f"{_MARK}{to_csv([_COLUMNS])}".encode()
        part, cursor = first
        yield part
        while cursor is not None:
            part, cursor = await REQUESTS.run(read, cursor)
            yield part

    return parts()


def _encode(items: list[RecordedDecision], form: Literal["ndjson", "csv"]) -> bytes:
    if form == "ndjson":
        return "".join(f"{item.model_dump_json(exclude_none=True)}\n" for item in items).encode()
    return to_csv(map(_row, items)).encode()


def _row(item: RecordedDecision) -> list[Cell]:
    message = item.message
    return [
        item.decision_id,
        item.created_at.isoformat(),
        item.router,
        item.model,
        item.version,
        item.disposition,
        ", ".join(department.label for department in item.departments),
        ", ".join(item.destinations),
        item.set_probability,
        item.review_reason,
        item.fallback_reason,
        str(item.sampled).lower(),
        None if item.feedback is None else ", ".join(item.feedback),
        _feedback_state(item),
        None if item.feedback_at is None else item.feedback_at.isoformat(),
        message.message_id,
        message.subject,
        message.sender,
        str(message.automated).lower(),
    ]


def _feedback_state(item: RecordedDecision) -> str:
    if item.feedback is None:
        return "none"
    predicted = {department.label for department in item.departments}
    return "agreed" if predicted == set(item.feedback) else "corrected"
