"""The ledger: who may do what with a job, and that nobody else changes anything."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import rows
from racing_processes import race
from sqlalchemy import select

from app.context import AppContext
from app.db import tables
from app.db.session import Database
from app.jobs import queue
from app.jobs.queue import Claim, LostClaimError
from app.training import service as training
from workers import job_kinds

ERROR = {"type": "about:blank", "title": "No", "status": 422, "code": "no", "detail": "it cannot be done"}


def sweep(database: Database) -> list[str]:
    """Take back what was lost, as the supervisor does; gives the jobs."""
    with database.write() as tx:
        jobs = queue.lost(tx)
        for job in jobs:
            job_kinds.handle_loss(tx, job, attempts=10, reason="its worker fell silent", process_died=False)
    return [job.id for job in jobs]


def die(database: Database, job_id: str, attempts: int = 10) -> None:
    """The job's own process dies, as the process that watches it sees it."""
    with database.write() as tx:
        job = queue.lock(tx, job_id)
        assert job is not None
        job_kinds.handle_loss(
            tx, job, attempts=attempts, reason="its process died", process_died=True, log=["last words"]
        )


def checkpoint(database: Database, claim: Claim, step: int = 1) -> dict[str, Any]:
    """The attempt gets further."""
    made = {"key": f"checkpoints/{claim.job_id}.{claim.fence}.{step}.safetensors", "fence": claim.fence}
    queue.report_progress(database, claim, {"phase": "training"}, curve={step: {"z": 0.5}}, checkpoint=made)
    return made


def cancel(database: Database, job_id: str) -> None:
    with database.write() as tx:
        job = queue.lock(tx, job_id)
        assert job is not None
        queue.request_cancel(tx, job)


# Claiming


def test_a_queued_job_is_due_and_is_rung_for(database: Database, notified: list[str]) -> None:
    job_id = rows.queued(database, {"a": 1})
    assert notified == [job_id]
    job = rows.job(database, job_id)
    assert (job.state, job.attempt, job.fence, job.lease_owner) == ("queued", 0, 0, None)
    assert job.due_at == job.created_at
    assert rows.events(database, job_id) == ["queued"]


def test_a_claim_takes_the_job_and_tells_what_to_do(database: Database, clock: Any) -> None:
    job_id = rows.queued(database, {"a": 1})
    clock.advance(5)
    claim = queue.claim(database, job_id, "wrk_1", lease_seconds=8)
    assert claim == Claim(job_id, fence=1, kind="train", spec={"a": 1}, dataset_id=None, attempt=1)
    job = rows.job(database, job_id)
    assert (job.state, job.lease_owner, job.started_at) == ("running", "wrk_1", clock.now)
    assert job.lease_expires_at == clock.now + timedelta(seconds=8)
    assert rows.events(database, job_id) == ["queued", "started"]


def test_a_job_that_was_never_there_cannot_be_claimed(database: Database) -> None:
    assert queue.claim(database, "job_none", "wrk_1", lease_seconds=8) is None


def test_one_of_many_threads_gets_a_job(database: Database) -> None:
    job_ids = [rows.queued(database) for _ in range(10)]
    together = threading.Barrier(6)

    def contend(n: int) -> list[str]:
        together.wait()
        return [
            job_id
            for job_id in job_ids
            if queue.claim(database, job_id, f"wrk_{n}", lease_seconds=60) is not None
        ]

    with ThreadPoolExecutor(6) as pool:
        won = [job_id for wins in pool.map(contend, range(6)) for job_id in wins]
    assert sorted(won) == sorted(job_ids)
    for job_id in job_ids:
        assert rows.job(database, job_id).attempt == 1
        assert rows.events(database, job_id) == ["queued", "started"]


def test_one_of_many_processes_gets_a_job(database: Database, database_url: str) -> None:
    job_ids = [rows.queued(database) for _ in range(25)]
    won = [job_id for wins in race(4, "claim", database_url, *job_ids) for job_id in wins]
    assert sorted(won) == sorted(job_ids)
    assert {rows.job(database, job_id).fence for job_id in job_ids} == {1}


