"""Fork a process that ends with its parent."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

import structlog

from app.server.parent_death import set_parent_death_signal

log = structlog.get_logger()


def fork(run: Callable[[], object], *, death_signal: signal.Signals) -> int:
    """Run a function in a new process, and return the id of the process.

    Call it in the main thread of a process without other threads: only the calling thread exists in the new
    process, which inherits the locks of all. The exit status is that of ``SystemExit``, else 0 if the
    function returns, and 1 if it raises.

    Args:
        run: the function.
        death_signal: the kernel sends it to the new process if its parent dies.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    if pid := os.fork():
        return pid
    status = 1
    try:
        if set_parent_death_signal(death_signal, parent):
            run()
            status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            sys.stderr.write(f"{error.code}\n")
    except BaseException:  # the child must never continue as a copy of the parent
        log.exception("process.internal_error")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
