"""The job queue: claims, leases, fencing, cancellation, notifications and progress."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import rows
from racing_processes import race
from sqlalchemy import event, select, text
from waiting import wait_for

from app.context import AppContext
from app.db import tables
from app.db.session import DATABASE_UNAVAILABLE, Database, Transaction
from app.db.tables import Job
from app.jobs import handing_out, queue
from app.jobs.handing_out import Task, hand_out, mark_sent, perhaps_lost
from app.jobs.kinds import Kind
from app.jobs.queue import Claim, LostClaimError
from app.training import service as training
from workers import job_kinds

ERROR = {"type": "about:blank", "title": "No", "status": 422, "code": "no", "detail": "invalid"}


def requeue_lost(database: Database) -> list[str]:
    """Requeue lost jobs, as the maintenance process does. Return their ids."""
    with database.write() as tx:
        jobs = queue.lost(tx)
        for job in jobs:
            job_kinds.handle_loss(
                tx, job, attempts=10, reason="its worker sent no heartbeat", process_died=False
            )
    return [job.id for job in jobs]


def lose_process(database: Database, job_id: str, attempts: int = 10) -> None:
    """Handle the death of the job's process, as the watching process does."""
    with database.write() as tx:
        job = queue.lock(tx, job_id)
        assert job is not None
        job_kinds.handle_loss(
            tx, job, attempts=attempts, reason="its process died", process_died=True, log=["last line"]
        )


def checkpoint(database: Database, claim: Claim, step: int = 1) -> dict[str, Any]:
    """Report progress with a checkpoint. Return the checkpoint."""
    checkpoint = {"key": f"checkpoints/{claim.job_id}.{claim.fence}.{step}.safetensors", "fence": claim.fence}
    queue.report_progress(
        database, claim, {"phase": "training"}, curve={step: {"z": 0.5}}, checkpoint=checkpoint
    )
    return checkpoint


def cancel(database: Database, job_id: str) -> None:
    with database.write() as tx:
        job = queue.lock(tx, job_id)
        assert job is not None
        queue.request_cancel(tx, job)


# Claiming


def test_a_queued_job_is_due_and_workers_are_notified(database: Database, notified: list[str]) -> None:
    job_id = rows.queued(database, {"a": 1})
    assert notified == [job_id]
    job = rows.job(database, job_id)
    assert (job.state, job.attempt, job.fence, job.lease_owner) == ("queued", 0, 0, None)
    assert job.due_at == job.created_at
    assert rows.events(database, job_id) == ["queued"]


def claim_next(database: Database, owner: str = "wrk_1") -> str | None:
    """Claim the next job, and return its id."""
    claim = rows.claim_next(database, owner)
    return claim.job_id if claim is not None else None


def test_a_claim_locks_the_job_and_returns_its_spec(database: Database, clock: Any) -> None:
    job_id = rows.queued(database, {"a": 1})
    clock.advance(5)
    claim = rows.claim_next(database, "wrk_1", seconds=8)
    assert claim == Claim(job_id, fence=1, kind="train", spec={"a": 1}, dataset_id=None, attempt=1)
    job = rows.job(database, job_id)
    assert (job.state, job.lease_owner, job.started_at) == ("running", "wrk_1", clock.now)
    assert job.lease_expires_at == clock.now + timedelta(seconds=8)
    assert rows.events(database, job_id) == ["queued", "started"]


def test_only_one_of_many_threads_can_claim_a_job(database: Database) -> None:
    job_ids = [rows.queued(database) for _ in range(10)]
    barrier = threading.Barrier(6)

    def claim_all(n: int) -> list[str]:
        barrier.wait()
        claims = [queue.claim(database, job_id, f"wrk_{n}", lease_seconds=60) for job_id in job_ids]
        return [claim.job_id for claim in claims if claim is not None]

    with ThreadPoolExecutor(6) as pool:
        claimed = [job_id for ids in pool.map(claim_all, range(6)) for job_id in ids]
    assert sorted(claimed) == sorted(job_ids)
    for job_id in job_ids:
        assert rows.job(database, job_id).attempt == 1
        assert rows.events(database, job_id) == ["queued", "started"]