# Leases


def test_a_lease_that_is_renewed_does_not_run_out(database: Database, clock: Any) -> None:
    job_id = rows.queued(database)
    claim = rows.claimed(database, job_id, seconds=10)
    for _ in range(5):
        clock.advance(9)
        assert queue.renew_lease(database, claim, lease_seconds=10) is False
        assert sweep(database) == []
    clock.advance(10)
    assert sweep(database) == [], "it holds to its last moment"
    clock.advance(0.001)
    assert sweep(database) == [job_id]


def test_a_job_whose_worker_fell_silent_is_queued_again_and_counted(
    database: Database, clock: Any, notified: list[str]
) -> None:
    job_id = rows.queued(database)
    rows.claimed(database, job_id, seconds=10)
    notified.clear()
    clock.advance(10.1)
    assert sweep(database) == [job_id]
    assert notified == [job_id], "the first time it need not wait"
    job = rows.job(database, job_id)
    assert (job.state, job.lease_owner, job.lease_expires_at) == ("queued", None, None)
    assert rows.claimed(database, job_id, "wrk_2").attempt == 2
    assert rows.events(database, job_id) == ["queued", "started", "lost", "started"]


def test_a_job_that_loses_its_worker_again_and_again_waits_longer_each_time(
    database: Database, clock: Any, notified: list[str]
) -> None:
    job_id = rows.queued(database)
    waits = []
    for _ in range(8):
        rows.claimed(database, job_id, seconds=1)
        clock.advance(1.1)
        notified.clear()
        sweep(database)
        waits.append((rows.job(database, job_id).due_at - clock.now).total_seconds())
        if waits[-1]:
            assert notified == [], "a ring that nobody may answer yet is not made"
            clock.advance(waits[-1] - 0.001)
            assert queue.claim(database, job_id, "wrk_1", lease_seconds=1) is None
            clock.advance(0.001)
    assert waits == [0, 2, 4, 8, 16, 30, 30, 30]


def test_past_the_limit_of_attempts_the_job_fails_and_says_why(database: Database, clock: Any) -> None:
    job_id = rows.queued(database)
    for _ in range(3):
        clock.advance(60)
        rows.claimed(database, job_id, seconds=1)
        clock.advance(2)
        die(database, job_id, attempts=3)
    job = rows.job(database, job_id)
    assert (job.state, job.attempt) == ("failed", 3)
    assert job.error is not None
    assert job.error["code"] == "worker_lost"
    assert "3 times" in job.error["detail"]
    assert "its process died" in job.error["detail"]
    assert job.error["log"] == ["last words"]
    assert job.finished_at == clock.now
    assert rows.events(database, job_id)[-3:] == ["lost", "started", "failed"]


def test_attempts_that_died_with_their_worker_do_not_count(database: Database, clock: Any) -> None:
    job_id = rows.queued(database)
    for _ in range(20):
        clock.advance(60)
        rows.claimed(database, job_id, seconds=1)
        clock.advance(2)
        assert sweep(database) == [job_id]
    job = rows.job(database, job_id)
    assert (job.state, job.attempt, job.failures) == ("queued", 20, 0)


def test_attempts_that_got_further_do_not_count_and_need_not_wait(database: Database, clock: Any) -> None:
    job_id = rows.queued(database)
    for step in range(20):
        checkpoint(database, rows.claimed(database, job_id), step)
        die(database, job_id, attempts=2)
        assert rows.job(database, job_id).due_at == clock.now
    assert rows.job(database, job_id).failures == 0
    # One that only begins where the last one stopped gets no further.
    for _ in range(2):
        clock.advance(60)
        rows.claimed(database, job_id)
        die(database, job_id, attempts=2)
    assert rows.job(database, job_id).state == "failed"


