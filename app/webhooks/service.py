"""Webhooks: create, list, rotate, test and delete. ``deliveries.py`` contains the part of the workers."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.api.idempotency import Idempotency
from app.api.paging import Page, newest_first
from app.context import AppContext
from app.db import tables
from app.db.outbox import new_delivery
from app.db.session import Database, Transaction
from app.errors import Conflict, Invalid, NotFound
from app.ids import new_id
from app.webhooks.addresses import is_public, literal_address
from app.webhooks.schemas import (
    Delivery,
    DeliveryPage,
    Webhook,
    WebhookCreate,
    WebhookCreated,
    WebhookPage,
    WebhookRotate,
)
from app.webhooks.secrets import new_secret, stored

MAX_WEBHOOKS = 100
"""Maximum number of webhooks. Every event looks at all of them."""

MAX_WAITING_TESTS = 10
"""Maximum number of tests of a webhook that were not sent yet."""


def create(ctx: AppContext, body: WebhookCreate, idempotency: Idempotency) -> WebhookCreated:
    """Create a webhook, which receives the events from now on.

    The name of the host is not resolved here: its address is checked whenever a worker connects.

    Raises:
        Invalid: the URL names a private address and the settings do not allow it, or ``router`` has no
            effect.
        Conflict: there are too many webhooks.
    """
    idempotency.first_response(ctx.db, WebhookCreated, one_time_field="secret")
    _check(body, allow_private=ctx.settings.webhooks_allow_private)
    secret = new_secret()

    def work(tx: Transaction) -> WebhookCreated:
        if (tx.session.scalar(select(func.count()).select_from(tables.Webhook)) or 0) >= MAX_WEBHOOKS:
            raise Conflict(
                f"there are {MAX_WEBHOOKS} webhooks, which is the limit; delete one first",
                code="too_many_webhooks",
            )
        webhook_id = new_id("wh")
        row = tables.Webhook(
            id=webhook_id,
            url=body.url,
            events=sorted(set(body.events)),
            router=body.router,
            model=body.model,
            secret=stored(ctx.settings, webhook_id, secret),
            created_at=tx.now,
            decisions_read_to=tx.now,
        )
        tx.session.add(row)
        tx.session.flush()
        return WebhookCreated(**_to_response(row).model_dump(), secret=secret)

    return idempotency.run(ctx.db, WebhookCreated, work, one_time_field="secret")


def page(db: Database, page: Page) -> WebhookPage:
    """Return a page of webhooks, newest first."""
    with db.read() as session:
        rows, cursor = newest_first(session, select(tables.Webhook), tables.Webhook.id, page)
        return WebhookPage(items=[_to_response(row) for row in rows], next_cursor=cursor)


def get(db: Database, webhook_id: str) -> Webhook:
    """Return a webhook."""
    with db.read() as session:
        return _to_response(_get_or_404(session, webhook_id))


def page_deliveries(db: Database, webhook_id: str, page: Page) -> DeliveryPage:
    """Return a page of the events for a webhook, newest first."""
    delivery = tables.WebhookDelivery
    with db.read() as session:
        _get_or_404(session, webhook_id)
        statement = select(delivery).where(delivery.webhook_id == webhook_id)
        rows, cursor = newest_first(session, statement, delivery.id, page)
        return DeliveryPage(items=[_delivery_to_response(row) for row in rows], next_cursor=cursor)


def send_test(db: Database, webhook_id: str) -> Delivery:
    """Queue the event ``webhook.test``, also for a disabled webhook.

    Raises:
        NotFound: the webhook does not exist.
        Conflict: too many tests wait.
    """
    delivery = tables.WebhookDelivery
    with db.write() as tx:
        _get_or_404(tx.session, webhook_id, lock=True)
        waiting = tx.session.scalar(
            select(func.count()).where(
                delivery.webhook_id == webhook_id,
                delivery.state == "pending",
                delivery.event == "webhook.test",
            )
        )
        if (waiting or 0) >= MAX_WAITING_TESTS:
            raise Conflict(
                f"{waiting} tests of this webhook wait already; their deliveries show why",
                code="too_many_tests",
            )
        row = new_delivery(tx, webhook_id, "webhook.test", {"webhook_id": webhook_id})
        tx.session.add(row)
        tx.session.flush()
        return _delivery_to_response(row)


def redeliver(db: Database, webhook_id: str, delivery_id: str) -> Delivery:
    """Queue an event again, whatever its state, with all its attempts.

    Raises:
        NotFound: the webhook does not exist, or has no such event.
        Conflict: the webhook is disabled.
    """
    with db.write() as tx:
        webhook = _get_or_404(tx.session, webhook_id, lock=True)
        row = tx.session.get(tables.WebhookDelivery, delivery_id, with_for_update=True)
        if row is None or row.webhook_id != webhook_id:
            raise NotFound(f"there is no delivery {delivery_id} of webhook {webhook_id}")
        if webhook.disabled_at is not None:
            raise Conflict(
                f"webhook {webhook_id} is disabled; send a test, which enables it if the receiver accepts it",
                code="webhook_disabled",
            )
        row.state, row.attempts, row.due_at, row.finished_at = "pending", 0, tx.now, None
        tx.session.flush()
        return _delivery_to_response(row)


def rotate(ctx: AppContext, webhook_id: str, body: WebhookRotate, idempotency: Idempotency) -> WebhookCreated:
    """Give a webhook a new secret; the old one signs too for the grace period."""
    idempotency.first_response(ctx.db, WebhookCreated, one_time_field="secret")
    secret = new_secret()

    def work(tx: Transaction) -> WebhookCreated:
        row = _get_or_404(tx.session, webhook_id, lock=True)
        grace = timedelta(seconds=body.grace_seconds)
        row.previous_secret = row.secret if grace else None
        row.previous_secret_expires_at = tx.now + grace if grace else None
        row.secret = stored(ctx.settings, webhook_id, secret)
        tx.session.flush()
        return WebhookCreated(**_to_response(row).model_dump(), secret=secret)

    return idempotency.run(ctx.db, WebhookCreated, work, one_time_field="secret")


def delete(db: Database, webhook_id: str) -> None:
    """Delete a webhook with its deliveries."""
    with db.write() as tx:
        tx.session.delete(_get_or_404(tx.session, webhook_id, lock=True))


def _check(body: WebhookCreate, *, allow_private: bool) -> None:
    if body.router is not None and "decision.review" not in body.events:
        message = "has no effect without the event decision.review; add the event, or omit router"
        raise Invalid(f"router {message}", errors=[("/router", message)])
    host = urlsplit(body.url).hostname or ""
    address = literal_address(host)
    is_private = host == "localhost" if address is None else not is_public(address)
    if is_private and not allow_private:
        message = (
            f"{host} is not an address of the public internet; use another URL, or set "
            "COVEY_WEBHOOKS_ALLOW_PRIVATE of the service"
        )
        raise Invalid(message, errors=[("/url", message)])


def _get_or_404(session: Session, webhook_id: str, *, lock: bool = False) -> tables.Webhook:
    row = session.get(tables.Webhook, webhook_id, with_for_update=lock)
    if row is None:
        raise NotFound(f"there is no webhook {webhook_id}")
    return row


def _to_response(row: tables.Webhook) -> Webhook:
    return Webhook.model_validate(row, from_attributes=True)


def _delivery_to_response(row: tables.WebhookDelivery) -> Delivery:
    response = Delivery.model_validate(row, from_attributes=True)
    return response if row.state == "pending" else response.model_copy(update={"due_at": None})