def test_only_one_of_many_processes_can_claim_a_job(database: Database, database_url: str) -> None:
    job_ids = [rows.queued(database) for _ in range(25)]
    claimed = [job_id for ids in race(4, "claim", database_url, *job_ids) for job_id in ids]
    assert sorted(claimed) == sorted(job_ids)
    assert {rows.job(database, job_id).fence for job_id in job_ids} == {1}


def test_only_one_of_many_processes_hands_out_a_job(database: Database, database_url: str) -> None:
    job_ids = [rows.queued(database) for _ in range(25)]
    sent = [job_id for ids in race(4, "send", database_url) for job_id in ids]
    assert sorted(sent) == sorted(job_ids)


# SQLite allows only one writer at a time.
@pytest.mark.parametrize("kind_of_database", ["postgresql"], indirect=True)
def test_a_relay_does_not_wait_for_a_job_that_a_request_changes(database: Database) -> None:
    first, second = rows.queued(database), rows.queued(database)
    with database.write() as tx:
        assert queue.lock(tx, first) is not None
        assert [task.job_id for task in hand_out(database, ahead=1)] == [second]
    assert [task.job_id for task in hand_out(database, ahead=2)] == [first]


@pytest.mark.parametrize("kind_of_database", ["postgresql"], indirect=True)
@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_relay_waits_for_another_one_unless_that_is_frozen(
    database: Database, monkeypatch: pytest.MonkeyPatch, is_frozen: bool
) -> None:
    """Otherwise both would fill the same room, and a job could overtake a more urgent one."""
    monkeypatch.setattr(handing_out, "FROZEN_SECONDS", 0.1 if is_frozen else 600.0)
    normal, urgent = rows.queued(database), rows.queued(database, priority=1)
    found: list[list[Task]] = []
    other = threading.Thread(target=lambda: found.append(hand_out(database, ahead=1)))
    next_jobs = handing_out._next_jobs

    def start_the_other(tx: Transaction, name: str, n: int) -> list[Job]:
        jobs = next_jobs(tx, name, n)
        monkeypatch.setattr(handing_out, "_next_jobs", next_jobs)
        other.start()
        if is_frozen:
            other.join()
        else:
            wait_for(lambda: _waits_for_a_lock(database), what="the other relay to wait")
        return jobs

    monkeypatch.setattr(handing_out, "_next_jobs", start_the_other)
    if is_frozen:
        with pytest.raises(DATABASE_UNAVAILABLE):
            hand_out(database, ahead=1)
        assert [[task.job_id for task in tasks] for tasks in found] == [[urgent]]
    else:
        assert [task.job_id for task in hand_out(database, ahead=1)] == [urgent]
        other.join()
        assert found == [[]]
    rows.claimed(database, urgent)
    assert [task.job_id for task in hand_out(database, ahead=1)] == [normal]


_WAITING = """
    SELECT count(*) FROM pg_locks JOIN pg_database ON pg_locks.database = pg_database.oid
    WHERE NOT granted AND locktype = 'advisory' AND datname = current_database()
"""


def _waits_for_a_lock(database: Database) -> bool | None:
    with database.read() as session:
        return session.scalar(text(_WAITING)) == 1 or None


def test_a_queue_holds_no_more_than_the_next_few_jobs(database: Database) -> None:
    job_ids = [rows.queued(database) for _ in range(4)]
    evaluation = rows.queued(database, kind="evaluate")
    assert [task.job_id for task in hand_out(database, ahead=2)] == [evaluation, *job_ids[:2]]
    urgent = rows.queued(database, priority=1)
    assert hand_out(database, ahead=2) == []
    rows.claimed(database, job_ids[0])
    assert [task.job_id for task in hand_out(database, ahead=2)] == [urgent]
    assert perhaps_lost(database) == {}


def test_tasks_that_no_worker_starts_may_be_lost(database: Database, clock: Any) -> None:
    first, second = rows.queued(database), rows.queued(database, kind="experiment")
    tasks = hand_out(database, ahead=2)
    clock.advance(1.9)
    assert perhaps_lost(database) == {}
    clock.advance(0.2)
    assert perhaps_lost(database) == {"training": tasks}
    rows.claimed(database, first)
    (task,) = perhaps_lost(database)["training"]
    assert (task.job_id, task.name, task.queue) == (second, "covey.experiment", "training")
    mark_sent(database, tasks)
    assert perhaps_lost(database) == {}
    clock.advance(2.1)
    assert perhaps_lost(database) == {"training": [task]}, "a started job is not marked"


