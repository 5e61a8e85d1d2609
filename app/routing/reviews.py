"""What several reviewers of one queue need to know of a message: who has it open, whose it is, and a note.

Only messages that a person has opened, assigned or noted have a row, so that recording a decision takes no
longer. A reservation ends by itself, because a reviewer can close the browser.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from app.api.guards import Actor
from app.db import tables
from app.db.session import Database, Transaction, database_now
from app.errors import Conflict, NotFound
from app.routing.schemas import Person, Review, ReviewPut

RESERVED_FOR = timedelta(minutes=10)
"""How long a message that a person has opened is reserved."""


def to_response(row: tables.Review | None, now: datetime) -> Review | None:
    """Return what is recorded of the review of a message; None if there is nothing."""
    if row is None:
        return None
    is_reserved = row.reserved_until is not None and row.reserved_until > now
    if not (is_reserved or row.assigned_to or row.note):
        return None
    return Review(
        reserved_by=_person(row.reserved_by) if is_reserved else None,
        reserved_until=row.reserved_until if is_reserved else None,
        assigned_to=row.assigned_to,
        note=row.note,
        note_by=_person(row.note_by),
    )


def of_decision(session: Session, decision_id: str) -> Review | None:
    """Return what is recorded of the review of one message; None if there is nothing."""
    row = session.get(tables.Review, decision_id)
    return None if row is None else to_response(row, database_now(session))


def reserve(db: Database, decision_id: str, actor: Actor | None) -> Review:
    """Reserve a message for a person. Without a person, nothing is reserved.

    Raises:
        NotFound: there is no such decision.
        Conflict: another person has reserved the message.
    """
    with db.write() as tx:
        row = _lock(tx, decision_id)
        current = to_response(row, tx.now) or Review()
        if actor is None:
            return current
        holder = current.reserved_by
        if holder is not None and holder.id != actor.id:
            raise Conflict(f"{holder.name} has reserved this message", code="message_reserved")
        row = row or _create(tx, decision_id)
        row.reserved_by, row.reserved_until = _to_json(actor), tx.now + RESERVED_FOR
        return to_response(row, tx.now) or Review()


def release(db: Database, decision_id: str, actor: Actor | None) -> None:
    """End the reservation of a message by a person, if there is one.

    Raises:
        NotFound: there is no such decision.
    """
    with db.write() as tx:
        row = _lock(tx, decision_id)
        if row is not None and actor is not None and (row.reserved_by or {}).get("id") == actor.id:
            end_reservation(row)


def end_reservation(row: tables.Review) -> None:
    """Let other people have a message."""
    row.reserved_by = row.reserved_until = None


def put(db: Database, decision_id: str, body: ReviewPut, actor: Actor | None) -> Review:
    """Assign a message and note something; what the request omits is removed.

    Raises:
        NotFound: there is no such decision.
    """
    with db.write() as tx:
        row = _lock(tx, decision_id) or _create(tx, decision_id)
        if row.note != body.note:
            row.note_by = None if body.note is None or actor is None else _to_json(actor)
        row.assigned_to, row.note = body.assigned_to, body.note
        return to_response(row, tx.now) or Review()


def _lock(tx: Transaction, decision_id: str) -> tables.Review | None:
    """Return the row of a message if it has one, and prevent changes until the end of the transaction."""
    if tx.session.get(tables.Decision, decision_id, with_for_update=True) is None:
        raise NotFound(f"there is no decision {decision_id}")
    return tx.session.get(tables.Review, decision_id)


def _create(tx: Transaction, decision_id: str) -> tables.Review:
    row = tables.Review(decision_id=decision_id)
    tx.session.add(row)
    return row


def _to_json(actor: Actor) -> dict[str, Any]:
    return {"id": actor.id, "name": actor.name}


def _person(stored: dict[str, Any] | None) -> Person | None:
    return None if stored is None else Person.model_validate(stored)
