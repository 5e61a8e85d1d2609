"""The job queue behaves like a simple model, for any order of calls and any time between them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import hypothesis.strategies as st
import rows
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete

from app.context import AppContext
from app.db import tables
from app.jobs import queue
from app.jobs.kinds import Kind
from app.jobs.queue import Claim, LostClaimError
from workers import job_kinds

ATTEMPTS = 2
LEASE = 10.0


@dataclass
class Expected:
    """The expected row of a job."""

    due_at: datetime
    created_at: datetime
    kind: Kind = "train"
    priority: int = 0
    key_id: str | None = None
    state: str = "queued"
    attempt: int = 0
    failures: int = 0
    consecutive_losses: int = 0
    checkpoint: dict[str, Any] | None = None
    fence: int = 0
    owner: str | None = None
    expires_at: datetime | None = None
    cancel: bool = False
    events: list[str] = field(default_factory=lambda: ["queued"])

    def end(self, state: str) -> None:
        """Finish the job. No worker has a lease on it afterwards."""
        self.state, self.owner, self.expires_at, self.checkpoint = state, None, None, None
        self.events.append(state)

    def lose(self, now: datetime, *, process_died: bool) -> None:
        """Lose the worker of the job, or only its process."""
        has_progress = self.checkpoint is not None and self.checkpoint["fence"] == self.fence
        self.failures += 1 if process_died and not has_progress else 0
        self.fence += 1
        if self.cancel:
            self.end("cancelled")
        elif self.failures >= ATTEMPTS:
            self.end("failed")
        else:
            delay = [0, 2, 4, 8, 16, 30][min(self.consecutive_losses, 5)]
            self.consecutive_losses += 1
            self.state, self.owner, self.expires_at = "queued", None, None
            self.due_at = now + timedelta(seconds=delay)
            self.events.append("lost")


class QueueMachine(RuleBasedStateMachine):
    """Slots, maintenance processes and clients of one job queue."""

    jobs = Bundle("jobs")
    claims = Bundle("claims")

    def __init__(self, ctx: AppContext, clock: Any, notified: list[str]) -> None:
        super().__init__()
        self.ctx = ctx
        self.clock = clock
        self.notified = notified
        self.expected: dict[str, Expected] = {}

    @initialize()
    def delete_all_jobs(self) -> None:
        with self.ctx.db.write() as tx:
            for table in (tables.CurvePoint, tables.JobEvent, tables.Job):
                tx.session.execute(delete(table))

    @rule(
        target=jobs,
        kind=st.sampled_from(["evaluate", "train"]),
        priority=st.sampled_from([0, 0, -1, 1]),
        key_id=st.sampled_from([None, "key_1", "key_2"]),
    )
    def enqueue(self, kind: Kind, priority: int, key_id: str | None) -> str:
        job_id = rows.queued(self.ctx.db, kind=kind, priority=priority, key_id=key_id)
        now = self.clock.now
        self.expected[job_id] = Expected(now, now, kind, priority, key_id)
        return job_id

    def next_job(self) -> str | None:
        """Return the job to claim: by kind, priority, running jobs of its key, and age."""
        running = Counter(job.key_id for job in self.expected.values() if job.state == "running")
        due = {
            job_id: (
                ["evaluate", "train"].index(job.kind),
                -job.priority,
                running[job.key_id],
                job.created_at,
                job_id,
            )
            for job_id, job in self.expected.items()
            if job.state == "queued" and job.due_at <= self.clock.now
        }
        return min(due, key=lambda job_id: due[job_id]) if due else None

    @rule(target=claims, owner=st.sampled_from(["wrk_1", "wrk_2"]))
    def claim_next(self, owner: str) -> Any:
        job_id = self.next_job()
        claim = rows.claim_next(self.ctx.db, owner, seconds=LEASE)
        if job_id is None:
            assert claim is None
            # No job was claimed. Return invalid claims, which must have no effect later.
            jobs = self.expected.items()
            return multiple(*(Claim(id_, job.fence - 1, job.kind, {}, None, 0) for id_, job in jobs))
        job = self.expected[job_id]
        job.state, job.owner = "running", owner
        job.expires_at = self.clock.now + timedelta(seconds=LEASE)
        job.fence += 1
        job.attempt += 1
        job.events.append("started")
        assert claim == Claim(job_id, job.fence, job.kind, {}, None, job.attempt, job.checkpoint)
        return claim

    def claimed_job(self, claim: Claim) -> Expected | None:
        """Return the job if the claim is still valid."""
        job = self.expected[claim.job_id]
        return job if job.state == "running" and job.fence == claim.fence else None

    @rule(claim=claims)
    def renew(self, claim: Claim) -> None:
        job = self.claimed_job(claim)
        try:
            must_stop = queue.renew_lease(self.ctx.db, claim, lease_seconds=LEASE)
        except LostClaimError:
            assert job is None
            return
        assert job is not None
        assert must_stop == job.cancel
        job.expires_at = self.clock.now + timedelta(seconds=LEASE)

    @rule(claim=claims, event=st.sampled_from([None, "phase"]), has_progress=st.booleans())
    def report(self, claim: Claim, event: str | None, has_progress: bool) -> None:
        job = self.claimed_job(claim)
        checkpoint = {"fence": claim.fence} if has_progress else None
        try:
            must_stop = queue.report_progress(
                self.ctx.db, claim, {"completed": 1}, curve={}, event=event, checkpoint=checkpoint
            )
        except LostClaimError:
            assert job is None
            return
        assert job is not None
        assert must_stop == job.cancel
        job.events += ["phase"] if event else []
        if has_progress:
            job.checkpoint, job.consecutive_losses = checkpoint, 0

    @rule(claim=claims, state=st.sampled_from(["succeeded", "failed", "cancelled"]))
    def finish(self, claim: Claim, state: queue.FinalState) -> None:
        job = self.claimed_job(claim)
        try:
            with self.ctx.db.write() as tx:
                queue.finish(tx, claim, state)
        except LostClaimError:
            assert job is None
            return
        assert job is not None
        job.end(state)

    @rule(claim=consumes(claims))
    def release(self, claim: Claim) -> None:
        job = self.claimed_job(claim)
        self.notified.clear()
        try:
            job_kinds.release(self.ctx, claim, reason="stop")
        except LostClaimError:
            assert job is None
            assert self.notified == []
            return
        assert job is not None
        if job.cancel:
            job.end("cancelled")
            return
        job.state, job.owner, job.expires_at, job.due_at = "queued", None, None, self.clock.now
        job.events.append("released")
        assert self.notified == [claim.job_id]

    @rule(claim=claims)
    def lose_process(self, claim: Claim) -> None:
        """Handle the death of the job's process, as the watching process does."""
        job = self.claimed_job(claim)
        with self.ctx.db.write() as tx:
            row = queue.lock(tx, claim.job_id)
            assert row is not None
            if row.state == "running" and row.fence == claim.fence:
                assert job is not None
                job_kinds.handle_loss(tx, row, attempts=ATTEMPTS, reason="SIGKILL", process_died=True)
                job.lose(self.clock.now, process_died=True)

    @rule(job_id=jobs)
    def cancel(self, job_id: str) -> None:
        job = self.expected[job_id]
        with self.ctx.db.write() as tx:
            row = queue.lock(tx, job_id)
            assert row is not None
            queue.request_cancel(tx, row)
        if job.state == "queued":
            job.cancel = True
            job.fence += 1
            job.end("cancelled")
        elif job.state == "running" and not job.cancel:
            job.cancel = True
            job.events.append("cancel_requested")

    @rule(seconds=st.sampled_from([0.5, 2.0, LEASE - 0.5, LEASE + 0.5]))
    def advance_clock(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule()
    def requeue_lost(self) -> None:
        expired = {
            job_id
            for job_id, job in self.expected.items()
            if job.expires_at is not None and job.expires_at < self.clock.now
        }
        with self.ctx.db.write() as tx:
            lost = queue.lost(tx)
            for row in lost:
                job_kinds.handle_loss(tx, row, attempts=ATTEMPTS, reason="no heartbeat", process_died=False)
        assert {row.id for row in lost} == expired
        for job_id in expired:
            self.expected[job_id].lose(self.clock.now, process_died=False)

    @invariant()
    def rows_are_as_expected(self) -> None:
        for job_id, job in self.expected.items():
            row = rows.job(self.ctx.db, job_id)
            assert (row.state, row.attempt, row.fence) == (job.state, job.attempt, job.fence)
            assert (row.failures, row.consecutive_losses, row.checkpoint) == (
                job.failures,
                job.consecutive_losses,
                job.checkpoint,
            )
            assert (row.lease_owner, row.lease_expires_at) == (job.owner, job.expires_at)
            assert (row.cancel_requested_at is not None) == job.cancel
            assert (row.finished_at is not None) == (job.state in queue.FINISHED)
            if job.state == "queued":
                assert row.due_at == job.due_at
            assert rows.events(self.ctx.db, job_id) == job.events


def test_the_queue_behaves_like_its_model(ctx: AppContext, clock: Any, notified: list[str]) -> None:
    class Machine(QueueMachine):
        def __init__(self) -> None:
            super().__init__(ctx, clock, notified)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=settings().max_examples // 4,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
