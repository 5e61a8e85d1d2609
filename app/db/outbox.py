"""The outbox of webhooks: an event is written in the transaction that makes it happen, and sent afterwards.

So an event is sent if and only if its transaction was committed, whatever process dies in between. The
caller describes the event; this module finds out which webhooks receive it. If none does, an event costs one
search in a short table.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.db.session import Transaction
from app.db.tables import Webhook, WebhookDelivery
from app.ids import new_id

Event: TypeAlias = Literal["decision.review", "job.ended", "router.drift", "version.promoted"]


def subscribers(session: Session, event: Event, *, lock: bool = False) -> list[Webhook]:
    """Return the enabled webhooks that receive a kind of event, in the order of their ids.

    Args:
        session: the session.
        event: the kind of event.
        lock: whether they cannot be deleted until the end of the transaction.
    """
    statement = select(Webhook).where(Webhook.disabled_at.is_(None)).order_by(Webhook.id)
    if lock:
        statement = statement.with_for_update(read=True, key_share=True)
    return [row for row in session.scalars(statement) if event in row.events]


def queue_event(tx: Transaction, event: Event, data: dict[str, Any], *, model: str | None) -> None:
    """Queue an event for each webhook that receives it.

    Args:
        tx: the transaction that makes the event happen.
        event: the kind of event.
        data: what the receiver gets. It contains ids and states, and no text of messages.
        model: the model that the event is about; None if it is about none.
    """
    for webhook in subscribers(tx.session, event, lock=True):
        if webhook.model is None or webhook.model == model:
            tx.session.add(new_delivery(tx, webhook.id, event, data))
    tx.session.flush()


def new_delivery(
    tx: Transaction, webhook_id: str, event: Event | Literal["webhook.test"], data: dict[str, Any]
) -> WebhookDelivery:
    """Return a delivery that is due now."""
    return WebhookDelivery(
        id=new_id("msg"),
        webhook_id=webhook_id,
        event=event,
        data=data,
        state="pending",
        attempts=0,
        due_at=tx.now,
        created_at=tx.now,
    )