def test_a_checkpoint_goes_with_its_curve_to_the_next_attempt_and_not_beyond_the_end(
    database: Database,
) -> None:
    job_id = rows.queued(database)
    first = rows.claimed(database, job_id)
    assert first.checkpoint is None
    made = checkpoint(database, first)
    die(database, job_id)
    with pytest.raises(LostClaimError):
        checkpoint(database, first, step=2)
    second = rows.claimed(database, job_id)
    assert second.checkpoint == made
    assert queue.load_claim(database, job_id, second.fence) == second
    with database.write() as tx:
        queue.finish(tx, second, "succeeded")
    assert rows.job(database, job_id).checkpoint is None


def test_the_leases_of_a_worker_that_is_known_to_be_dead_mean_nothing(database: Database) -> None:
    gone, living = rows.queued(database), rows.queued(database)
    rows.claimed(database, gone, "wrk_1", seconds=600)
    rows.claimed(database, living, "wrk_2", seconds=600)
    with database.write() as tx:
        assert queue.lost(tx) == []
        assert [job.id for job in queue.lost(tx, dead_workers=["wrk_1"])] == [gone]


def test_a_job_that_is_handed_back_did_not_count(
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
    """Everything that a worker that lost its claim may still try."""

    def finish(ctx: AppContext, claim: Claim) -> None:
        with ctx.db.write() as tx:
            tx.session.add(tables.Model(name="made-too-late", last_version=1, created_at=tx.now))
            tx.session.flush()
            queue.finish(tx, claim, "succeeded", result={"model": "made-too-late"})

    def finish_first(ctx: AppContext, claim: Claim) -> None:
        with ctx.db.write() as tx:
            queue.finish(tx, claim, "succeeded")
            tx.session.add(tables.Model(name="made-too-late", last_version=1, created_at=tx.now))

    def release(ctx: AppContext, claim: Claim) -> None:
        with ctx.db.write() as tx:
            queue.release(tx, claim, reason="late")

    return {
        "renew": lambda ctx, claim: void(queue.renew_lease(ctx.db, claim, lease_seconds=1000)),
        "report": lambda ctx, claim: void(
            queue.report_progress(ctx.db, claim, {"phase": "late"}, curve={1: {"loss": 0.1}}, event="phase")
        ),
        "finish": finish,
        "finish_first": finish_first,
        "release": release,
        "load_claim": lambda ctx, claim: void(queue.load_claim(ctx.db, claim.job_id, claim.fence)),
        "job_kinds.fail": lambda ctx, claim: job_kinds.fail(ctx, claim, ERROR),
        "job_kinds.cancel": job_kinds.cancel,
        "job_kinds.release": lambda ctx, claim: job_kinds.release(ctx, claim, reason="late"),
    }


def void(_: object) -> None:
    pass


def overtakings() -> dict[str, Callable[[AppContext, Any, Claim], None]]:
    """What may have happened to the job in the meantime."""

    def queued_again(ctx: AppContext, clock: Any, claim: Claim) -> None:
        clock.advance(100)
        sweep(ctx.db)

    def taken_by_another(ctx: AppContext, clock: Any, claim: Claim) -> None:
        queued_again(ctx, clock, claim)
        rows.claimed(ctx.db, claim.job_id, "wrk_2")

    def released(ctx: AppContext, clock: Any, claim: Claim) -> None:
        job_kinds.release(ctx, claim, reason="stop")

    def handed_back_and_taken(ctx: AppContext, clock: Any, claim: Claim) -> None:
        released(ctx, clock, claim)
        rows.claimed(ctx.db, claim.job_id, "wrk_2")

    def ended(ctx: AppContext, clock: Any, claim: Claim) -> None:
        with ctx.db.write() as tx:
            queue.finish(tx, claim, "succeeded", result={"made": "in time"})

    def given_up(ctx: AppContext, clock: Any, claim: Claim) -> None:
        clock.advance(100)
        die(ctx.db, claim.job_id, attempts=1)

    return {
        made.__name__: made
        for made in (taken_by_another, queued_again, released, handed_back_and_taken, ended, given_up)
    }


@pytest.mark.parametrize("overtaking", overtakings())
@pytest.mark.parametrize("late_write", late_writes())
def test_a_late_writer_changes_nothing(
    ctx: AppContext, clock: Any, notified: list[str], late_write: str, overtaking: str
) -> None:
    claim = rows.claimed(ctx.db, rows.queued(ctx.db))
    overtakings()[overtaking](ctx, clock, claim)
    before = rows.all_rows(ctx.db)
    notified.clear()
    with pytest.raises(LostClaimError):
        late_writes()[late_write](ctx, claim)
    assert rows.all_rows(ctx.db) == before
    assert notified == []


def test_a_claim_can_be_loaded_while_it_holds(database: Database) -> None:
    claim = rows.claimed(database, rows.queued(database, {"a": [1]}))
    assert queue.load_claim(database, claim.job_id, claim.fence) == claim


def test_a_job_ends_once(database: Database) -> None:
    claim = rows.claimed(database, rows.queued(database))
    together = threading.Barrier(4)

    def end(state: queue.FinalState) -> bool:
        together.wait()
        try:
            with database.write() as tx:
                queue.finish(tx, claim, state, error=ERROR if state == "failed" else None)
        except LostClaimError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(end, ("succeeded", "failed", "cancelled", "succeeded")))
    assert ended.count(True) == 1
    assert len(rows.events(database, claim.job_id)) == 3


