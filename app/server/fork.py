"""Fork a process that ends with its parent, and end a process whatever threads it has."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

import structlog

from app.server.parent_death import set_parent_death_signal

log = structlog.get_logger()


def fork(run: Callable[[], object], *, death_signal: signal.Signals) -> int:
    """Run a function in a new process, and return the id of the process.

    Call it in the main thread of a process without other threads: only the calling thread exists in the new
    process, which inherits the locks of all. The exit status is that of ``end_process``.

    Args:
        run: the function.
        death_signal: the kernel sends it to the new process if its parent dies.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        _run_and_end(run, death_signal, parent)
    return pid


def _run_and_end(run: Callable[[], object], death_signal: signal.Signals, parent: int) -> NoReturn:
    error: BaseException | None = None
    try:
        if set_parent_death_signal(death_signal, parent):
            run()
        else:
            error = SystemExit(1)
    except BaseException as raised:  # noqa: BLE001 - the child must never continue as a copy of the parent
        error = raised
    end_process(error)


def end_process(error: BaseException | None) -> NoReturn:
    """End this process now. The interpreter would first wait for all threads that are not daemons.

    Args:
        error: why the process ends; None if its work is done. The exit status is that of ``SystemExit``, else
            1 with an error and 0 without.
    """
    status = 0
    try:
        if isinstance(error, SystemExit):
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
            if isinstance(error.code, str):
                sys.stderr.write(f"{error.code}\n")
        elif error is not None:
            status = 1
            log.error("process.internal_error", exc_info=error)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
