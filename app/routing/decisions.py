"""Find, change and delete recorded decisions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.orm import Session

from app.api.guards import Actor
from app.api.paging import Page, encode_cursor
from app.context import AppContext
from app.db import tables
from app.db.session import Database, Transaction, database_now
from app.errors import NotFound
from app.metrics import count_feedback
from app.routing import kept_messages, reviews, service
from app.routing.decision_content import predicted_labels_of
from app.routing.decision_search import DecisionFilter, find_ids
from app.routing.feedback_labels import check_labels
from app.routing.kept_messages import OriginalMessage
from app.routing.message_search import find_ids_by_text
from app.routing.schemas import DecisionPage, Feedback, RecordedDecision, Review

MAX_PAGE_BYTES = 8 * 1024 * 1024
"""Maximum size of a page of decisions. A decision for thousands of departments is large."""

MAX_COUNTED = 9_999
"""Decisions that are counted one by one for a page."""


def page(ctx: AppContext, router_name: str, conditions: DecisionFilter, page: Page) -> DecisionPage:
    """Return a page of the decisions of a router. It can have fewer items than requested, or none."""
    by_text = None if conditions.text is None else find_ids_by_text(ctx, router_name, conditions, page)
    with ctx.db.read() as session:
        router = service.get_or_404(session, router_name)
        ids, position = by_text or find_ids(session, router.id, conditions, page)
        column = tables.Decision.id
        now = database_now(session)
        rows = session.execute(
            select(tables.Decision, tables.Review)
            .outerjoin(tables.Review, tables.Review.decision_id == column)
            .where(column.in_(ids))
            .order_by(column.asc() if conditions.oldest_first else column.desc()),
            execution_options={"yield_per": 50},
        )
        items: list[RecordedDecision] = []
        size = 0
        with closing(rows):
            for row, review in rows:
                item = _to_response(row, reviews.to_response(review, now))
                size += len(item.model_dump_json(exclude_none=True))
                if items and size > MAX_PAGE_BYTES:
                    position = items[-1].decision_id
                    break
                items.append(item)
        next_cursor = None if position is None else encode_cursor(position)
        return DecisionPage(items=items, next_cursor=next_cursor)


@dataclass(frozen=True)
class ReviewedCount:
    """The number of decisions of a router with feedback.

    Attributes:
        n: their number, at most ``MAX_COUNTED``.
        n_kept: how many of them have a kept message.
        is_limited: whether there are more.
    """

    n: int
    n_kept: int
    is_limited: bool


def count_reviewed(db: Database, router_name: str) -> ReviewedCount:
    """Return how many decisions of a router have feedback."""
    row = tables.Decision
    with db.read() as session:
        router = service.get_or_404(session, router_name)
        reviewed = (
            select(row.kept_message)
            .where(row.router_id == router.id, row.feedback_state.is_not(None))
            .limit(MAX_COUNTED + 1)
            .subquery()
        )
        n, n_kept = session.execute(select(func.count(), func.count(reviewed.c.kept_message))).one()
    return ReviewedCount(min(n, MAX_COUNTED), min(n_kept, MAX_COUNTED), n > MAX_COUNTED)


def get(db: Database, decision_id: str) -> RecordedDecision:
    """Return a decision."""
    with db.read() as session:
        row = _get_or_404(session, decision_id)
        return _to_response(row, reviews.of_decision(session, decision_id))


def get_message(ctx: AppContext, decision_id: str) -> OriginalMessage:
    """Return the kept message of a decision.

    Raises:
        NotFound: there is no such decision, or its message is not kept.
        NotReady: the message cannot be read now; see ``kept_messages.read``.
    """
    with ctx.db.read() as session:
        row = _get_or_404(session, decision_id)
    message = kept_messages.read(ctx, row)
    if message is None:
        raise NotFound(
            f"the message of decision {decision_id} is not kept; to keep messages, set keep_messages of the "
            "router",
            code="message_not_kept",
        )
    return message.as_raw()


def delete_one(ctx: AppContext, decision_id: str) -> None:
    """Delete a decision with all its data of the message."""
    with ctx.db.write() as tx:
        row = _get_or_404(tx.session, decision_id, lock=True)
        delete_rows(tx, [row])
    ctx.db.truncate_wal()
    if row.kept_message is not None:
        ctx.deletion.delete([row.kept_message])


def delete_rows(tx: Transaction, rows: Sequence[tables.Decision]) -> None:
    """Delete decisions with their labels. Retention deletes the files of their messages."""
    of = tables.DecisionLabel
    labels = [
        {"of_router": row.router_id, "of_label": label, "of_decision": row.id}
        for row in rows
        for label in predicted_labels_of(row.response)
    ]
    if labels:
        tx.session.connection().execute(
            delete(of).where(
                of.router_id == bindparam("of_router"),
                of.label == bindparam("of_label"),
                of.decision_id == bindparam("of_decision"),
            ),
            labels,
        )
    tx.session.execute(delete(tables.Decision).where(tables.Decision.id.in_([row.id for row in rows])))


def give_feedback(db: Database, decision_id: str, body: Feedback, actor: Actor | None) -> RecordedDecision:
    """Record the correct labels of a message, and who gave them; they replace earlier feedback.

    Raises:
        NotFound: there is no such decision.
        Invalid: a label is unknown, and new ones are not allowed.
    """
    if not body.allow_new_labels:
        with db.read() as session:
            check_labels(session, _get_or_404(session, decision_id), body.labels)
    with db.write() as tx:
        row = _get_or_404(tx.session, decision_id, lock=True)
        row.feedback = sorted(set(body.labels))
        row.feedback_at = tx.now
        row.feedback_by = None if actor is None else {"id": actor.id, "name": actor.name}
        review = tx.session.get(tables.Review, decision_id)
        if review is not None:
            reviews.end_reservation(review)
        is_agreed = set(predicted_labels_of(row.response)) == set(body.labels)
        row.feedback_state = "agreed" if is_agreed else "corrected"
        tx.session.flush()
        response = _to_response(row, reviews.to_response(review, tx.now))
    count_feedback(row.router, row.feedback_state, row.set_probability)
    return response


def _get_or_404(session: Session, decision_id: str, *, lock: bool = False) -> tables.Decision:
    row = session.get(tables.Decision, decision_id, with_for_update=lock)
    if row is None:
        raise NotFound(f"there is no decision {decision_id}")
    return row


def _to_response(row: tables.Decision, review: Review | None) -> RecordedDecision:
    fields: dict[str, Any] = {
        **row.response,
        "created_at": row.created_at,
        "shadow": row.shadow,
        "feedback": row.feedback,
        "feedback_at": row.feedback_at,
        "feedback_by": row.feedback_by,
        "review": review,
        "kept_until": row.kept_until,
    }
    if "message_kept" in row.response:
        fields["message_kept"] = row.kept_message is not None  # its time can have passed
    return RecordedDecision.model_validate(fields)
