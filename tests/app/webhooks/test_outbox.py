"""The outbox: an event is sent if and only if it happened, and no death of a process loses it."""

from __future__ import annotations

from typing import Any

import pytest
import rows
from sqlalchemy import delete, func, select

from app.api.idempotency import NOT_IDEMPOTENT
from app.context import AppContext
from app.db import tables
from app.db.session import Database
from app.ids import new_id
from app.jobs import queue
from app.maintenance import retention
from app.webhooks import deliveries as webhook_deliveries
from app.webhooks import service
from app.webhooks.deliveries import Outcome
from app.webhooks.schemas import WebhookCreate

ACCEPTED = Outcome(204, None)
FAILED = Outcome(500, "the receiver returned 500")


@pytest.fixture(autouse=True)
def _reads_use_the_clock(clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_deliveries, "database_now", lambda _: clock.now)


def create(ctx: AppContext, *events: str, **fields: Any) -> str:
    body = WebhookCreate.model_validate(
        {"url": "http://127.0.0.1:9/", "events": events or ["job.ended"], **fields}
    )
    return service.create(ctx, body, NOT_IDEMPOTENT).id


def end_job(database: Database) -> str:
    job_id = rows.queued(database)
    with database.write() as tx:
        job = queue.lock(tx, job_id)
        assert job is not None
        queue.request_cancel(tx, job)
    return job_id


def deliveries(database: Database) -> list[tables.WebhookDelivery]:
    with database.read() as session:
        statement = select(tables.WebhookDelivery).order_by(tables.WebhookDelivery.id)
        return list(session.scalars(statement))


def decide(
    ctx: AppContext,
    clock: Any,
    *,
    id_: str | None = None,
    disposition: str = "review",
    sampled: bool = False,
) -> str:
    """Record a decision."""
    decision_id = id_ or new_id("dec")
    response = {
        "decision_id": decision_id,
        "router": "desk",
        "model": "m",
        "version": 2,
        "disposition": disposition,
        "sampled": sampled,
        "departments": [{"label": "billing", "destination": "billing@example.org", "score": 0.2}],
        "set_probability": 0.4,
        "message": {"subject": "private words"},
    }
    with ctx.db.write() as tx:
        tx.session.add(
            tables.Decision(
                id=decision_id,
                router_id="rtr_1",
                router="desk",
                message_key=decision_id,
                response=response,
                created_at=clock.now,
                disposition=disposition,
                sampled=sampled,
                model="m",
                version=2,
            )
        )
    return decision_id


def test_an_event_of_a_transaction_that_is_rolled_back_is_never_sent(ctx: AppContext) -> None:
    create(ctx)
    job_id = rows.queued(ctx.db)

    def end_and_fail() -> None:
        with ctx.db.write() as tx:
            job = queue.lock(tx, job_id)
            assert job is not None
            queue.request_cancel(tx, job)
            assert tx.session.scalar(select(func.count()).select_from(tables.WebhookDelivery)) == 1
            raise RuntimeError

    with pytest.raises(RuntimeError):
        end_and_fail()
    assert deliveries(ctx.db) == []


@pytest.mark.parametrize("state", ["succeeded", "failed"])
def test_every_end_of_a_job_is_an_event(ctx: AppContext, state: queue.FinalState) -> None:
    create(ctx)
    job_id = rows.queued(ctx.db)
    claim = rows.claimed(ctx.db, job_id)
    with ctx.db.write() as tx:
        queue.finish(tx, claim, state, error={"code": "bad_data"} if state == "failed" else None)
    (row,) = deliveries(ctx.db)
    assert (row.data["job_id"], row.data["state"], row.data["model"]) == (job_id, state, "test")
    assert row.data.get("code") == ("bad_data" if state == "failed" else None)


def test_cells_of_an_experiment_are_no_events(ctx: AppContext) -> None:
    create(ctx)
    for kind in ("cell", "experiment"):
        claim = rows.claimed(ctx.db, rows.queued(ctx.db, kind=kind))
        with ctx.db.write() as tx:
            queue.finish(tx, claim, "succeeded")
    assert deliveries(ctx.db) == []


def test_an_event_is_sent_again_if_its_sender_dies(ctx: AppContext, clock: Any) -> None:
    create(ctx)
    end_job(ctx.db)
    (first,) = webhook_deliveries.claim_due(ctx.db, {}, 10)
    assert webhook_deliveries.claim_due(ctx.db, {}, 10) == [], "two processes send it at the same time"
    clock.advance(webhook_deliveries.CLAIM_SECONDS + 1)
    (second,) = webhook_deliveries.claim_due(ctx.db, {}, 10)
    assert second == first
    webhook_deliveries.record(ctx.db, second, ACCEPTED)
    clock.advance(1e6)
    assert webhook_deliveries.claim_due(ctx.db, {}, 10) == []
    (row,) = deliveries(ctx.db)
    assert (row.state, row.attempts) == ("delivered", 2)


