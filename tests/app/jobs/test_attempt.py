"""One attempt at a job, with a real process: however it ends, the row says so."""

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
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rows
import structlog
from waiting import LIMIT_SECONDS, wait_for

from app import logs
from app.context import AppContext
from app.db import tables
from app.db.session import Transaction
from app.jobs import queue
from app.jobs.progress import ProgressReporter
from app.jobs.queue import Claim
from models.errors import BadDataError
from workers import attempt, job_kinds, stopping
from workers.limits import memory_of

# The processes do nothing but use a database of their own and end without a word.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

OWNER = "wrk_1"


def succeed(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    with ctx.db.write() as tx:
        queue.finish(tx, claim, "succeeded", result={"made_by": os.getpid()})


def tell_how_nice_it_is(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    weighed = Path("/proc/self/autogroup")
    session = weighed.read_text().split()[-1] if weighed.exists() else None
    with ctx.db.write() as tx:
        queue.finish(tx, claim, "succeeded", result={"process": os.nice(0), "session": session})


def refuse(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    raise BadDataError("line 7 makes no sense")


def divide_by_zero(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    raise ZeroDivisionError("a secret of the house")


def take_all_memory(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    raise MemoryError


def meet_a_full_disk(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def be_killed(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    os._exit(3)


def end_without_a_word(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    pass


def sleep(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    time.sleep(LIMIT_SECONDS)


def be_cancelled(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    cancel(ctx, claim)
    for n in itertools.count():
        report("training", n, None, "rounds")
        time.sleep(0.01)


def be_cancelled_and_not_listen(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    cancel(ctx, claim)
    time.sleep(LIMIT_SECONDS)


def be_stopped(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    stopping.request()
    time.sleep(LIMIT_SECONDS)


def be_cancelled_and_stopped(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    cancel(ctx, claim)
    be_stopped(ctx, claim, report)


def be_overtaken(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    with ctx.db.write() as tx:
        job = queue.lock(tx, claim.job_id)
        assert job is not None
        queue.requeue_lost(tx, job, reason="thought dead")
        job.state, job.lease_owner, job.attempt = "running", "wrk_2", 2
        job.lease_expires_at = tx.now + timedelta(seconds=600)
    time.sleep(LIMIT_SECONDS)


def hoard(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    hoarded = np.ones(400 << 17)  # 400 MiB
    time.sleep(LIMIT_SECONDS)
    assert hoarded.all()


def looks_at(claim: Claim) -> int:
    """How often the watching process has looked at the memory."""
    return Path(claim.spec["pid"]).with_name("looks").stat().st_size


def read_a_large_file(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    with tempfile.TemporaryFile() as file:
        file.truncate(1 << 31)
        mapped = np.memmap(file, dtype=np.uint8, mode="r")
        assert mapped[:: 1 << 12].sum() == 0
        looks = looks_at(claim)
        wait_for(lambda: looks_at(claim) >= looks + 2 or None, what="two more looks at the memory")
    succeed(ctx, claim, report)


def be_struck_down(ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
    structlog.get_logger().warning("work.began", where="here")
    logging.getLogger("a library").warning("Dear Sir, my password is 1234")
    try:
        raise ValueError("Dear Sir")
    except ValueError:
        structlog.get_logger().exception("work.stumbled")
    ctypes.string_at(0)


def cancel(ctx: AppContext, claim: Claim) -> None:
    with ctx.db.write() as tx:
        job = queue.lock(tx, claim.job_id)
        assert job is not None
        queue.request_cancel(tx, job)


class Double:
    """A kind of work that behaves as the job's request says."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def run(self, ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
        """Behave so."""
        Path(claim.spec["pid"]).write_text(str(os.getpid()))
        globals()[claim.spec["do"]](ctx, claim, report)

    def on_failure(self, _tx: Transaction, _dataset_id: str | None, error: dict[str, Any]) -> None:
        """Remember it, where the watching process ended the job."""
        self.ended.append(error["code"])


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Double:
    made = Double()
    monkeypatch.setitem(job_kinds.KINDS, "train", made)
    monkeypatch.setattr(stopping, "_flag", mmap.mmap(-1, 1))
    return made


class Run:
    """Attempts at one job."""

    def __init__(self, ctx: AppContext, do: str, folder: Path, **changed: float) -> None:
        quick = {"heartbeat_seconds": 0.05, "cancel_grace_seconds": 0.3, "job_attempts": 2, **changed}
        self.ctx = replace(ctx, settings=ctx.settings.model_copy(update=quick))
        self.pid_file = folder / "pid"
        self.job_id = rows.queued(ctx.db, {"do": do, "pid": str(self.pid_file)})

    def attempt(self) -> tables.Job:
        """Make one, until its process has gone; gives the job's row."""
        attempt.run(self.ctx, self.job_id, OWNER)
        pid = int(self.pid_file.read_text())
        assert pid != os.getpid()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        return rows.job(self.ctx.db, self.job_id)

    @property
    def events(self) -> list[str]:
        """What happened, from the start of the first attempt on."""
        return rows.events(self.ctx.db, self.job_id)[1:]


def test_work_that_is_done_ends_in_another_process(ctx: AppContext, double: Double, tmp_path: Path) -> None:
    run = Run(ctx, "succeed", tmp_path)
    job = run.attempt()
    assert (job.state, job.result) == ("succeeded", {"made_by": int(run.pid_file.read_text())})
    assert run.events == ["started", "succeeded"]
    # A notifier that rings again finds nothing to do.
    attempt.run(run.ctx, run.job_id, OWNER)
    assert run.events == ["started", "succeeded"]


@pytest.mark.parametrize(
    ("do", "code"),
    [("refuse", "bad_data"), ("divide_by_zero", "internal_error"), ("take_all_memory", "out_of_memory")],
)
def test_work_that_cannot_be_done_fails_at_once_and_says_why(
    ctx: AppContext, double: Double, tmp_path: Path, do: str, code: str
) -> None:
    run = Run(ctx, do, tmp_path)
    job = run.attempt()
    assert job.state == "failed"
    assert job.error is not None
    assert job.error["code"] == code
    assert run.events == ["started", "failed"]
    if do == "refuse":
        assert "line 7 makes no sense" in job.error["detail"]
    else:
        assert "secret" not in str(job.error)


@pytest.mark.parametrize(
    ("do", "reason"),
    [
        ("be_killed", "SIGKILL"),
        ("leave", "status 3"),
        ("end_without_a_word", "status 0"),
    ],
)
def test_a_process_that_is_lost_is_tried_again_until_the_limit(
    ctx: AppContext, double: Double, tmp_path: Path, do: str, reason: str
) -> None:
    run = Run(ctx, do, tmp_path)
    job = run.attempt()
    assert (job.state, job.attempt) == ("queued", 1)
    assert run.events == ["started", "lost"]
    assert double.ended == []
    job = run.attempt()
    assert (job.state, job.attempt) == ("failed", 2)
    assert job.error is not None
    assert job.error["code"] == "worker_lost"
    assert reason in job.error["detail"]
    assert run.events == ["started", "lost", "started", "failed"]
    assert double.ended == ["worker_lost"]


@pytest.mark.parametrize("niceness", [0, 7])
def test_a_job_stands_back_and_its_worker_does_not(
    ctx: AppContext, double: Double, tmp_path: Path, niceness: int
) -> None:
    before = os.nice(0)
    job = Run(ctx, "tell_how_nice_it_is", tmp_path, job_niceness=niceness).attempt()
    assert job.result is not None
    assert job.result["process"] == min(before + niceness, 19)
    # Systems that weigh sessions do so by this number, which others than root may set a few times a second.
    assert job.result["session"] in (None, "0", str(niceness))
    assert os.nice(0) == before


def test_a_disk_that_is_full_is_not_held_against_the_job(
    ctx: AppContext, double: Double, tmp_path: Path
) -> None:
    run = Run(ctx, "meet_a_full_disk", tmp_path, job_attempts=1)
    job = run.attempt()
    assert (job.state, job.failures) == ("queued", 0)
    assert run.events == ["started", "lost"]


def test_a_job_that_takes_longer_than_it_may_is_ended(
    ctx: AppContext, double: Double, tmp_path: Path
) -> None:
    run = Run(ctx, "sleep", tmp_path, job_seconds=0.3)
    job = run.attempt()
    assert job.state == "failed"
    assert job.error is not None
    assert job.error["code"] == "out_of_time"
    assert double.ended == ["out_of_time"]


def test_a_job_that_needs_more_memory_than_it_may_is_ended(
    ctx: AppContext, double: Double, tmp_path: Path
) -> None:
    limit = memory_of(os.getpid()) + (200 << 20)
    run = Run(ctx, "hoard", tmp_path, job_memory_bytes=limit)
    job = run.attempt()
    assert job.state == "failed"
    assert job.error is not None
    assert job.error["code"] == "out_of_memory"
    assert f"{limit:,}" in job.error["detail"]


def test_memory_that_is_a_file_does_not_count(
    ctx: AppContext, double: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = tmp_path / "looks"
    looks.touch()

    def counted(pid: int) -> int:
        with looks.open("ab") as file:
            file.write(b".")
        return memory_of(pid)

    monkeypatch.setattr("workers.limits.memory_of", counted)
    run = Run(ctx, "read_a_large_file", tmp_path, job_memory_bytes=memory_of(os.getpid()) + (200 << 20))
    assert run.attempt().state == "succeeded"


def test_a_job_that_is_given_up_tells_its_last_words_and_nothing_of_a_mail(
    ctx: AppContext, double: Double, tmp_path: Path
) -> None:
    logs.configure(ctx.settings)
    job = Run(ctx, "be_struck_down", tmp_path, job_attempts=1).attempt()
    assert job.state == "failed"
    assert job.error is not None
    assert "SIGSEGV" in job.error["detail"]
    said = job.error["log"]
    began, stumbled = (json.loads(line) for line in said[:2])
    assert (began["event"], began["where"], began["level"]) == ("work.began", "here", "warning")
    assert (stumbled["event"], stumbled["exception"]) == ("work.stumbled", "ValueError")
    assert any("Segmentation fault" in line for line in said)
    assert any("be_struck_down" in line for line in said)
    assert "Dear Sir" not in str(said)


def test_a_job_that_is_cancelled_ends_itself(ctx: AppContext, double: Double, tmp_path: Path) -> None:
    run = Run(ctx, "be_cancelled", tmp_path, cancel_grace_seconds=LIMIT_SECONDS)
    assert run.attempt().state == "cancelled"
    assert run.events == ["started", "cancel_requested", "phase", "cancelled"]


def test_a_job_that_does_not_notice_that_it_was_cancelled_is_ended(
    ctx: AppContext, double: Double, tmp_path: Path
) -> None:
    run = Run(ctx, "be_cancelled_and_not_listen", tmp_path)
    assert run.attempt().state == "cancelled"
    assert run.events == ["started", "cancel_requested", "cancelled"]
    assert double.ended == ["cancelled"]


def test_a_worker_that_is_told_to_stop_hands_its_job_back(
    ctx: AppContext, double: Double, notified: list[str], tmp_path: Path
) -> None:
    run = Run(ctx, "be_stopped", tmp_path)
    notified.clear()
    job = run.attempt()
    assert (job.state, job.failures, job.consecutive_losses) == ("queued", 0, 0)
    assert run.events == ["started", "released"]
    assert notified == [run.job_id]


def test_a_worker_that_is_told_to_stop_does_not_hand_a_cancelled_job_back(
    ctx: AppContext, double: Double, notified: list[str], tmp_path: Path
) -> None:
    run = Run(ctx, "be_cancelled_and_stopped", tmp_path, cancel_grace_seconds=600)
    notified.clear()
    assert run.attempt().state == "cancelled"
    assert run.events == ["started", "cancel_requested", "cancelled"]
    assert double.ended == ["cancelled"]
    assert notified == []


def test_a_process_whose_job_is_somebody_elses_is_ended_and_changes_nothing(
    ctx: AppContext, double: Double, tmp_path: Path
) -> None:
    run = Run(ctx, "be_overtaken", tmp_path)
    job = run.attempt()
    assert (job.state, job.lease_owner, job.attempt) == ("running", "wrk_2", 2)
    assert run.events == ["started", "lost"]


def test_a_job_that_is_not_there_to_be_taken_starts_no_process(
    ctx: AppContext, double: Double, tmp_path: Path
) -> None:
    run = Run(ctx, "succeed", tmp_path)
    rows.claimed(ctx.db, run.job_id, "wrk_2")
    attempt.run(run.ctx, run.job_id, OWNER)
    assert not run.pid_file.exists()