@pytest.mark.parametrize("kind_of_database", ["sqlite"], indirect=True)
def test_a_look_for_jobs_to_hand_out_does_not_wait_for_a_writer(database: Database) -> None:
    rows.claimed(database, rows.queued(database))
    with database.write() as tx:
        tx.session.flush()
        assert claim_next(database) is None


# The order of claims


def test_jobs_are_claimed_by_kind_and_the_oldest_first_within_a_kind(database: Database) -> None:
    kinds: list[Kind] = ["cell", "train", "evaluate", "experiment", "ingest"] * 2
    ids = [rows.queued(database, kind=kind) for kind in kinds]
    cells, trains, evaluations, experiments, ingestions = (ids[n::5] for n in range(5))
    assert [claim_next(database) for _ in ids] == [
        *ingestions,
        *evaluations,
        *(trains[0], experiments[0], trains[1], experiments[1]),
        *cells,
    ]
    assert claim_next(database) is None


def test_a_higher_priority_goes_first_within_a_kind_only(database: Database) -> None:
    low, normal = rows.queued(database, priority=-100), rows.queued(database)
    high = rows.queued(database, priority=100)
    cell = rows.queued(database, kind="cell", priority=100)
    evaluation = rows.queued(database, kind="evaluate", priority=-100)
    assert [claim_next(database) for _ in range(5)] == [evaluation, high, normal, low, cell]


def test_the_key_with_the_fewest_running_jobs_goes_first(database: Database) -> None:
    many = [rows.queued(database, key_id="key_many") for _ in range(6)]
    anonymous = [rows.queued(database) for _ in range(2)]
    few = [rows.queued(database, key_id="key_few") for _ in range(2)]
    claimed = [claim_next(database) for _ in range(6)]
    assert claimed == [many[0], anonymous[0], few[0], many[1], anonymous[1], few[1]]
    with database.write() as tx:
        for job_id in (many[0], many[1]):
            job = queue.lock(tx, job_id)
            assert job is not None
            queue.finish_unclaimed(tx, job, "cancelled")
    late = rows.queued(database, key_id="key_few")
    assert [claim_next(database) for _ in range(5)] == [many[2], many[3], many[4], late, many[5]]


def test_jobs_that_are_not_due_do_not_hold_up_others(database: Database, clock: Any) -> None:
    lost, other = rows.queued(database, kind="ingest"), rows.queued(database, key_id="key_1")
    with database.write() as tx:
        job = queue.lock(tx, lost)
        assert job is not None
        job.due_at = clock.now + timedelta(seconds=10)
    assert claim_next(database) == other
    assert claim_next(database) is None
    clock.advance(10)
    assert claim_next(database) == lost


@pytest.mark.parametrize("kind_of_database", ["sqlite"], indirect=True)
def test_handing_out_reads_only_the_jobs_that_come_first(database: Database) -> None:
    """Indexes give the order, so that nothing sorts or reads all queued jobs."""
    for key_id in (None, "key_1", "key_2"):
        rows.queued(database, key_id=key_id)
    statements: list[tuple[str, Any]] = []

    @event.listens_for(database.engine, "before_cursor_execute")
    def record(_c: Any, _cursor: Any, statement: str, parameters: Any, _ctx: Any, _many: bool) -> None:
        statements.append((statement, parameters))

    assert claim_next(database) is not None
    queries = [
        query for query in statements if query[0].startswith(("SELECT", "WITH")) and "jobs" in query[0]
    ]
    assert len(queries) >= 4
    with database.engine.connect() as connection:
        for statement, parameters in queries:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            steps = [str(step[-1]) for step in plan]
            assert not [step for step in steps if "SCAN jobs" in step or "FOR ORDER BY" in step], statement


# Leases