# Cancelling


def test_a_queued_job_that_is_cancelled_never_starts(database: Database, clock: Any) -> None:
    job_id = rows.queued(database)
    cancel(database, job_id)
    assert queue.claim(database, job_id, "wrk_1", lease_seconds=10) is None
    job = rows.job(database, job_id)
    assert (job.state, job.started_at, job.finished_at) == ("cancelled", None, clock.now)
    assert rows.events(database, job_id) == ["queued", "cancelled"]


def test_a_running_job_that_is_cancelled_is_told(ctx: AppContext, database: Database) -> None:
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
    assert sweep(database) == [claim.job_id]
    assert rows.job(database, claim.job_id).state == "cancelled"
    assert rows.events(database, claim.job_id)[-1] == "cancelled"


def test_a_cancelled_job_that_is_handed_back_is_cancelled(
    ctx: AppContext, database: Database, notified: list[str]
) -> None:
    claim = rows.claimed(database, rows.queued(database))
    cancel(database, claim.job_id)
    notified.clear()
    job_kinds.release(ctx, claim, reason="the worker is stopping")
    assert rows.job(database, claim.job_id).state == "cancelled"
    assert notified == []


# Writers of SQLite come one after the other.
@pytest.mark.parametrize("kind_of_database", ["postgresql"], indirect=True)
def test_cancelling_while_a_worker_takes_the_job_does_not_end_it_under_the_workers_hands(
    database: Database,
) -> None:
    """Whoever looked at the row first, what is decided is decided on the row as it is when it is held."""
    job_id = rows.queued(database)
    with ThreadPoolExecutor(1) as pool:
        with database.write() as tx:
            held = queue.lock(tx, job_id)
            assert held is not None
            cancelling = pool.submit(training.cancel, database, job_id)
            rows.wait_for_lock_wait(database)
            # What a claim does to the row.
            held.state, held.fence, held.attempt, held.lease_owner = "running", 1, 1, "wrk_1"
            held.lease_expires_at = tx.now + timedelta(seconds=60)
        cancelling.result()
    job = rows.job(database, job_id)
    assert job.state == "running"
    assert job.cancel_requested_at is not None


@pytest.mark.parametrize("kind_of_database", ["postgresql"], indirect=True)
def test_a_row_that_is_held_is_read_anew(database: Database) -> None:
    job_id = rows.queued(database)
    with database.write() as tx:
        looked_at = tx.session.get_one(tables.Job, job_id)
        rows.claimed(database, job_id)
        assert looked_at.state == "queued"
        assert queue.lock(tx, job_id) is looked_at
        assert looked_at.state == "running"


# What is not heard


