"""Tell webhooks that the messages of a router have drifted from the training."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import select

from app.context import AppContext
from app.db import tables
from app.db.outbox import Event, queue_event, subscribers
from app.db.session import database_now
from app.ids import first_id
from app.routing.report.schemas import Drift, DriftValue
from app.routing.report.service import drift_of

EVENT: Event = "router.drift"

DRIFT_THRESHOLD = 0.25
"""Population stability index above which webhooks receive the event: the usual limit of a large change."""

WINDOW = timedelta(days=7)
"""The decisions that are compared: those of this time until now. A router has at most one event in it."""


def queue_drift_events(ctx: AppContext) -> None:
    """Queue an event for each router whose recent messages have drifted too much.

    Nothing is compared if no webhook receives the event. Any number of workers can do this together.
    """
    with ctx.db.read() as session:
        if not subscribers(session, EVENT):
            return
        names = list(session.scalars(select(tables.Router.name).order_by(tables.Router.name)))
    for name in names:
        _check_router(ctx, name)


def _check_router(ctx: AppContext, name: str) -> None:
    with ctx.db.read() as session:
        router = session.get(tables.Router, name)
        if router is None:
            return
        since = database_now(session) - WINDOW
        drift = drift_of(session, router, since)
    threshold = DRIFT_THRESHOLD
    exceeded = {} if drift is None else exceeding(drift, threshold)
    if not exceeded:
        return
    data = {
        "router": name,
        "model": router.model,
        "since": since.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "threshold": threshold,
        "drift": exceeded,
    }
    of = tables.WebhookDelivery
    with ctx.db.write() as tx:
        # The lock keeps another worker from queuing the same event at the same time.
        if tx.session.get(tables.Router, name, with_for_update=True) is None:
            return
        recent = tx.session.scalars(
            select(of.data).where(of.id >= first_id("msg", tx.now - WINDOW), of.event == EVENT)
        )
        if all(earlier["router"] != name for earlier in recent):
            queue_event(tx, EVENT, data, model=router.model)


def exceeding(drift: Drift, threshold: float) -> dict[str, dict[str, Any]]:
    """Return the values whose index is above the threshold, and above what is likely by chance."""
    values: dict[str, DriftValue | None] = {
        "labels": drift.labels,
        "set_probability": drift.set_probability,
        "unknown_words": drift.unknown_words,
    }
    return {
        name: value.model_dump(mode="json", exclude_none=True)
        for name, value in values.items()
        if value is not None and value.population_stability_index > max(threshold, value.chance)
    }
