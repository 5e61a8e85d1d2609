"""The process of one job, forked from a process of the pool, which has already imported everything.

The memory of the job returns to the system when the process ends. However the process ends, the job's row is
right: it is finished, or it still says ``running``, and the parent process or the lease detects the loss.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import structlog
import threadpoolctl

from app.context import AppContext
from app.db.failures import DatabaseStateError
from app.db.session import DATABASE_UNAVAILABLE
from app.jobs.problems import failure, failure_of
from app.jobs.progress import CancelledError, ProgressReporter
from app.jobs.queue import Claim, FinalState, LostClaimError
from app.server.fork import fork
from app.server.process_name import name_process
from app.storage import MissingFileError, StorageUnavailableError
from app.storage.interface import UNAVAILABLE_ERRNOS
from app.telemetry.opening import open_spans
from models.errors import CoveyError
from workers import job_kinds
from workers.log_tail import LogTail

log = structlog.get_logger()

EX_TEMPFAIL = 75
"""Exit status if the database or the disk is unavailable, which is not a fault of the job (sysexits.h)."""

UNAVAILABLE_EVENT = "job.dependency_unavailable"
"""The event in the log that names what was unavailable."""

_POLL_SECONDS = 0.02


class JobProcess:
    """The process of one claimed job.

    Args:
        ctx: the context of the parent process; the job process opens its own.
        claim: the job.
    """

    def __init__(self, ctx: AppContext, claim: Claim) -> None:
        self.tail = LogTail()
        self._status: int | None = None
        # The job process must not inherit a connection: using or closing the copy would break the original.
        ctx.db.close()
        # If the worker is killed, the job process dies too, so that no job runs twice at the same time.
        self.pid = fork(lambda: self._run(ctx, claim), death_signal=signal.SIGKILL)

    def _run(self, ctx: AppContext, claim: Claim) -> None:
        status = EX_TEMPFAIL
        try:
            _detach(ctx.settings.job_niceness)
            self.tail.record()
            status = _run_and_report(ctx, claim)
        except BaseException:
            log.exception("job.internal_error")
        sys.exit(status)

    def wait(self, seconds: float) -> int | None:
        """Wait until the process ends, at most this long.

        Returns:
            the exit status, negative for a signal; None if the process is still running.
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

    def kill(self) -> None:
        """Kill the process if it is still running."""
        if self.wait(0) is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait(float("inf"))

    def close(self) -> None:
        """Kill the process if it is still running, and delete its log lines."""
        self.kill()
        self.tail.close()


def _detach(niceness: int) -> None:
    """Separate the job process from that of the pool."""
    os.setsid()
    os.nice(niceness)
    name_process("job")
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        # If the machine runs out of memory, the kernel kills the job, not the worker or the API.
        Path("/proc/self/oom_score_adj").write_text("500")
        # With autogroup scheduling, Linux applies niceness per session, and this process has its own session.
        # The file does not exist without autogroup, and the kernel limits how often a user can write it.
        with suppress(OSError):
            Path("/proc/self/autogroup").write_text(str(niceness))


def _run_and_report(inherited: AppContext, claim: Claim) -> int:
    """Run the job.

    Returns:
        0 if the row contains the outcome, ``EX_TEMPFAIL`` if it could not be written.
    """
    ctx = AppContext.open(inherited.settings, inherited.relay)
    started, outcome = time.time_ns(), "interrupted"
    try:
        with threadpoolctl.threadpool_limits(ctx.settings.job_threads):
            outcome = _run(ctx, claim)
    except LostClaimError:
        log.warning("job.claim_lost")
    except (*DATABASE_UNAVAILABLE, OSError) as error:
        log.exception(UNAVAILABLE_EVENT, reason=_cause(error))
        return EX_TEMPFAIL
    finally:
        _record_span(claim, started, outcome)
    return 0


def _cause(error: Exception) -> str:
    """Return what is unavailable, without addresses and folders, because clients can read it."""
    if isinstance(error, DatabaseStateError):
        return f"the database is {error.state}"
    if isinstance(error, StorageUnavailableError):
        return f"the storage is unavailable: {error.public_reason}"
    if isinstance(error, OSError):
        name = "" if error.filename is None else f" ({Path(os.fsdecode(error.filename)).name})"
        return f"{error.strerror or type(error).__name__}{name}"
    return f"the database is unavailable ({type(getattr(error, 'orig', error)).__name__})"


def _record_span(claim: Claim, started: int, outcome: str) -> None:
    """Export a span of the attempt. Its outcome is in the database already."""
    if (spans := open_spans(in_background=False)) is not None:
        attributes: dict[str, str | int | None] = {
            "covey.job_id": claim.job_id,
            "covey.job_kind": claim.kind,
            "covey.attempt": claim.attempt,
            "covey.outcome": outcome,
        }
        spans.record(f"job {claim.kind}", started, attributes, failed=outcome in {"failed", "interrupted"})
        spans.close()


def _run(ctx: AppContext, claim: Claim) -> FinalState:
    """Run the job and finish it. Return how it ended."""
    try:
        job_kinds.WORK[claim.kind].run(ctx, claim, ProgressReporter(ctx.db, claim))
    except CancelledError:
        job_kinds.cancel(ctx, claim)
        return "cancelled"
    except (CoveyError, MemoryError) as error:
        job_kinds.fail(ctx, claim, failure_of(error))
    except (LostClaimError, *DATABASE_UNAVAILABLE):
        raise
    except MissingFileError as error:
        log.error("storage.file_missing", key=error.key)  # noqa: TRY400 - a traceback adds nothing
        detail = f"the storage does not contain the file {error.key}; restore the storage from a backup"
        job_kinds.fail(ctx, claim, failure("file_missing", detail))
    except Exception as error:
        if isinstance(error, OSError) and error.errno in UNAVAILABLE_ERRNOS:
            raise
        # Libraries report errors of the file system in their own ways, for example a file that has vanished
        # with its folder. If the storage is unavailable, it is the likely cause, and the job is repeated.
        ctx.storage.check()
        # A bug: a retry would only repeat it, so the job fails.
        log.exception("job.internal_error")
        detail = f"internal error; the worker's log contains the cause under {claim.job_id}"
        job_kinds.fail(ctx, claim, failure("internal_error", detail))
    else:
        return "succeeded"
    return "failed"