def test_only_what_is_due_and_was_not_rung_for_lately_is_rung_again(database: Database, clock: Any) -> None:
    def undelivered(limit: int = 10) -> list[str]:
        with database.read() as session:
            return queue.undelivered(session, clock.now, limit=limit)

    lost = rows.queued(database)
    for _ in range(2):
        rows.claimed(database, lost, seconds=1)
        clock.advance(1.5)
        sweep(database)
    assert rows.job(database, lost).due_at == clock.now + timedelta(seconds=2)
    old = rows.queued(database)
    running = rows.queued(database)
    rows.claimed(database, running, seconds=100)
    cancelled = rows.queued(database)
    cancel(database, cancelled)
    assert undelivered() == []
    clock.advance(queue.NOTIFY_AGAIN_SECONDS)
    assert undelivered() == [], "not before it is older than that"
    clock.advance(0.001)
    young = rows.queued(database)
    assert undelivered() == sorted([lost, old])
    assert undelivered(limit=1) == [lost], "the oldest first"
    assert undelivered(limit=0) == []
    with database.write() as tx:
        later = queue.lock(tx, old)
        assert later is not None
        later.due_at = clock.now + timedelta(seconds=50)
    clock.advance(10)
    assert undelivered() == [lost, young]


def test_a_worker_is_counted_by_what_it_holds(database: Database) -> None:
    ids = [rows.queued(database) for _ in range(3)]
    rows.claimed(database, ids[0], "wrk_1")
    claim = rows.claimed(database, ids[1], "wrk_1")
    rows.claimed(database, ids[2], "wrk_2")
    with database.read() as session:
        assert queue.count_running(session, "wrk_1") == 2
    with database.write() as tx:
        queue.finish(tx, claim, "succeeded")
    with database.read() as session:
        assert queue.count_running(session, "wrk_1") == 1
        assert queue.count_running(session, "wrk_3") == 0


def test_two_supervisors_take_a_lost_job_back_once(database: Database) -> None:
    claims = [rows.claimed(database, rows.queued(database), seconds=-1) for _ in range(6)]
    together = threading.Barrier(3)

    def look(_: int) -> list[str]:
        together.wait()
        return sweep(database)

    with ThreadPoolExecutor(3) as pool:
        taken = [job_id for jobs in pool.map(look, range(3)) for job_id in jobs]
    assert sorted(taken) == sorted(claim.job_id for claim in claims)
    for claim in claims:
        assert rows.events(database, claim.job_id) == ["queued", "started", "lost"]


# Progress


def test_a_report_keeps_the_curve_and_a_second_attempt_writes_over_the_first(database: Database) -> None:
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
    # An attempt that begins anew at step 2 does not leave the old step 3 behind.
    queue.report_progress(database, claim, {"phase": "training", "completed": 2}, curve={2: {"z": 0.75}})
    assert curve() == {1: {"z": 1.0}, 2: {"z": 0.75}}
    assert rows.events(database, claim.job_id) == ["queued", "started"], "progress alone is no event"


def test_the_end_is_written_with_what_was_made_or_what_went_wrong(
    ctx: AppContext, database: Database
) -> None:
    done, failed = (rows.claimed(database, rows.queued(database)) for _ in range(2))
    with database.write() as tx:
        queue.finish(tx, done, "succeeded", result={"version": 1})
    job_kinds.fail(ctx, failed, ERROR)
    assert rows.job(database, done.job_id).result == {"version": 1}
    job = rows.job(database, failed.job_id)
    assert (job.state, job.error, job.lease_owner) == ("failed", ERROR, None)
    with database.read() as session:
        last = session.scalars(
            select(tables.JobEvent.detail).where(
                tables.JobEvent.job_id == failed.job_id, tables.JobEvent.type == "failed"
            )
        ).one()
    assert last == {"code": "no"}


def test_events_of_one_job_written_at_once_have_no_gaps(database: Database) -> None:
    claim = rows.claimed(database, rows.queued(database))

    def tell(n: int) -> None:
        queue.report_progress(database, claim, {"n": n}, curve={}, event="phase")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(tell, range(40)))
    assert rows.events(database, claim.job_id) == ["queued", "started"] + ["phase"] * 40
