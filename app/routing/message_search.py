"""Find words in kept messages. Each page reads a limited number of bytes."""

from __future__ import annotations

from itertools import zip_longest

import structlog
from sqlalchemy import select

from app.api.paging import Page
from app.context import AppContext
from app.db import tables
from app.errors import FileDamaged
from app.routing import kept_messages, service
from app.routing.decision_search import DecisionFilter, find_ids
from app.routing.kept_messages import OriginalMessage
from app.storage import MissingFileError
from models.mail import reader as mail_reader

log = structlog.get_logger()

MAX_READ = 100
"""Maximum number of messages that one page reads."""

MAX_BYTES = 16 * 1024 * 1024
"""Number of bytes of messages after which a page ends."""


def find_ids_by_text(
    ctx: AppContext, router_name: str, conditions: DecisionFilter, page: Page
) -> tuple[list[str], str | None]:
    """Return the ids of a page of decisions whose kept messages contain a text.

    Args:
        ctx: the application context.
        router_name: name of the router.
        conditions: with ``text``.
        page: which page.

    Returns:
        The ids, in order, and the position of the next page, if there is one.

    Raises:
        NotFound: there is no such router.
        NotReady: a message is encrypted with a key that this process does not have.
        StorageUnavailableError: the storage is unavailable.
    """
    with ctx.db.read() as session:
        router = service.get_or_404(session, router_name)
        ids, position = find_ids(session, router.id, conditions, Page(MAX_READ, page.after))
        kept = {
            row.id: row for row in session.scalars(select(tables.Decision).where(tables.Decision.id.in_(ids)))
        }
    words = (conditions.text or "").casefold()
    found: list[str] = []
    n_bytes = 0
    for id_, next_id in zip_longest(ids, ids[1:]):
        message = _read(ctx, kept[id_]) if id_ in kept else None
        if message is not None:
            n_bytes += len(message.content)
            mail = mail_reader.read_email(message.to_email())
            if words in f"{mail.subject}\n{mail.new_text}\n{mail.quoted_text}".casefold():
                found.append(id_)
        if next_id is not None and (len(found) == page.limit or n_bytes > MAX_BYTES):
            return found, id_
    return found, position


def _read(ctx: AppContext, decision: tables.Decision) -> OriginalMessage | None:
    """Return the kept message of a decision; None if it is not kept any more, or its file is damaged."""
    try:
        return kept_messages.read(ctx, decision)
    except MissingFileError:  # retention has just deleted it
        return None
    except FileDamaged as error:
        log.error("routing.message_damaged", decision_id=decision.id, reason=error.detail)  # noqa: TRY400
        return None
