"""A job in a process of its own, forked from a process of the pool that has everything imported already.

All memory that the job takes is given back when the process ends. Whatever way it ends, the job's row
tells: done, failed with a reason, cancelled; or it still says ``running``, and the parent or the lease
finds out.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog
import threadpoolctl

from app.context import AppContext
from app.db.session import DATABASE_UNAVAILABLE
from app.http.errors import job_problem, make_problem
from app.jobs.progress import CancelledError, ProgressReporter
from app.jobs.queue import Claim, LostClaimError
from app.parent_death import set_parent_death_signal
from app.storage.interface import DISK_UNAVAILABLE
from models.errors import CoveyError
from workers import job_kinds
from workers.log_tail import LogTail

log = structlog.get_logger()

EX_TEMPFAIL = 75
"""Exit status of a job that could do nothing about it: the database or the disk was away (EX_TEMPFAIL)."""

_POLL_SECONDS = 0.02


class JobProcess:
    """The process of one claimed job.

    Args:
        ctx: the parent's environment; the child opens its own.
        claim: the job.
    """

    def __init__(self, ctx: AppContext, claim: Claim) -> None:
        sys.stderr.flush()
        parent = os.getpid()
        self.tail = LogTail()
        self._status: int | None = None
        # No connection is inherited: a copy of one is a trap, whoever closes it.
        ctx.db.close()
        self.pid = os.fork()
        if self.pid == 0:
            status = EX_TEMPFAIL
            try:
                _detach(parent, ctx.settings.job_niceness)
                self.tail.keep()
                status = _carry_out(ctx, claim)
            except BaseException:  # nothing may run on as a second copy of the parent
                log.exception("job.fault")
            finally:
                sys.stderr.flush()
                os._exit(status)

    def wait(self, seconds: float) -> int | None:
        """Wait for the end, for so long at most.

        Returns:
            the exit status, negative for a signal; None while the process runs on.
        """
        deadline = time.monotonic() + seconds
        while self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() >= deadline:
                return None
            else:
                time.sleep(_POLL_SECONDS)
        return self._status

    def end(self) -> None:
        """End the process, if it has not ended by itself."""
        if self.wait(0) is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait(float("inf"))

    def close(self) -> None:
        """End the process if need be, and forget what it logged."""
        self.end()
        self.tail.close()


def _detach(parent: int, niceness: int) -> None:
    """Stop being a process of the pool."""
    os.setsid()
    os.nice(niceness)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A worker that is killed takes its jobs' processes with it, so that no job is ever done by two.
    if not set_parent_death_signal(signal.SIGKILL, parent):
        os._exit(EX_TEMPFAIL)
    if sys.platform == "linux":
        # Where the machine runs out of memory, the job has to go, and not the worker or the API.
        Path("/proc/self/oom_score_adj").write_text("500")
        # Linux may weigh sessions against each other instead of processes, and this is a session of its own.
        # It is not told so where it does not, and only so often in a second by those who are not root.
        with suppress(OSError):
            Path("/proc/self/autogroup").write_text(str(niceness))


def _carry_out(inherited: AppContext, claim: Claim) -> int:
    """Do the work.

    Returns:
        0 when the row tells how it ended, ``EX_TEMPFAIL`` when it could not be written.
    """
    ctx = AppContext.open(inherited.settings)
    try:
        with threadpoolctl.threadpool_limits(ctx.settings.job_threads):
            _run(ctx, claim)
    except LostClaimError:
        log.warning("job.claim_lost")
    except (*DATABASE_UNAVAILABLE, OSError):
        log.exception("job.cannot_go_on")
        return EX_TEMPFAIL
    return 0


def _run(ctx: AppContext, claim: Claim) -> None:
    try:
        job_kinds.KINDS[claim.kind].run(ctx, claim, ProgressReporter(ctx.db, claim))
    except CancelledError:
        job_kinds.cancelled(ctx, claim)
    except CoveyError as error:
        job_kinds.fail(ctx, claim, job_problem(error))
    except (LostClaimError, *DATABASE_UNAVAILABLE):
        raise
    except MemoryError:
        detail = "the job needs more memory than there is; use fewer features, or a larger machine"
        job_kinds.fail(ctx, claim, _problem("out_of_memory", detail))
    except Exception as error:
        if isinstance(error, OSError) and error.errno in DISK_UNAVAILABLE:
            raise
        # A fault of ours: trying again would only repeat it, so the job ends and says so.
        log.exception("job.fault")
        detail = f"a fault of the service; it has been logged under {claim.job_id}"
        job_kinds.fail(ctx, claim, _problem("internal_error", detail))


def _problem(code: str, detail: str) -> dict[str, Any]:
    return make_problem(500, code, detail).model_dump(exclude_none=True)
