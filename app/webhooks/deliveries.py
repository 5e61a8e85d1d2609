"""The rows of deliveries: finds reviews, claims the events that are due, records outcomes, and plans retries.

A claim moves the time of the next attempt forward. If the process dies, the event is sent again at that time:
a receiver gets every event at least once. No transaction waits for the network.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import structlog
from sqlalchemy import exists, func, select, update
from sqlalchemy.orm import Session

from app.db import tables
from app.db.outbox import subscribers
from app.db.session import Database, Transaction, database_now
from app.db.upsert import insert_if_absent
from app.ids import first_id, new_id
from app.routing.decision_search import needs_review

log = structlog.get_logger()

RETRY_SECONDS = (5, 60, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""Time after each failed attempt until the next one. After the last of them, the event has failed."""

DISABLE_AFTER = timedelta(days=5)
"""Time for which every attempt to send to a webhook fails before the webhook is disabled."""

CLAIM_SECONDS = 60.0
"""Time after which a claimed event is sent again if its process has not recorded an outcome."""

MAX_AT_ONCE = 4
"""Maximum number of events that one process sends to one webhook at the same time."""

LATE = timedelta(minutes=10)
"""A decision that is committed later than this after its id was made can be missed. Requests wait for the
database for seconds."""

READ_AGAIN = timedelta(minutes=1)
"""The position up to which decisions were considered is written this often, if there are no reviews."""

MAX_REVIEWS = 200
"""Maximum number of reviews that one transaction queues for a webhook."""

MAX_PENDING = 1000
"""Number of pending events of a webhook from which on reviews wait in the table of decisions instead."""


@dataclass(frozen=True)
class Attempt:
    """One attempt to send an event.

    Attributes:
        delivery_id: id of the event and its delivery.
        webhook_id: id of the webhook.
        url: the receiver.
        secrets: keys of the signatures, as they are stored.
        event: kind of the event.
        data: content of the event.
        created_at: time of the event.
    """

    delivery_id: str
    webhook_id: str
    url: str
    secrets: tuple[str, ...]
    event: str
    data: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True)
class Outcome:
    """The outcome of an attempt.

    Attributes:
        status: status of the response; None if there was none.
        error: why the attempt has failed; None if the receiver has accepted the event.
        body: the beginning of the response; None if there was none, or it is empty.
    """

    status: int | None
    error: str | None
    body: str | None = None

    @property
    def is_gone(self) -> bool:
        """Whether the receiver says that it wants no more events."""
        return self.status == 410


class _Review(NamedTuple):
    """A decision that needs a review."""

    decision_id: str
    response: dict[str, Any]
    created_at: datetime


def queue_reviews(db: Database) -> int:
    """Queue an event for each new decision that needs a review. Return their number.

    The decisions themselves are the outbox: routing a message must not wait for webhooks. Any number of
    processes can do this at the same time, because a webhook gets a decision only once.
    """
    with db.read() as session:
        now = database_now(session)
        webhooks = subscribers(session, "decision.review")
        found = {row.id: _new_reviews(session, row) for row in webhooks}
    queued = 0
    for webhook in webhooks:
        reviews = found[webhook.id]
        if reviews is None:
            continue
        if reviews or now - webhook.decisions_read_to > READ_AGAIN:
            with db.write() as tx:
                queued += _queue_reviews(tx, webhook.id, reviews, now)
    return queued


def _new_reviews(session: Session, webhook: tables.Webhook) -> list[_Review] | None:
    """Return decisions that need a review and were not queued yet, the oldest first.

    Returns:
        the decisions; None if so many events of the webhook are pending that the decisions have to wait.
    """
    decision, delivery = tables.Decision, tables.WebhookDelivery
    pending = session.scalar(
        select(func.count()).where(delivery.webhook_id == webhook.id, delivery.state == "pending")
    )
    if (pending or 0) >= MAX_PENDING:
        return None
    since = max(webhook.created_at, webhook.decisions_read_to - LATE)
    was_queued = exists().where(delivery.webhook_id == webhook.id, delivery.decision_id == decision.id)
    statement = select(decision.id, decision.response, decision.created_at).where(
        needs_review(),
        decision.id >= first_id("dec", since),
        decision.created_at >= webhook.created_at,
        ~was_queued,
    )
    if webhook.router is not None:
        statement = statement.where(decision.router == webhook.router)
    if webhook.model is not None:
        statement = statement.where(decision.model == webhook.model)
    rows = session.execute(statement.order_by(decision.id).limit(MAX_REVIEWS))
    return [_Review(row.id, row.response, row.created_at) for row in rows]


def _queue_reviews(tx: Transaction, webhook_id: str, reviews: list[_Review], read_at: datetime) -> int:
    webhook = tx.session.get(tables.Webhook, webhook_id, with_for_update={"read": True, "key_share": True})
    if webhook is None or webhook.disabled_at is not None:
        return 0
    queued = sum(
        insert_if_absent(
            tx,
            tables.WebhookDelivery,
            id=new_id("msg"),
            webhook_id=webhook_id,
            event="decision.review",
            decision_id=review.decision_id,
            data=_review_data(review.response),
            state="pending",
            attempts=0,
            due_at=tx.now,
            created_at=review.created_at,
        )
        for review in reviews
    )
    # If there may be more, the position is the last one that was read.
    read_to = reviews[-1].created_at if len(reviews) == MAX_REVIEWS else read_at
    webhook.decisions_read_to = max(webhook.decisions_read_to, read_to)
    return queued