def test_no_webhook_gets_more_events_at_once_than_allowed(ctx: AppContext) -> None:
    ids = {create(ctx), create(ctx)}
    for _ in range(webhook_deliveries.MAX_AT_ONCE + 3):
        end_job(ctx.db)
    attempts = webhook_deliveries.claim_due(ctx.db, {}, 100)
    assert {attempt.webhook_id for attempt in attempts} == ids
    assert len(attempts) == 2 * webhook_deliveries.MAX_AT_ONCE
    assert webhook_deliveries.claim_due(ctx.db, dict.fromkeys(ids, webhook_deliveries.MAX_AT_ONCE), 100) == []
    assert len(webhook_deliveries.claim_due(ctx.db, {}, 2)) == 2


def test_attempts_become_rare_and_end(ctx: AppContext, clock: Any) -> None:
    create(ctx)
    end_job(ctx.db)
    delays = []
    for _ in range(len(webhook_deliveries.RETRY_SECONDS) + 1):
        (attempt,) = webhook_deliveries.claim_due(ctx.db, {}, 10)
        webhook_deliveries.record(ctx.db, attempt, FAILED)
        (row,) = deliveries(ctx.db)
        delays.append((row.due_at - clock.now).total_seconds())
        clock.now = max(row.due_at, clock.now)
    assert delays[:-1] == pytest.approx(webhook_deliveries.RETRY_SECONDS, rel=0.11)
    assert (row.state, row.error, row.response_status) == ("failed", "the receiver returned 500", 500)
    clock.advance(1e7)
    assert webhook_deliveries.claim_due(ctx.db, {}, 10) == []


def test_a_webhook_is_disabled_after_days_of_failures_and_a_test_enables_it(
    ctx: AppContext, clock: Any
) -> None:
    webhook_id = create(ctx)
    end_job(ctx.db)
    (attempt,) = webhook_deliveries.claim_due(ctx.db, {}, 10)
    webhook_deliveries.record(ctx.db, attempt, FAILED)
    assert service.get(ctx.db, webhook_id).failing_since == clock.now
    clock.advance(6 * 86_400)
    end_job(ctx.db)
    attempt, other = webhook_deliveries.claim_due(ctx.db, {}, 10)
    webhook_deliveries.record(ctx.db, attempt, FAILED)
    disabled = service.get(ctx.db, webhook_id)
    assert disabled.disabled_at == clock.now
    assert disabled.disabled_reason is not None
    assert "for 6.0 days; the last: the receiver returned 500" in disabled.disabled_reason
    assert {row.state for row in deliveries(ctx.db)} == {"failed"}
    webhook_deliveries.record(ctx.db, other, ACCEPTED)  # it was being sent; too late
    end_job(ctx.db)
    assert webhook_deliveries.claim_due(ctx.db, {}, 10) == []

    service.send_test(ctx.db, webhook_id)
    (attempt,) = webhook_deliveries.claim_due(ctx.db, {}, 10)
    webhook_deliveries.record(ctx.db, attempt, ACCEPTED)
    enabled = service.get(ctx.db, webhook_id)
    assert (enabled.disabled_at, enabled.disabled_reason, enabled.failing_since) == (None, None, None)
    end_job(ctx.db)
    assert len(webhook_deliveries.claim_due(ctx.db, {}, 10)) == 1


def test_a_success_ends_the_time_of_failures(ctx: AppContext, clock: Any) -> None:
    webhook_id = create(ctx)
    for outcome in (FAILED, ACCEPTED, FAILED):
        end_job(ctx.db)
        clock.advance(4 * 86_400)
        for attempt in webhook_deliveries.claim_due(ctx.db, {}, 10):
            webhook_deliveries.record(ctx.db, attempt, outcome)
    assert service.get(ctx.db, webhook_id).disabled_at is None


def test_a_receiver_that_is_gone_is_disabled_at_once(ctx: AppContext) -> None:
    webhook_id = create(ctx)
    end_job(ctx.db)
    (attempt,) = webhook_deliveries.claim_due(ctx.db, {}, 10)
    webhook_deliveries.record(ctx.db, attempt, Outcome(410, "the receiver returned 410"))
    assert service.get(ctx.db, webhook_id).disabled_reason == "the receiver returned 410 Gone"


