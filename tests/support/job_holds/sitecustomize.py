"""Holds jobs at points that a test has chosen; see ``tests/support/holds.py``.

Python imports a module of this name when it starts, if its folder is on the path. ``Stack`` adds the folder
to the path of a service. The module changes only job processes, which are forks of a worker. A job that
reaches a chosen point waits there until the test releases it. A job that is held at a progress report
repeats the report. So it still notices that it is cancelled, or that its claim is lost.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = os.environ.get("JOB_HOLDS")

POLL_SECONDS = 0.02


def reached(claim: Any, point: str, phase: str, completed: int) -> Path | None:
    """Return the file of a hold that applies here, and that no other job has taken."""
    assert FOLDER is not None
    for path in sorted(Path(FOLDER).glob("*.json")):
        try:
            hold = json.loads(path.read_text())
        except FileNotFoundError:  # just released
            continue
        applies = (
            hold["point"] == point
            and hold["kind"] == claim.kind
            and hold["phase"] == phase
            and hold["step"] <= completed
            and hold["attempt"] in (None, claim.attempt)
            and hold["spec"].items() <= {name: claim.spec.get(name) for name in hold["spec"]}.items()
        )
        if applies:
            try:
                path.with_suffix(".taken").touch(exist_ok=False)
            except FileExistsError:
                continue
            return path
    return None


def announce(path: Path) -> None:
    """Write the id of this process for the test."""
    temporary = path.with_suffix(".writing")
    temporary.write_text(str(os.getpid()))
    temporary.rename(path.with_suffix(".pid"))


def hold_jobs() -> None:
    """Replace the methods that a job calls after each step, so that they hold the job."""
    if "workers.job_process" not in sys.modules:
        return
    from app.jobs.checkpoints import Checkpoints
    from app.jobs.progress import ProgressReporter

    if ProgressReporter.__call__.__module__ == __name__:
        return
    report, offer = ProgressReporter.__call__, Checkpoints.offer

    def report_and_wait(self: Any, phase: str, completed: int, *arguments: Any, **options: Any) -> None:
        path = reached(self._claim, "report", phase, completed)
        if path is not None:
            self._last = float("-inf")  # the report is written, however short the time since the last one
        report(self, phase, completed, *arguments, **options)
        if path is not None:
            announce(path)
            while path.exists():
                time.sleep(POLL_SECONDS)
                report(self, phase, completed, *arguments, **options)

    def offer_and_wait(self: Any, phase: str, completed: int, *arguments: Any, **options: Any) -> None:
        path = reached(self._claim, "checkpoint", phase, completed)
        if path is not None:
            self._due = float("-inf")  # the checkpoint is written, however short the time since the last one
        offer(self, phase, completed, *arguments, **options)
        if path is not None:
            announce(path)
            while path.exists():
                time.sleep(POLL_SECONDS)

    ProgressReporter.__call__ = report_and_wait  # type: ignore[method-assign]
    Checkpoints.offer = offer_and_wait  # type: ignore[method-assign]


if FOLDER is not None:
    os.register_at_fork(after_in_child=hold_jobs)