def _review_data(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a receiver gets of a decision: no text of the message, and no address."""
    names = ("decision_id", "router", "model", "version", "disposition", "sampled", "set_probability")
    data = {name: response[name] for name in names if name in response}
    data["labels"] = [item["label"] for item in response["departments"]]
    return data


def claim_due(db: Database, in_flight: Mapping[str, int], limit: int) -> list[Attempt]:
    """Claim events that are due.

    Args:
        db: the database.
        in_flight: number of events that this process is sending, by webhook. A webhook with many of them gets
            no more, so that a slow receiver does not delay others.
        limit: maximum number of events.
    """
    delivery = tables.WebhookDelivery
    with db.read() as session:
        # An idle process only reads.
        due = session.scalars(
            select(delivery.webhook_id)
            .where(delivery.state == "pending", delivery.due_at <= database_now(session))
            .distinct()
        ).all()
    free = {id_: MAX_AT_ONCE - in_flight.get(id_, 0) for id_ in sorted(due)}
    free = {id_: number for id_, number in free.items() if number > 0}
    if not free or limit <= 0:
        return []
    attempts: list[Attempt] = []
    with db.write() as tx:
        # Every webhook gets its turn, whatever the order of their ids.
        for webhook_id in random.sample(sorted(free), len(free)):
            attempts += _claim(tx, webhook_id, min(free[webhook_id], limit - len(attempts)))
    return attempts


def _claim(tx: Transaction, webhook_id: str, limit: int) -> list[Attempt]:
    delivery = tables.WebhookDelivery
    webhook = tx.session.get(tables.Webhook, webhook_id)
    if webhook is None:  # deleted since its events were found
        return []
    rows = tx.session.scalars(
        select(delivery)
        .where(delivery.state == "pending", delivery.webhook_id == webhook_id, delivery.due_at <= tx.now)
        .order_by(delivery.due_at, delivery.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    secrets = [webhook.secret]
    expires_at = webhook.previous_secret_expires_at
    if webhook.previous_secret is not None and expires_at is not None and expires_at > tx.now:
        secrets.append(webhook.previous_secret)
    for row in rows:
        row.attempts += 1
        row.last_attempt_at = tx.now
        row.due_at = tx.now + timedelta(seconds=CLAIM_SECONDS)
    tx.session.flush()
    return [
        Attempt(row.id, webhook_id, webhook.url, tuple(secrets), row.event, row.data, row.created_at)
        for row in rows
    ]


def record(db: Database, attempt: Attempt, outcome: Outcome) -> None:
    """Record the outcome of an attempt; disable a webhook that has failed for too long.

    If the webhook or the event was deleted in the meantime, there is nothing to record.
    """
    with db.write() as tx:
        # The row of the webhook comes first, as in a deletion.
        webhook = tx.session.get(tables.Webhook, attempt.webhook_id, with_for_update={"key_share": True})
        row = tx.session.get(tables.WebhookDelivery, attempt.delivery_id, with_for_update=True)
        if webhook is None or row is None or row.state != "pending":
            return
        row.response_status, row.response_body, row.error = outcome.status, outcome.body, outcome.error
        if outcome.error is None:
            row.state, row.finished_at = "delivered", tx.now
            webhook.last_success_at, webhook.failing_since = tx.now, None
            if row.event == "webhook.test" and webhook.disabled_at is not None:
                webhook.disabled_at = webhook.disabled_reason = None
                webhook.decisions_read_to = tx.now
                log.info("webhook.enabled", webhook_id=webhook.id)
            return
        if row.attempts > len(RETRY_SECONDS) or row.event == "webhook.test" or outcome.is_gone:
            row.state, row.finished_at = "failed", tx.now
        else:
            # With some jitter, so that the events of an outage do not all come back at once.
            delay = RETRY_SECONDS[row.attempts - 1] * random.uniform(0.9, 1.1)  # noqa: S311 - no secret
            row.due_at = tx.now + timedelta(seconds=delay)
        webhook.failing_since = webhook.failing_since or tx.now
        failing = tx.now - webhook.failing_since
        if outcome.is_gone:
            _disable(tx, webhook, "the receiver returned 410 Gone")
        elif failing > DISABLE_AFTER:
            days = failing / timedelta(days=1)
            _disable(tx, webhook, f"every attempt has failed for {days:.1f} days; the last: {outcome.error}")


def _disable(tx: Transaction, webhook: tables.Webhook, reason: str) -> None:
    if webhook.disabled_at is not None:
        return
    webhook.disabled_at, webhook.disabled_reason = tx.now, reason
    delivery = tables.WebhookDelivery
    tx.session.flush()
    tx.session.execute(
        update(delivery)
        .where(
            delivery.webhook_id == webhook.id,
            delivery.state == "pending",
            delivery.event != "webhook.test",
        )
        .values(state="failed", finished_at=tx.now, error="the webhook was disabled")
    )
    log.error("webhook.disabled", webhook_id=webhook.id, reason=reason)
