"""Attempts at jobs in real processes. The row of the job records how each attempt ends."""

from __future__ import annotations

import ctypes
import errno
import itertools
import json
import logging
import mmap
import os
import signal
import tempfile
import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rows
import structlog
from sqlalchemy.exc import OperationalError
from waiting import LIMIT_SECONDS, wait_for

from app import logs
from app.context import AppContext
from app.db import tables
from app.db.session import Transaction
from app.db.tables import Job
from app.jobs import queue
from app.jobs.memory import memory_of
from app.jobs.progress import ProgressReporter
from app.jobs.queue import Claim
from app.settings import Settings
from models.errors import BadDataError
from workers import attempt, job_kinds, stopping

# The forked processes only use their own database connections and exit.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

OWNER = "wrk_1"

MEMORY_BYTES = 200 << 20
"""What a job can use besides the memory of this process, in the tests of the limit."""

FILE_BYTES = 2 * MEMORY_BYTES
"""More than a job can use. Each page of it costs time."""


def succeed(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    with ctx.db.write() as tx:
        queue.finish(tx, claim, "succeeded", result={"pid": os.getpid()})


def report_niceness(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    autogroup = Path("/proc/self/autogroup")
    session = autogroup.read_text().split()[-1] if autogroup.exists() else None
    with ctx.db.write() as tx:
        queue.finish(tx, claim, "succeeded", result={"process": os.nice(0), "session": session})


def reject_data(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    raise BadDataError("line 7 is invalid")


def divide_by_zero(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    raise ZeroDivisionError("a secret")


def run_out_of_memory(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    raise MemoryError


def fail_with_full_disk(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def kill_itself(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def exit_with_status(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    os._exit(3)


def return_without_finishing(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    pass


def sleep(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    time.sleep(LIMIT_SECONDS)


def notice_cancellation(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    cancel(ctx, claim)
    for n in itertools.count():
        report("training", n, None, "rounds")
        time.sleep(0.01)


def ignore_cancellation(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    cancel(ctx, claim)
    time.sleep(LIMIT_SECONDS)


def stop_worker(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    stopping.request()
    time.sleep(LIMIT_SECONDS)


def cancel_and_stop(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    cancel(ctx, claim)
    stop_worker(ctx, claim, report)


def lose_claim(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    with ctx.db.write() as tx:
        job = queue.lock(tx, claim.job_id)
        assert job is not None
        queue.requeue_lost(tx, job, reason="test")
        job.state, job.lease_owner, job.attempt = "running", "wrk_2", 2
        job.lease_expires_at = tx.now + timedelta(seconds=600)
    time.sleep(LIMIT_SECONDS)


def allocate_memory(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    array = np.ones(2 * MEMORY_BYTES // 8)
    time.sleep(LIMIT_SECONDS)
    assert array.all()


def n_memory_checks(claim: Claim) -> int:
    """Return how often the watching process has measured the memory of the job's process."""
    return Path(claim.spec["pid"]).with_name("memory_checks").stat().st_size


def read_a_large_file(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    with tempfile.TemporaryFile() as file:
        file.truncate(FILE_BYTES)
        mapped = np.memmap(file, dtype=np.uint8, mode="r")
        assert mapped[:: 1 << 12].sum() == 0
        before = n_memory_checks(claim)
        wait_for(lambda: n_memory_checks(claim) >= before + 2 or None, what="two more memory checks")
    succeed(ctx, claim, report)


def crash(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    structlog.get_logger().warning("work.started", where="here")
    logging.getLogger("library").warning("Dear Sir, my password is 1234")
    try:
        raise ValueError("Dear Sir")
    except ValueError:
        structlog.get_logger().exception("work.failed")
    ctypes.string_at(0)


def fail_to_read_a_file(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO), "/a/folder/ds_1.parquet")


def fail_with_full_disk_after_a_checkpoint(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    queue.report_progress(
        ctx.db, claim, {"phase": "training"}, curve={}, checkpoint={"key": "c", "fence": claim.fence}
    )
    fail_with_full_disk(ctx, claim, report)


def cancel(ctx: AppContext, claim: Claim) -> None:
    with ctx.db.write() as tx:
        job = queue.lock(tx, claim.job_id)
        assert job is not None
        queue.request_cancel(tx, job)


class FakeWork:
    """A kind of work that calls the function of this file that the spec of the job names."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def run(self, ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
        """Write the process id to a file and call the function."""
        Path(claim.spec["pid"]).write_text(str(os.getpid()))
        globals()[claim.spec["action"]](ctx, claim, report)

    def on_failure(self, _tx: Transaction, _job: Job | Claim, error: dict[str, Any]) -> None:
        """Record the error code, if the watching process ends the job."""
        self.failures.append(error["code"])


@pytest.fixture
def fake_work(monkeypatch: pytest.MonkeyPatch) -> FakeWork:
    fake_work = FakeWork()
    monkeypatch.setitem(job_kinds.WORK, "train", fake_work)
    monkeypatch.setattr(stopping, "_worker", mmap.mmap(-1, 1))
    monkeypatch.setattr(Settings, "heartbeat_seconds", 0.05)
    return fake_work


class Run:
    """A queued job, and attempts at it with fast settings."""

    def __init__(self, ctx: AppContext, action: str, folder: Path, **settings: float) -> None:
        update = {"job_attempts": 2, **settings}
        self.ctx = replace(ctx, settings=ctx.settings.model_copy(update=update))
        self.pid_file = folder / "pid"
        self.job_id = rows.queued(ctx.db, {"action": action, "pid": str(self.pid_file)})

    def attempt(self) -> tables.Job:
        """Run one attempt, check that its process has ended, and return the row of the job."""
        attempt.run(self.ctx, rows.claimed(self.ctx.db, self.job_id, OWNER), OWNER)
        pid = int(self.pid_file.read_text())
        assert pid != os.getpid()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        return rows.job(self.ctx.db, self.job_id)

    @property
    def events(self) -> list[str]:
        """Return the types of the events after the first one (queued)."""
        return rows.events(self.ctx.db, self.job_id)[1:]


def test_a_job_runs_in_another_process(ctx: AppContext, fake_work: FakeWork, tmp_path: Path) -> None:
    run = Run(ctx, "succeed", tmp_path)
    job = run.attempt()
    assert (job.state, job.result) == ("succeeded", {"pid": int(run.pid_file.read_text())})
    assert run.events == ["started", "succeeded"]


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("reject_data", "bad_data"),
        ("divide_by_zero", "internal_error"),
        ("run_out_of_memory", "out_of_memory"),
    ],
)
def test_a_job_that_raises_an_error_fails_with_its_code(
    ctx: AppContext, fake_work: FakeWork, tmp_path: Path, action: str, code: str
) -> None:
    run = Run(ctx, action, tmp_path)
    job = run.attempt()
    assert job.state == "failed"
    assert job.error is not None
    assert job.error["code"] == code
    assert run.events == ["started", "failed"]
    if action == "reject_data":
        assert "line 7 is invalid" in job.error["detail"]
    else:
        assert "secret" not in str(job.error)


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("kill_itself", "SIGKILL"),
        ("exit_with_status", "status 3"),
        ("return_without_finishing", "status 0"),
    ],
)
def test_a_job_whose_process_dies_is_retried_until_the_limit(
    ctx: AppContext, fake_work: FakeWork, tmp_path: Path, action: str, reason: str
) -> None:
    run = Run(ctx, action, tmp_path)
    job = run.attempt()
    assert (job.state, job.attempt) == ("queued", 1)
    assert run.events == ["started", "lost"]
    assert fake_work.failures == []
    job = run.attempt()
    assert (job.state, job.attempt) == ("failed", 2)
    assert job.error is not None
    assert job.error["code"] == "worker_lost"
    assert reason in job.error["detail"]
    assert run.events == ["started", "lost", "started", "failed"]
    assert fake_work.failures == ["worker_lost"]


@pytest.mark.parametrize("niceness", [0, 7])
def test_a_job_process_is_nicer_than_its_worker(
    ctx: AppContext, fake_work: FakeWork, tmp_path: Path, niceness: int
) -> None:
    before = os.nice(0)
    job = Run(ctx, "report_niceness", tmp_path, job_niceness=niceness).attempt()
    assert job.result is not None
    assert job.result["process"] == min(before + niceness, 19)
    # With autogroups, this number applies to the session. Users other than root can change it only rarely.
    assert job.result["session"] in (None, "0", str(niceness))
    assert os.nice(0) == before


def test_a_full_disk_does_not_count_as_a_failure_of_the_job(
    ctx: AppContext, fake_work: FakeWork, tmp_path: Path
) -> None:
    run = Run(ctx, "fail_with_full_disk", tmp_path, job_attempts=1)
    job = run.attempt()
    assert (job.state, job.failures) == ("queued", 0)
    assert run.events == ["started", "lost"]


def test_a_job_fails_if_its_dependency_is_unavailable_for_hours(
    ctx: AppContext, fake_work: FakeWork, tmp_path: Path, clock: Any
) -> None:
    logs.configure(ctx.settings)
    run = Run(ctx, "fail_to_read_a_file", tmp_path, job_unavailable_hours=2.0)
    start = clock.now
    assert run.attempt().unavailable_since == start
    clock.advance(7000)
    job = run.attempt()
    assert (job.state, job.unavailable_since) == ("queued", start)
    clock.advance(201)
    job = run.attempt()
    assert (job.state, job.failures) == ("failed", 0)
    assert job.error is not None
    assert job.error["code"] == "dependency_unavailable"
    assert "2 hours" in job.error["detail"]
    assert "Input/output error (ds_1.parquet)" in job.error["detail"]
    assert "a/folder" not in str(job.error)
    assert fake_work.failures == ["dependency_unavailable"]


@pytest.mark.parametrize("action", ["kill_itself", "fail_with_full_disk_after_a_checkpoint"])
def test_the_time_of_an_unavailable_dependency_begins_again(
    ctx: AppContext, fake_work: FakeWork, tmp_path: Path, clock: Any, action: str
) -> None:
    run = Run(ctx, "fail_with_full_disk", tmp_path)
    run.attempt()
    with ctx.db.write() as tx:
        job = tx.session.get_one(Job, run.job_id)
        job.spec = {**job.spec, "action": action}
    clock.advance(3600)
    assert run.attempt().unavailable_since is None


def test_a_job_that_exceeds_the_time_limit_fails(
    ctx: AppContext, fake_work: FakeWork, tmp_path: Path
) -> None:
    run = Run(ctx, "sleep", tmp_path, job_seconds=0.3)
    job = run.attempt()
    assert job.state == "failed"
    assert job.error is not None
    assert job.error["code"] == "out_of_time"
    assert fake_work.failures == ["out_of_time"]


def test_a_job_that_exceeds_the_memory_limit_fails(
    ctx: AppContext, fake_work: FakeWork, tmp_path: Path
) -> None:
    limit = memory_of(os.getpid()) + MEMORY_BYTES
    run = Run(ctx, "allocate_memory", tmp_path, job_memory_bytes=limit)
    job = run.attempt()
    assert job.state == "failed"
    assert job.error is not None
    assert job.error["code"] == "out_of_memory"
    assert f"{limit:,}" in job.error["detail"]


def test_memory_mapped_files_do_not_count(
    ctx: AppContext, fake_work: FakeWork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_checks = tmp_path / "memory_checks"
    memory_checks.touch()

    def count_and_measure(pid: int) -> int:
        with memory_checks.open("ab") as file:
            file.write(b".")
        return memory_of(pid)

    monkeypatch.setattr("workers.limits.memory_of", count_and_measure)
    run = Run(ctx, "read_a_large_file", tmp_path, job_memory_bytes=memory_of(os.getpid()) + MEMORY_BYTES)
    assert run.attempt().state == "succeeded"


def test_a_job_that_crashes_keeps_the_end_of_its_log_without_text_of_messages(
    ctx: AppContext, fake_work: FakeWork, tmp_path: Path
) -> None:
    logs.configure(ctx.settings)
    job = Run(ctx, "crash", tmp_path, job_attempts=1).attempt()
    assert job.state == "failed"
    assert job.error is not None
    assert "SIGSEGV" in job.error["detail"]
    log = job.error["log"]
    first, second = (json.loads(line) for line in log[:2])
    assert (first["event"], first["where"], first["level"]) == ("work.started", "here", "warning")
    assert (second["event"], second["exception"]) == ("work.failed", "ValueError")
    assert any("Segmentation fault" in line for line in log)
    assert any("in crash" in line for line in log)
    assert "Dear Sir" not in str(log)


def test_a_cancelled_job_stops_at_its_next_report(
    ctx: AppContext, fake_work: FakeWork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "CANCEL_SECONDS", LIMIT_SECONDS)
    run = Run(ctx, "notice_cancellation", tmp_path)
    assert run.attempt().state == "cancelled"
    assert run.events == ["started", "cancel_requested", "phase", "cancelled"]


def test_a_job_that_ignores_its_cancellation_is_killed(
    ctx: AppContext, fake_work: FakeWork, tmp_path: Path
) -> None:
    run = Run(ctx, "ignore_cancellation", tmp_path)
    assert run.attempt().state == "cancelled"
    assert run.events == ["started", "cancel_requested", "cancelled"]
    assert fake_work.failures == ["cancelled"]


def test_a_stopping_worker_releases_its_job(
    ctx: AppContext, fake_work: FakeWork, notified: list[str], tmp_path: Path
) -> None:
    run = Run(ctx, "stop_worker", tmp_path)
    notified.clear()
    job = run.attempt()
    assert (job.state, job.failures, job.consecutive_losses) == ("queued", 0, 0)
    assert run.events == ["started", "released"]
    assert notified == [run.job_id]


def test_a_stopping_worker_does_not_release_a_cancelled_job(
    ctx: AppContext,
    fake_work: FakeWork,
    notified: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempt, "CANCEL_SECONDS", 600)
    run = Run(ctx, "cancel_and_stop", tmp_path)
    notified.clear()
    assert run.attempt().state == "cancelled"
    assert run.events == ["started", "cancel_requested", "cancelled"]
    assert fake_work.failures == ["cancelled"]
    assert notified == []


def test_a_process_whose_job_another_worker_has_claimed_is_ended_and_changes_nothing(
    ctx: AppContext, fake_work: FakeWork, tmp_path: Path
) -> None:
    run = Run(ctx, "lose_claim", tmp_path)
    job = run.attempt()
    assert (job.state, job.lease_owner, job.attempt) == ("running", "wrk_2", 2)
    assert run.events == ["started", "lost"]


def test_limits_apply_while_the_database_does_not_respond_to_a_renewal(
    ctx: AppContext, fake_work: FakeWork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, released = threading.Event(), threading.Event()

    def wait_for_the_database(*_: object, **__: object) -> bool:
        waiting.set()
        released.wait(LIMIT_SECONDS)
        return False

    def measure(_pid: int) -> int:
        return 2 if waiting.is_set() and (tmp_path / "pid").exists() else 0

    fail = job_kinds.fail

    def fail_and_release(ctx: AppContext, claim: Claim, error: dict[str, Any]) -> None:
        assert not released.is_set(), "the limit applies before the database responds"
        fail(ctx, claim, error)
        released.set()

    monkeypatch.setattr(queue, "renew_lease", wait_for_the_database)
    monkeypatch.setattr("workers.limits.memory_of", measure)
    monkeypatch.setattr(job_kinds, "fail", fail_and_release)
    job = Run(ctx, "sleep", tmp_path, job_memory_bytes=1).attempt()
    assert job.error is not None
    assert job.error["code"] == "out_of_memory"


def test_a_stop_ends_an_attempt_that_cannot_record_its_end(
    ctx: AppContext, fake_work: FakeWork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def unavailable(*_: object, **__: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            stopping.request()
        raise OperationalError("UPDATE", None, Exception("the database is unavailable"))

    monkeypatch.setattr(queue, "finish", unavailable)
    job = Run(ctx, "sleep", tmp_path, job_seconds=0.1).attempt()
    assert calls == 2
    assert job.state == "running", "the lease decides later"


@pytest.mark.parametrize(
    ("status", "reason"),
    [(-9, "killed by SIGKILL (out of memory?)"), (-40, "killed by signal 40"), (-64, "killed by SIGRTMAX")],
)
def test_every_signal_that_kills_a_job_has_a_name(status: int, reason: str) -> None:
    assert attempt._reason(status, []) == f"its process was {reason}"
