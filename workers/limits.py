"""Limits on the time and memory of one job. The slot that started the job process enforces them.

Memory means the anonymous and shared pages of the job process, in memory or swap. Limits of the kernel do not
work: that of the address space (``RLIMIT_AS``) counts what numerical libraries reserve and never touch, and
files that are mapped; and with that of the data (``RLIMIT_DATA``) liblinear crashes, because it does not
check what it allocates. The slot checks twenty times a second, so a job can exceed its limit for a twentieth
of a second.
"""

from __future__ import annotations

import time
from typing import Any

from app.jobs.memory import job_limit, memory_of
from app.jobs.problems import failure
from app.jobs.queue import Claim
from app.settings import Settings


class Limits:
    """The limits of one attempt at a job.

    Args:
        settings: contain the limits.
        claim: the job. The time that earlier attempts took up to the checkpoint counts too.
    """

    def __init__(self, settings: Settings, claim: Claim) -> None:
        self._bytes = job_limit(settings)
        self._seconds = settings.job_seconds
        self._began = time.monotonic() - sum((claim.checkpoint or {}).get("seconds", {}).values())

    def exceeded(self, pid: int) -> dict[str, Any] | None:
        """Return the problem if the process exceeds a limit, or None."""
        if self._seconds and time.monotonic() - self._began > self._seconds:
            return failure(
                "out_of_time",
                f"the job took longer than {self._seconds:g} s; use fewer rounds or less data, "
                "or raise COVEY_JOB_SECONDS",
            )
        if self._bytes and memory_of(pid) > self._bytes:
            return failure(
                "out_of_memory",
                f"the job needed more memory than its limit of {self._bytes:,} bytes",
            )
        return None
