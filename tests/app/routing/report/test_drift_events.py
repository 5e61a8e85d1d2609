"""Webhooks are told about drift, once, and only if it is no accident."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from decision_rows import RoutedMessage, insert_decisions, insert_router
from sqlalchemy import select

from app.context import AppContext
from app.db import tables
from app.ids import new_id
from app.routing.report import drift_events
from app.routing.report.drift_events import queue_drift_events
from tests.app.routing.report.test_report_values import REFERENCE


def subscribe(ctx: AppContext, *events: str) -> None:
    now = datetime.now(UTC)
    values: dict[str, Any] = {
        "id": new_id("wh"),
        "url": "https://example.org",
        "events": [*events],
        "secret": "whsec_",
        "created_at": now,
        "decisions_read_to": now,
    }
    with ctx.db.write() as tx:
        tx.session.add(tables.Webhook(**values))


def events(ctx: AppContext) -> Sequence[dict[str, Any]]:
    with ctx.db.read() as session:
        of = tables.WebhookDelivery
        return session.scalars(select(of.data).where(of.event == "router.drift").order_by(of.id)).all()


def route(ctx: AppContext, n: int, **message: Any) -> None:
    recent = RoutedMessage(at=datetime.now(UTC) - timedelta(days=1), **message)
    insert_decisions(ctx.db, [recent] * n)


def test_drift_is_told_once_with_what_has_drifted(ctx: AppContext) -> None:
    insert_router(ctx.db, {1: REFERENCE})
    subscribe(ctx, "router.drift")
    route(ctx, 200, unknown_words=0.95)
    for _ in range(2):
        queue_drift_events(ctx)
    (event,) = events(ctx)
    assert (event["router"], event["model"], event["threshold"]) == ("desk", "m", 0.25)
    # The reference has few labels like these, a uniform probability, and few unknown words.
    assert event["drift"].keys() == {"labels", "set_probability", "unknown_words"}
    value = event["drift"]["unknown_words"]
    assert value["population_stability_index"] > 0.25
    assert (value["values"], value["expected_mean"]) == (200, 0.25)


def test_a_large_index_of_few_messages_is_no_event(ctx: AppContext) -> None:
    insert_router(ctx.db, {1: REFERENCE})
    subscribe(ctx, "router.drift")
    route(ctx, 2, set_probability=0.5, unknown_words=0.05)
    queue_drift_events(ctx)
    assert events(ctx) == []


def test_an_index_below_the_threshold_is_no_event_and_old_messages_do_not_count(
    ctx: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_router(ctx.db, {1: REFERENCE})
    subscribe(ctx, "router.drift")
    insert_decisions(
        ctx.db, [RoutedMessage(at=datetime.now(UTC) - timedelta(days=9), unknown_words=0.9)] * 50
    )
    queue_drift_events(ctx)
    route(ctx, 200, unknown_words=0.95)
    with monkeypatch.context() as patch:
        patch.setattr(drift_events, "DRIFT_THRESHOLD", 100.0)
        queue_drift_events(ctx)
    assert events(ctx) == []
    queue_drift_events(ctx)
    assert len(events(ctx)) == 1


def test_nothing_is_compared_if_no_webhook_wants_the_event(
    ctx: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_router(ctx.db, {1: REFERENCE})
    subscribe(ctx, "job.ended")
    monkeypatch.setattr("app.routing.report.drift_events.drift_of", lambda *_: pytest.fail("compared"))
    queue_drift_events(ctx)
    assert events(ctx) == []
