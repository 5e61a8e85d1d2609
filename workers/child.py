"""``python -m workers.child JOB FENCE``: a job in its own process.

Whatever way it ends, the job's row tells: done, failed with a reason, cancelled; or it still says
``running``, and the parent or the lease finds out.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

import structlog
import threadpoolctl
from sqlalchemy.exc import InterfaceError, OperationalError

from app import logs
from app.environment import Environment
from app.errors import job_problem, make_problem
from app.jobs import kinds, ledger
from app.jobs.ledger import Claim, LostClaimError
from app.jobs.reporter import CancelledError, Reporter
from app.settings import get_settings
from models.errors import CoveyError
from workers.attempt import TRY_AGAIN

log = structlog.get_logger()

_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Carry out one claimed job.

    Returns:
        the exit status: 0 when the row tells how it ended, ``TRY_AGAIN`` when it could not be written.
    """
    parent = os.getppid()
    _die_with_parent()
    if os.getppid() != parent:
        return TRY_AGAIN
    job_id, fence = sys.argv[1], int(sys.argv[2])
    settings = get_settings()
    logs.configure(settings)
    env = Environment.open(settings)
    with (
        structlog.contextvars.bound_contextvars(job_id=job_id),
        threadpoolctl.threadpool_limits(settings.job_threads),
    ):
        try:
            claim = ledger.load_claim(env.db, job_id, fence)
            _carry_out(env, claim)
        except LostClaimError:
            log.warning("job.claim_lost")
        except (OperationalError, InterfaceError, OSError) as error:
            log.exception("job.cannot_go_on", reason=type(error).__name__)
            return TRY_AGAIN
    return 0


def _carry_out(env: Environment, claim: Claim) -> None:
    try:
        kinds.KINDS[claim.kind].run(env, claim, Reporter(env.db, claim))
    except CancelledError:
        kinds.cancelled(env, claim)
    except CoveyError as error:
        kinds.fail(env, claim, job_problem(error))
    except (LostClaimError, OperationalError, InterfaceError, OSError):
        raise
    except MemoryError:
        detail = "the job needs more memory than there is; use fewer features, or a larger machine"
        kinds.fail(env, claim, _problem("out_of_memory", detail))
    except Exception:
        # A fault of ours: trying again would only repeat it, so the job ends and says so.
        log.exception("job.fault")
        detail = f"a fault of the service; it has been logged under {claim.job_id}"
        kinds.fail(env, claim, _problem("internal_error", detail))


def _problem(code: str, detail: str) -> dict[str, object]:
    return make_problem(500, code, detail).model_dump(exclude_none=True)


def _die_with_parent() -> None:
    """A worker that is killed takes its jobs' processes with it, so that no job is ever done by two."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