def test_a_webhook_that_is_deleted_while_events_are_claimed_delays_no_other(
    ctx: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted, other = create(ctx), create(ctx)
    end_job(ctx.db)

    def claim(tx: Any, webhook_id: str, limit: int) -> Any:
        if webhook_id == deleted:
            tx.session.execute(delete(tables.Webhook).where(tables.Webhook.id == deleted))
        return original(tx, webhook_id, limit)

    original = webhook_deliveries._claim
    monkeypatch.setattr(webhook_deliveries, "_claim", claim)
    assert [attempt.webhook_id for attempt in webhook_deliveries.claim_due(ctx.db, {}, 10)] == [other]


def test_an_outcome_for_a_deleted_webhook_is_ignored(ctx: AppContext) -> None:
    webhook_id = create(ctx)
    end_job(ctx.db)
    (attempt,) = webhook_deliveries.claim_due(ctx.db, {}, 10)
    service.delete(ctx.db, webhook_id)
    webhook_deliveries.record(ctx.db, attempt, FAILED)
    assert deliveries(ctx.db) == []


def test_decisions_that_need_a_review_are_events_without_text_and_addresses(
    ctx: AppContext, clock: Any
) -> None:
    decide(ctx, clock)
    clock.advance(1)
    create(ctx, "decision.review")
    create(ctx, "decision.review", router="other")
    create(ctx, "decision.review", model="other")
    clock.advance(1)
    decide(ctx, clock, disposition="routed")
    review = decide(ctx, clock)
    assert webhook_deliveries.queue_reviews(ctx.db) == 1
    (row,) = deliveries(ctx.db)
    assert row.created_at == clock.now
    assert row.data == {
        "decision_id": review,
        "router": "desk",
        "model": "m",
        "version": 2,
        "disposition": "review",
        "sampled": False,
        "set_probability": 0.4,
        "labels": ["billing"],
    }
    sampled = decide(ctx, clock, disposition="routed", sampled=True)
    assert webhook_deliveries.queue_reviews(ctx.db) == 1
    (row,) = (row for row in deliveries(ctx.db) if row.decision_id == sampled)
    assert (row.data["disposition"], row.data["sampled"]) == ("routed", True)
    decide(ctx, clock, disposition="fallback")
    assert webhook_deliveries.queue_reviews(ctx.db) == 1


def test_a_review_is_queued_once_also_if_it_is_committed_after_later_ones(
    ctx: AppContext, clock: Any
) -> None:
    create(ctx, "decision.review")
    early = new_id("dec")
    late = decide(ctx, clock)
    assert webhook_deliveries.queue_reviews(ctx.db) == 1
    decide(ctx, clock, id_=early)
    assert webhook_deliveries.queue_reviews(ctx.db) == 1
    for _ in range(5):
        clock.advance(webhook_deliveries.LATE.total_seconds() / 2)
        assert webhook_deliveries.queue_reviews(ctx.db) == 0
    assert {row.decision_id for row in deliveries(ctx.db)} == {early, late}


def test_many_reviews_wait_without_being_lost(
    ctx: AppContext, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_deliveries, "MAX_REVIEWS", 2)
    monkeypatch.setattr(webhook_deliveries, "MAX_PENDING", 4)
    create(ctx, "decision.review")
    expected = {decide(ctx, clock) for _ in range(7)}
    clock.advance(3600)  # no worker has run in this time
    sent = []
    for _ in range(20):
        webhook_deliveries.queue_reviews(ctx.db)
        clock.advance(120)
        for attempt in webhook_deliveries.claim_due(ctx.db, {}, 1):
            sent.append(attempt.data["decision_id"])
            webhook_deliveries.record(ctx.db, attempt, ACCEPTED)
    assert sorted(sent) == sorted(expected)


def test_old_deliveries_are_deleted_unless_they_are_pending(ctx: AppContext, clock: Any) -> None:
    create(ctx)
    end_job(ctx.db)
    (attempt,) = webhook_deliveries.claim_due(ctx.db, {}, 10)
    webhook_deliveries.record(ctx.db, attempt, ACCEPTED)
    end_job(ctx.db)
    # Ids have the time of the machine, so the clock moves from there.
    with ctx.db.write() as tx:
        for row in tx.session.scalars(select(tables.WebhookDelivery)):
            row.finished_at = None if row.state == "pending" else clock.now
    clock.advance(3650 * 86_400)
    assert retention.delete_expired_rows(ctx, lambda: False)["webhook_deliveries"] == 1
    assert [row.state for row in deliveries(ctx.db)] == ["pending"]