def test_a_renewed_lease_does_not_expire(database: Database, clock: Any) -> None:
    job_id = rows.queued(database)
    claim = rows.claimed(database, job_id, seconds=10)
    for _ in range(5):
        clock.advance(9)
        assert queue.renew_lease(database, claim, lease_seconds=10) is False
        assert requeue_lost(database) == []
    clock.advance(10)
    assert requeue_lost(database) == [], "the lease has not expired yet"
    clock.advance(0.001)
    assert requeue_lost(database) == [job_id]


def test_a_job_whose_lease_expires_is_queued_again(
    database: Database, clock: Any, notified: list[str]
) -> None:
    job_id = rows.queued(database)
    rows.claimed(database, job_id, seconds=10)
    notified.clear()
    clock.advance(10.1)
    assert requeue_lost(database) == [job_id]
    assert notified == [job_id], "the first retry is immediate"
    job = rows.job(database, job_id)
    assert (job.state, job.lease_owner, job.lease_expires_at) == ("queued", None, None)
    assert rows.claimed(database, job_id, "wrk_2").attempt == 2
    assert rows.events(database, job_id) == ["queued", "started", "lost", "started"]


def test_the_delay_grows_with_each_consecutive_loss(
    database: Database, clock: Any, notified: list[str]
) -> None:
    job_id = rows.queued(database)
    delays = []
    for _ in range(8):
        rows.claimed(database, job_id, seconds=1)
        clock.advance(1.1)
        notified.clear()
        requeue_lost(database)
        delays.append((rows.job(database, job_id).due_at - clock.now).total_seconds())
        if delays[-1]:
            assert notified == [], "workers are not notified about a job that is not due"
            clock.advance(delays[-1] - 0.001)
            assert claim_next(database) is None
            clock.advance(0.001)
    assert delays == [0, 2, 4, 8, 16, 30, 30, 30]


def test_a_job_fails_after_the_maximum_number_of_failures(database: Database, clock: Any) -> None:
    job_id = rows.queued(database)
    for _ in range(3):
        clock.advance(60)
        rows.claimed(database, job_id, seconds=1)
        clock.advance(2)
        lose_process(database, job_id, attempts=3)
    job = rows.job(database, job_id)
    assert (job.state, job.attempt) == ("failed", 3)
    assert job.error is not None
    assert job.error["code"] == "worker_lost"
    assert "3 times" in job.error["detail"]
    assert "its process died" in job.error["detail"]
    assert job.error["log"] == ["last line"]
    assert job.finished_at == clock.now
    assert rows.events(database, job_id)[-3:] == ["lost", "started", "failed"]


def test_attempts_lost_with_their_worker_do_not_count_as_failures(database: Database, clock: Any) -> None:
    job_id = rows.queued(database)
    for _ in range(20):
        clock.advance(60)
        rows.claimed(database, job_id, seconds=1)
        clock.advance(2)
        assert requeue_lost(database) == [job_id]
    job = rows.job(database, job_id)
    assert (job.state, job.attempt, job.failures) == ("queued", 20, 0)


def test_attempts_with_progress_do_not_count_and_are_retried_immediately(
    database: Database, clock: Any
) -> None:
    job_id = rows.queued(database)
    for step in range(20):
        checkpoint(database, rows.claimed(database, job_id), step)
        lose_process(database, job_id, attempts=2)
        assert rows.job(database, job_id).due_at == clock.now
    assert rows.job(database, job_id).failures == 0
    # An attempt that only loads the last checkpoint makes no progress.
    for _ in range(2):
        clock.advance(60)
        rows.claimed(database, job_id)
        lose_process(database, job_id, attempts=2)
    assert rows.job(database, job_id).state == "failed"


def test_a_checkpoint_is_passed_to_the_next_attempt_and_removed_at_the_end(
    database: Database,
) -> None:
    job_id = rows.queued(database)
    first = rows.claimed(database, job_id)
    assert first.checkpoint is None
    saved = checkpoint(database, first)
    lose_process(database, job_id)
    with pytest.raises(LostClaimError):
        checkpoint(database, first, step=2)
    second = rows.claimed(database, job_id)
    assert second.checkpoint == saved
    assert queue.load_claim(database, job_id, second.fence) == second
    with database.write() as tx:
        queue.finish(tx, second, "succeeded")
    assert rows.job(database, job_id).checkpoint is None


