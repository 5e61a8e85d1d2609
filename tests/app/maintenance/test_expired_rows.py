"""Rows expire after the time that the settings allow, unless something still refers to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from sqlalchemy import event, func, select

from app.context import AppContext
from app.db import tables
from app.ids import first_id
from app.maintenance import retention
from app.settings import Settings


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "PAUSE_SECONDS", 0.0)


def set_batch_size(monkeypatch: pytest.MonkeyPatch, n_rows: int) -> None:
    rules = [replace(rule, batch_size=n_rows) for rule in retention.RULES]
    monkeypatch.setattr(retention, "RULES", rules)


def with_settings(ctx: AppContext, **changes: Any) -> AppContext:
    return replace(ctx, settings=ctx.settings.model_copy(update=changes))


def insert(ctx: AppContext, *objects: Any) -> None:
    with ctx.db.write() as tx:
        for item in objects:
            tx.session.add(item)
            tx.session.flush()


def count(ctx: AppContext, table: type[tables.Base]) -> int:
    with ctx.db.read() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


def ids(ctx: AppContext, table: Any) -> set[str]:
    with ctx.db.read() as session:
        return set(session.scalars(select(table.id)))


def decision(created_at: datetime, n: int = 0) -> tables.Decision:
    return tables.Decision(
        id=first_id("dec", created_at)[:-6] + f"{n:06d}",
        router_id="rtr_1",
        router="desk",
        message_key=f"{created_at}{n}",
        response={},
        created_at=created_at,
    )


def job(id_: str, finished_at: datetime | None, state: str = "succeeded") -> tables.Job:
    created_at = finished_at or datetime.fromisoformat("2025-01-01T00:00:00Z")
    return tables.Job(
        id=first_id("job", created_at)[:-6] + id_,
        kind="train",
        state=state,
        spec={},
        claim_order=0,
        created_at=created_at,
        due_at=created_at,
        finished_at=finished_at,
    )


def experiment(job_id: str, finished_at: datetime) -> tables.Experiment:
    return tables.Experiment(
        id=first_id("exp", finished_at),
        dataset_id="ds_1",
        request={},
        state="succeeded",
        job_id=job_id,
        created_at=finished_at,
        finished_at=finished_at,
    )


def worker(id_: str, last_seen_at: datetime) -> tables.Worker:
    return tables.Worker(
        id=id_,
        host="h",
        pid=1,
        machine="",
        concurrency=1,
        started_at=last_seen_at,
        last_seen_at=last_seen_at,
    )


def record(key: str, created_at: datetime) -> tables.IdempotencyRecord:
    return tables.IdempotencyRecord(
        caller="anonymous", key=key, fingerprint="f", response={}, created_at=created_at
    )


def test_an_expired_decision_is_deleted_with_its_labels(ctx: AppContext, clock: Any) -> None:
    departments = {"departments": [{"label": "billing"}, {"label": "legal"}]}
    old, new = decision(clock.now), decision(clock.now + timedelta(days=5))
    for row in (old, new):
        row.response = departments
        labels = [
            tables.DecisionLabel(router_id="rtr_1", label=label, decision_id=row.id)
            for label in ("billing", "legal")
        ]
        insert(ctx, row, *labels)
        insert(ctx, tables.Review(decision_id=row.id, note="?"))
    clock.advance(timedelta(days=11).total_seconds())
    retention.apply_retention(with_settings(ctx, keep_decisions_days=10.0))
    assert ids(ctx, tables.Decision) == {new.id}
    with ctx.db.read() as session:
        assert session.scalars(select(tables.DecisionLabel.decision_id)).all() == [new.id] * 2
        assert session.scalars(select(tables.Review.decision_id)).all() == [new.id]


@pytest.mark.parametrize(
    ("table", "setting", "make"),
    [
        (tables.Decision, "keep_decisions_days", decision),
        (tables.Job, "keep_jobs_days", lambda at: job("aaaaaa", at)),
        (tables.IdempotencyRecord, "KEEP_IDEMPOTENCY_DAYS", lambda at: record("k", at)),
        (tables.Worker, "KEEP_WORKERS_DAYS", lambda at: worker("wrk_1", at)),
    ],
)
def test_a_row_is_kept_for_its_days(
    ctx: AppContext,
    clock: Any,
    monkeypatch: pytest.MonkeyPatch,
    table: type[tables.Base],
    setting: str,
    make: Callable[[datetime], tables.Base],
) -> None:
    def apply_retention(days: float) -> None:
        if setting in Settings.model_fields:
            retention.apply_retention(with_settings(ctx, **{setting: days}))
        else:
            monkeypatch.setattr(retention, setting, days)
            retention.apply_retention(ctx)

    insert(ctx, make(clock.now))
    clock.advance(timedelta(days=10).total_seconds())
    apply_retention(10.0)
    assert count(ctx, table) == 1, "it is exactly ten days old"
    clock.advance(1)
    apply_retention(0.0)
    assert count(ctx, table) == 1, "0 means never"
    apply_retention(10.0)
    assert count(ctx, table) == 0


def test_a_worker_that_holds_a_lease_is_kept(ctx: AppContext, clock: Any) -> None:
    running = job("aaaaaa", None, "running")
    running.lease_owner = "wrk_with_lease"
    insert(ctx, worker("wrk_dead", clock.now), worker("wrk_with_lease", clock.now), running)
    clock.advance(timedelta(days=2).total_seconds())
    retention.apply_retention(ctx)
    assert ids(ctx, tables.Worker) == {"wrk_with_lease"}


def test_a_finished_job_expires_with_its_events_and_its_curve(
    ctx: AppContext, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH_SIZE", 7)
    set_batch_size(monkeypatch, 2)
    for letter in "abcde":
        row = job(letter * 6, clock.now)
        points = [tables.CurvePoint(job_id=row.id, step=step, measures={}) for step in range(1, 11)]
        events = [
            tables.JobEvent(job_id=row.id, seq=seq, at=clock.now, type="t", detail={}) for seq in range(1, 5)
        ]
        insert(ctx, row, *points, *events)
    clock.advance(timedelta(days=91).total_seconds())
    assert retention.apply_retention(ctx).rows == 5
    assert [count(ctx, table) for table in (tables.Job, tables.CurvePoint, tables.JobEvent)] == [0, 0, 0]


@pytest.mark.parametrize("state", ["queued", "running"])
def test_an_unfinished_job_never_expires(ctx: AppContext, clock: Any, state: str) -> None:
    insert(ctx, job("aaaaaa", None, state))
    clock.advance(timedelta(days=9999).total_seconds())
    retention.apply_retention(ctx)
    assert count(ctx, tables.Job) == 1


def test_jobs_of_existing_versions_evaluations_and_experiments_are_kept(ctx: AppContext, clock: Any) -> None:
    names = ("training", "evaluation", "plan", "cell", "unreferenced")
    jobs = {name: job(name[:6].ljust(6, "x"), clock.now) for name in names}
    insert(ctx, *jobs.values(), tables.Model(name="m", last_version=1, created_at=clock.now))
    plan = experiment(jobs["plan"].id, clock.now)
    insert(
        ctx,
        tables.ModelVersion(
            model="m",
            version=1,
            artifact_key="artifacts/a",
            artifact_sha256="0" * 64,
            artifact_bytes=1,
            training_job_id=jobs["training"].id,
            description={},
            created_at=clock.now,
        ),
        tables.Evaluation(
            id="evl_1",
            model="m",
            version=1,
            job_id=jobs["evaluation"].id,
            of_training=False,
            dataset_id="ds_1",
            request={},
            created_at=clock.now,
        ),
        plan,
        tables.ExperimentCell(experiment_id=plan.id, configuration=0, fold=0, job_id=jobs["cell"].id),
    )
    clock.advance(timedelta(days=1000).total_seconds())
    retention.apply_retention(ctx)
    kept = {jobs[name].id for name in names if name != "unreferenced"}
    assert ids(ctx, tables.Job) == kept
    assert ids(ctx, tables.Experiment) == {plan.id}, "experiments are kept by default"
    # An experiment expires as a whole.
    retention.apply_retention(with_settings(ctx, keep_experiments_days=365.0))
    assert ids(ctx, tables.Experiment) == set()
    assert count(ctx, tables.ExperimentCell) == 0
    assert ids(ctx, tables.Job) == kept - {jobs["plan"].id, jobs["cell"].id}


def test_a_running_experiment_never_expires(ctx: AppContext, clock: Any) -> None:
    plan = job("aaaaaa", clock.now)
    row = experiment(plan.id, clock.now)
    row.state, row.finished_at = "running", None
    insert(ctx, plan, row)
    clock.advance(timedelta(days=1000).total_seconds())
    retention.apply_retention(with_settings(ctx, keep_experiments_days=365.0))
    assert ids(ctx, tables.Experiment) == {row.id}
    assert ids(ctx, tables.Job) == {plan.id}


def test_rows_are_deleted_in_small_transactions_and_a_pass_is_bounded(
    ctx: AppContext, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_batch_size(monkeypatch, 10)
    monkeypatch.setattr(retention, "MAX_BATCHES", 4)
    insert(ctx, *(decision(clock.now, n) for n in range(65)))
    insert(ctx, decision(clock.now + timedelta(days=300)))
    clock.advance(timedelta(days=366).total_seconds())
    deleted_at_once = []
    event.listen(
        ctx.db.engine,
        "after_cursor_execute",
        lambda _connection, cursor, statement, *_: (
            deleted_at_once.append(cursor.rowcount) if statement.startswith("DELETE FROM decisions") else None
        ),
    )
    assert retention.apply_retention(ctx).rows == 40
    assert retention.apply_retention(ctx).rows == 25
    assert max(deleted_at_once) == 10
    assert count(ctx, tables.Decision) == 1


def test_several_workers_delete_expired_rows_at_the_same_time(
    ctx: AppContext, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_batch_size(monkeypatch, 10)
    insert(
        ctx, *(decision(clock.now, n) for n in range(200)), *(job(f"{n:06d}", clock.now) for n in range(60))
    )
    clock.advance(timedelta(days=366).total_seconds())
    barrier, failures, deleted = Barrier(3), [], []

    def run() -> None:
        barrier.wait()
        try:
            deleted.append(retention.apply_retention(ctx).rows)
        except Exception as error:  # noqa: BLE001 - the assertion below reports it
            failures.append(error)

    threads = [Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    retention.apply_retention(ctx)  # a worker skips rows that another one has locked
    assert count(ctx, tables.Decision) == count(ctx, tables.Job) == 0
