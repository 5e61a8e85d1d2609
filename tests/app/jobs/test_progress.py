"""A running job writes its progress and its curve, and notices that it must stop."""

from __future__ import annotations

from typing import Any

import pytest
import rows
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from app.db import tables
from app.db.session import Database
from app.jobs import queue
from app.jobs.progress import REPORT_SECONDS, CancelledError, ProgressReporter
from app.jobs.queue import Claim, LostClaimError


class Stopwatch:
    """The clock of the reporter. It advances only if the test changes it."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def stopwatch(monkeypatch: pytest.MonkeyPatch) -> Stopwatch:
    watch = Stopwatch()
    monkeypatch.setattr("app.jobs.progress.time.monotonic", watch)
    return watch


@pytest.fixture
def claim(database: Database) -> Claim:
    return rows.claimed(database, rows.queued(database))


def progress(database: Database, claim: Claim) -> dict[str, Any] | None:
    return rows.job(database, claim.job_id).progress


def curve(database: Database) -> dict[int, dict[str, float]]:
    with database.read() as session:
        return {point.step: point.measures for point in session.scalars(select(tables.CurvePoint))}


def test_progress_is_written_at_intervals_and_includes_every_point_of_the_curve(
    database: Database, claim: Claim, stopwatch: Stopwatch
) -> None:
    report = ProgressReporter(database, claim)
    report("training", 1, 10, "rounds", {"z": 0.9})
    assert progress(database, claim) == {"phase": "training", "completed": 1, "total": 10, "unit": "rounds"}
    for n in (2, 3, 4):
        stopwatch.seconds += REPORT_SECONDS / 4
        report("training", n, 10, "rounds", {"z": 1 - n / 10})
    assert curve(database) == {1: {"z": 0.9}}
    stopwatch.seconds += REPORT_SECONDS / 4
    report("training", 5, 10, "rounds", {"z": 0.5})
    assert curve(database) == {n: {"z": 1 - n / 10} for n in range(1, 6)}
    assert progress(database, claim) == {"phase": "training", "completed": 5, "total": 10, "unit": "rounds"}


def test_a_point_of_the_curve_is_written_once(
    database: Database, claim: Claim, stopwatch: Stopwatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    write = queue.report_progress

    def record(db: Database, claim: Claim, progress: dict[str, Any], **options: Any) -> bool:
        written.extend(options["curve"])
        return write(db, claim, progress, **options)

    monkeypatch.setattr(queue, "report_progress", record)
    report = ProgressReporter(database, claim)
    for n in range(1, 10):
        report("training", n, 10, "rounds", {"z": 1 / n})
        stopwatch.seconds += REPORT_SECONDS / 2
    report("training", 10, 10, "rounds", {"z": 0.1})
    assert written == list(range(1, 11))


def test_measures_that_are_not_finite_are_omitted(
    database: Database, claim: Claim, stopwatch: Stopwatch
) -> None:
    report = ProgressReporter(database, claim)
    report("training", 1, 1, "rounds", {"loss": float("nan"), "z": float("inf"), "error": 0.5})
    assert curve(database) == {1: {"error": 0.5}}


def test_the_begin_and_end_of_a_phase_are_written_immediately(
    database: Database, claim: Claim, stopwatch: Stopwatch
) -> None:
    report = ProgressReporter(database, claim)
    report("reading", 0, None, "bytes")
    assert progress(database, claim) == {"phase": "reading", "completed": 0, "unit": "bytes"}
    report("training", 0, 2, "rounds")
    report("training", 1, 2, "rounds")
    assert progress(database, claim) == {"phase": "training", "completed": 0, "total": 2, "unit": "rounds"}
    report("training", 2, 2, "rounds")
    assert progress(database, claim) == {"phase": "training", "completed": 2, "total": 2, "unit": "rounds"}
    assert rows.events(database, claim.job_id) == ["queued", "started", "phase", "phase"]


def test_a_cancelled_job_stops_at_its_next_report(
    database: Database, claim: Claim, stopwatch: Stopwatch
) -> None:
    report = ProgressReporter(database, claim)
    report("training", 0, 9, "rounds")
    with database.write() as tx:
        job = queue.lock(tx, claim.job_id)
        assert job is not None
        queue.request_cancel(tx, job)
    stopwatch.seconds += REPORT_SECONDS
    with pytest.raises(CancelledError):
        report("training", 1, 9, "rounds")


def test_a_job_that_lost_its_claim_stops_at_its_next_report(
    database: Database, claim: Claim, stopwatch: Stopwatch
) -> None:
    report = ProgressReporter(database, claim)
    with database.write() as tx:
        job = queue.lock(tx, claim.job_id)
        assert job is not None
        queue.requeue_lost(tx, job, reason="no heartbeat")
    with pytest.raises(LostClaimError):
        report("training", 0, 9, "rounds")


def test_a_short_outage_of_the_database_stops_no_training_and_loses_no_point(
    database: Database, claim: Claim, stopwatch: Stopwatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = ProgressReporter(database, claim)

    def fail(*_: object, **__: object) -> bool:
        raise OperationalError("UPDATE", {}, ConnectionError("the server closed the connection"))

    with monkeypatch.context() as patch:
        patch.setattr(queue, "report_progress", fail)
        report("training", 1, 9, "rounds", {"z": 0.5})
    stopwatch.seconds += REPORT_SECONDS
    report("training", 2, 9, "rounds", {"z": 0.25})
    assert curve(database) == {1: {"z": 0.5}, 2: {"z": 0.25}}
    assert rows.events(database, claim.job_id) == ["queued", "started", "phase"]


def test_the_fraction_of_the_whole_job_never_decreases(database: Database, claim: Claim) -> None:
    def fraction(report: ProgressReporter, phase: str, completed: int, total: int | None, unit: str) -> float:
        report(phase, completed, total, unit)
        shown = progress(database, claim)
        assert shown is not None
        return float(shown["fraction"])

    weights = {"features/candidates": 2, "features": 2, "training": 4, "saving": 2}
    report = ProgressReporter(database, claim)
    report.plan(weights)
    assert fraction(report, "features", 4, 4, "candidates") == 0.2
    assert fraction(report, "features", 50, 50, "examples") == 0.4
    assert fraction(report, "training", 10, 10, "rounds") == 0.8
    assert fraction(report, "other", 0, None, "steps") == 0.8

    # The next attempt computes the features again.
    again = ProgressReporter(database, claim)
    again.plan(weights)
    assert fraction(again, "features", 4, 4, "candidates") == 0.8
    assert fraction(again, "saving", 1, 1, "files") == 1.0