def test_jobs_of_a_dead_worker_are_lost_before_their_lease_expires(database: Database) -> None:
    lost, running = rows.queued(database), rows.queued(database)
    rows.claimed(database, lost, "wrk_1", seconds=600)
    rows.claimed(database, running, "wrk_2", seconds=600)
    with database.write() as tx:
        assert queue.lost(tx) == []
        assert [job.id for job in queue.lost(tx, dead_workers=["wrk_1"])] == [lost]


def test_a_released_job_does_not_count_as_a_failure(
    ctx: AppContext, database: Database, notified: list[str]
) -> None:
    job_id = rows.queued(database)
    claim = rows.claimed(database, job_id)
    notified.clear()
    job_kinds.release(ctx, claim, reason="the worker is stopping")
    assert notified == [job_id]
    job = rows.job(database, job_id)
    assert (job.state, job.failures, job.consecutive_losses, job.lease_owner) == ("queued", 0, 0, None)
    assert rows.claimed(database, job_id, "wrk_2").attempt == 2
    assert rows.events(database, job_id) == ["queued", "started", "released", "started"]


# Fencing


def late_writes() -> dict[str, Callable[[AppContext, Claim], None]]:
    """Return all writes that a worker can attempt after it lost its claim."""

    def finish(ctx: AppContext, claim: Claim) -> None:
        with ctx.db.write() as tx:
            tx.session.add(tables.Model(name="too-late", last_version=1, created_at=tx.now))
            tx.session.flush()
            queue.finish(tx, claim, "succeeded", result={"model": "too-late"})

    def finish_first(ctx: AppContext, claim: Claim) -> None:
        with ctx.db.write() as tx:
            queue.finish(tx, claim, "succeeded")
            tx.session.add(tables.Model(name="too-late", last_version=1, created_at=tx.now))

    def release(ctx: AppContext, claim: Claim) -> None:
        with ctx.db.write() as tx:
            queue.release(tx, claim, reason="late")

    return {
        "renew": lambda ctx, claim: discard(queue.renew_lease(ctx.db, claim, lease_seconds=1000)),
        "report": lambda ctx, claim: discard(
            queue.report_progress(ctx.db, claim, {"phase": "late"}, curve={1: {"loss": 0.1}}, event="phase")
        ),
        "finish": finish,
        "finish_first": finish_first,
        "release": release,
        "load_claim": lambda ctx, claim: discard(queue.load_claim(ctx.db, claim.job_id, claim.fence)),
        "job_kinds.fail": lambda ctx, claim: job_kinds.fail(ctx, claim, ERROR),
        "job_kinds.cancel": job_kinds.cancel,
        "job_kinds.release": lambda ctx, claim: job_kinds.release(ctx, claim, reason="late"),
    }


def discard(_: object) -> None:
    pass


def ways_to_lose_a_claim() -> dict[str, Callable[[AppContext, Any, Claim], None]]:
    """Return functions, each of which changes a job so that its current claim is lost."""

    def queued_again(ctx: AppContext, clock: Any, claim: Claim) -> None:
        clock.advance(100)
        requeue_lost(ctx.db)

    def claimed_by_another(ctx: AppContext, clock: Any, claim: Claim) -> None:
        queued_again(ctx, clock, claim)
        rows.claimed(ctx.db, claim.job_id, "wrk_2")

    def released(ctx: AppContext, clock: Any, claim: Claim) -> None:
        job_kinds.release(ctx, claim, reason="stop")

    def released_and_claimed(ctx: AppContext, clock: Any, claim: Claim) -> None:
        released(ctx, clock, claim)
        rows.claimed(ctx.db, claim.job_id, "wrk_2")

    def finished(ctx: AppContext, clock: Any, claim: Claim) -> None:
        with ctx.db.write() as tx:
            queue.finish(tx, claim, "succeeded", result={"finished": "in time"})

    def failed(ctx: AppContext, clock: Any, claim: Claim) -> None:
        clock.advance(100)
        lose_process(ctx.db, claim.job_id, attempts=1)

    ways = (claimed_by_another, queued_again, released, released_and_claimed, finished, failed)
    return {way.__name__: way for way in ways}


