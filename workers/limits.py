"""What one job may use. Watched from outside, by the process that started the job's process.

Memory is what the job's process keeps in memory or swap and could not get back from a file: anonymous and
shared pages. Address space (``RLIMIT_AS``) would tell something else: numerical libraries reserve
gigabytes that they never touch, and data sets and models are mapped from files, whose pages the system
takes back when it needs them. The watcher looks twenty times a second, so a job can be over its limit for
that long.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from app.http.errors import make_problem
from app.jobs.queue import Claim
from app.settings import Settings

_COUNTED = ("RssAnon:", "RssShmem:", "VmSwap:")


class Limits:
    """The limits of one attempt at a job.

    Args:
        settings: what the operator allows.
        claim: the job; what earlier attempts left behind in a checkpoint counts as its time, too.
    """

    def __init__(self, settings: Settings, claim: Claim) -> None:
        self._bytes = settings.job_memory_bytes
        self._seconds = settings.job_seconds
        self._began = time.monotonic() - sum((claim.checkpoint or {}).get("seconds", {}).values())

    def exceeded(self, pid: int) -> dict[str, Any] | None:
        """The problem with which the job has to end now, or None."""
        if self._seconds and time.monotonic() - self._began > self._seconds:
            return _problem(
                "out_of_time",
                f"the job took longer than {self._seconds:g} s; ask for fewer rounds or less data, "
                "or raise COVEY_JOB_SECONDS",
            )
        if self._bytes and memory_of(pid) > self._bytes:
            return _problem(
                "out_of_memory",
                f"the job needed more than {self._bytes:,} bytes of memory; use fewer features or less data, "
                "or raise COVEY_JOB_MEMORY_BYTES",
            )
        return None


def memory_of(pid: int) -> int:
    """The memory in bytes that a process takes up; 0 where the system does not tell (not Linux)."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(_COUNTED))


def _problem(code: str, detail: str) -> dict[str, Any]:
    return make_problem(500, code, detail).model_dump(exclude_none=True)
