"""Holds a job of a stack at a known point, for tests that act on a running job.

A test chooses the point before the job starts, waits until the job reaches it, and releases the job.
The result does not depend on the speed of the machine. The job's side is ``job_holds/sitecustomize.py``.
"""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from waiting import wait_for

MODULE_FOLDER = Path(__file__).parent / "job_holds"


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a process whose jobs look for holds in a folder."""
    folder.mkdir(exist_ok=True)
    path = [str(MODULE_FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"JOB_HOLDS": str(folder), "PYTHONPATH": os.pathsep.join(path)}


class Hold:
    """Holds the first job that reaches a point.

    Args:
        folder: folder in which the jobs look for holds.
        point: ``report``: the job has reported the step, and repeats the report. ``checkpoint``: the job has
            written a checkpoint of the step.
        kind: kind of the job.
        phase: phase of the job.
        step: the first step, counted from 1, at which the job is held. Some phases report step 0.
        attempt: number of the attempt that is held; None: any attempt.
        spec: fields of the job's specification.
    """

    _numbers = itertools.count()

    def __init__(
        self,
        folder: Path,
        *,
        point: Literal["report", "checkpoint"] = "report",
        kind: str = "train",
        phase: str = "training",
        step: int = 2,
        attempt: int | None = None,
        **spec: Any,
    ) -> None:
        self._file = folder / f"{next(self._numbers):05}.json"
        hold = {"point": point, "kind": kind, "phase": phase, "step": step, "attempt": attempt, "spec": spec}
        temporary = self._file.with_suffix(".writing")
        temporary.write_text(json.dumps(hold))
        temporary.rename(self._file)

    def wait(self) -> int:
        """Wait until a job is held, and return the id of its process."""

        def process_id() -> int | None:
            try:
                return int(self._file.with_suffix(".pid").read_text())
            except FileNotFoundError:
                return None

        return wait_for(process_id, what=f"a job to be held: {self._file.read_text()}")

    def release(self) -> None:
        """Let the job continue; from now on, no job is held here."""
        self._file.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