@pytest.mark.parametrize("way", ways_to_lose_a_claim())
@pytest.mark.parametrize("late_write", late_writes())
def test_a_write_without_a_valid_claim_changes_nothing(
    ctx: AppContext, clock: Any, notified: list[str], late_write: str, way: str
) -> None:
    claim = rows.claimed(ctx.db, rows.queued(ctx.db))
    ways_to_lose_a_claim()[way](ctx, clock, claim)
    before = rows.all_rows(ctx.db)
    notified.clear()
    with pytest.raises(LostClaimError):
        late_writes()[late_write](ctx, claim)
    assert rows.all_rows(ctx.db) == before
    assert notified == []


def test_a_valid_claim_can_be_loaded(database: Database) -> None:
    claim = rows.claimed(database, rows.queued(database, {"a": [1]}))
    assert queue.load_claim(database, claim.job_id, claim.fence) == claim


def test_a_job_finishes_once(database: Database) -> None:
    claim = rows.claimed(database, rows.queued(database))
    barrier = threading.Barrier(4)

    def finish(state: queue.FinalState) -> bool:
        barrier.wait()
        try:
            with database.write() as tx:
                queue.finish(tx, claim, state, error=ERROR if state == "failed" else None)
        except LostClaimError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        succeeded = list(pool.map(finish, ("succeeded", "failed", "cancelled", "succeeded")))
    assert succeeded.count(True) == 1
    assert len(rows.events(database, claim.job_id)) == 3


# Cancelling


def test_a_cancelled_queued_job_never_starts(database: Database, clock: Any) -> None:
    job_id = rows.queued(database)
    cancel(database, job_id)
    assert claim_next(database) is None
    job = rows.job(database, job_id)
    assert (job.state, job.started_at, job.finished_at) == ("cancelled", None, clock.now)
    assert rows.events(database, job_id) == ["queued", "cancelled"]


def test_a_running_job_is_informed_of_its_cancellation(ctx: AppContext, database: Database) -> None:
    claim = rows.claimed(database, rows.queued(database))
    assert not queue.renew_lease(database, claim, lease_seconds=10)
    cancel(database, claim.job_id)
    assert queue.renew_lease(database, claim, lease_seconds=10)
    assert queue.report_progress(database, claim, {}, curve={})
    job_kinds.cancel(ctx, claim)
    assert rows.job(database, claim.job_id).state == "cancelled"
    assert rows.events(database, claim.job_id) == ["queued", "started", "cancel_requested", "cancelled"]


def test_cancelling_twice_or_too_late_changes_nothing(database: Database) -> None:
    claim = rows.claimed(database, rows.queued(database))
    cancel(database, claim.job_id)
    before = rows.all_rows(database)
    cancel(database, claim.job_id)
    assert rows.all_rows(database) == before
    with database.write() as tx:
        queue.finish(tx, claim, "succeeded")
    before = rows.all_rows(database)
    cancel(database, claim.job_id)
    assert rows.all_rows(database) == before


def test_a_cancelled_job_that_loses_its_worker_is_cancelled(database: Database, clock: Any) -> None:
    claim = rows.claimed(database, rows.queued(database))
    cancel(database, claim.job_id)
    clock.advance(60)
    assert requeue_lost(database) == [claim.job_id]
    assert rows.job(database, claim.job_id).state == "cancelled"
    assert rows.events(database, claim.job_id)[-1] == "cancelled"


def test_a_cancelled_job_that_is_released_is_cancelled(
    ctx: AppContext, database: Database, notified: list[str]
) -> None:
    claim = rows.claimed(database, rows.queued(database))
    cancel(database, claim.job_id)
    notified.clear()
    job_kinds.release(ctx, claim, reason="the worker is stopping")
    assert rows.job(database, claim.job_id).state == "cancelled"
    assert notified == []


# SQLite allows only one writer at a time.
@pytest.mark.parametrize("kind_of_database", ["postgresql"], indirect=True)
def test_cancelling_a_job_while_a_worker_claims_it_requests_its_cancellation(
    database: Database,
) -> None:
    """The decision depends on the row after it is locked, not on an earlier read."""
    job_id = rows.queued(database)
    with ThreadPoolExecutor(1) as pool:
        with database.write() as tx:
            row = queue.lock(tx, job_id)
            assert row is not None
            cancelling = pool.submit(training.cancel, database, job_id)
            rows.wait_for_lock_wait(database)
            # The same changes as by a claim.
            row.state, row.fence, row.attempt, row.lease_owner = "running", 1, 1, "wrk_1"
            row.lease_expires_at = tx.now + timedelta(seconds=60)
        cancelling.result()
    job = rows.job(database, job_id)
    assert job.state == "running"
    assert job.cancel_requested_at is not None


@pytest.mark.parametrize("kind_of_database", ["postgresql"], indirect=True)
def test_locking_a_row_reads_it_again(database: Database) -> None:
    job_id = rows.queued(database)
    with database.write() as tx:
        row = tx.session.get_one(tables.Job, job_id)
        rows.claimed(database, job_id)
        assert row.state == "queued"
        assert queue.lock(tx, job_id) is row
        assert row.state == "running"


# Lost jobs


def test_several_workers_requeue_a_lost_job_once(database: Database) -> None:
    claims = [rows.claimed(database, rows.queued(database), seconds=-1) for _ in range(6)]
    barrier = threading.Barrier(3)

    def requeue(_: int) -> list[str]:
        barrier.wait()
        return requeue_lost(database)

    with ThreadPoolExecutor(3) as pool:
        requeued = [job_id for ids in pool.map(requeue, range(3)) for job_id in ids]
    assert sorted(requeued) == sorted(claim.job_id for claim in claims)
    for claim in claims:
        assert rows.events(database, claim.job_id) == ["queued", "started", "lost"]


# Progress


def test_a_report_extends_the_curve_and_a_second_attempt_overwrites_it(database: Database) -> None:
    claim = rows.claimed(database, rows.queued(database))

    def curve() -> dict[int, dict[str, float]]:
        with database.read() as session:
            points = session.scalars(select(tables.CurvePoint).order_by(tables.CurvePoint.step))
            return {point.step: point.measures for point in points}

    queue.report_progress(
        database, claim, {"phase": "training", "completed": 2}, curve={1: {"z": 1.0}, 2: {"z": 0.5}}
    )
    queue.report_progress(database, claim, {"phase": "training", "completed": 3}, curve={3: {"z": 0.25}})
    assert curve() == {1: {"z": 1.0}, 2: {"z": 0.5}, 3: {"z": 0.25}}
    assert rows.job(database, claim.job_id).progress == {"phase": "training", "completed": 3}
    # An attempt that starts again at step 2 removes the old step 3.
    queue.report_progress(database, claim, {"phase": "training", "completed": 2}, curve={2: {"z": 0.75}})
    assert curve() == {1: {"z": 1.0}, 2: {"z": 0.75}}
    assert rows.events(database, claim.job_id) == ["queued", "started"], "progress is not an event"


def test_finishing_a_job_stores_its_result_or_error(ctx: AppContext, database: Database) -> None:
    succeeded, failed = (rows.claimed(database, rows.queued(database)) for _ in range(2))
    with database.write() as tx:
        queue.finish(tx, succeeded, "succeeded", result={"version": 1})
    job_kinds.fail(ctx, failed, ERROR)
    assert rows.job(database, succeeded.job_id).result == {"version": 1}
    job = rows.job(database, failed.job_id)
    assert (job.state, job.error, job.lease_owner) == ("failed", ERROR, None)
    with database.read() as session:
        last = session.scalars(
            select(tables.JobEvent.detail).where(
                tables.JobEvent.job_id == failed.job_id, tables.JobEvent.type == "failed"
            )
        ).one()
    assert last == {"code": "no"}


def test_events_of_one_job_that_are_written_concurrently_have_no_gaps(database: Database) -> None:
    claim = rows.claimed(database, rows.queued(database))

    def report(n: int) -> None:
        queue.report_progress(database, claim, {"n": n}, curve={}, event="phase")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(report, range(40)))
    assert rows.events(database, claim.job_id) == ["queued", "started"] + ["phase"] * 40
