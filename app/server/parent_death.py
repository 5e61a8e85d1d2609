"""End a child process when its parent process ends, even if the parent is killed.

Linux sends the signal of ``prctl(PR_SET_PDEATHSIG)`` when the thread that created the process ends. So create
such processes from the main thread. On other systems, no signal is sent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1

# Loaded here, because a forked child of a process with threads must not load libraries.
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def end_with_parent(number: signal.Signals = signal.SIGTERM) -> Callable[[], None]:
    """Return a ``preexec_fn`` for ``Popen`` that sends the new process a signal when this process ends."""
    parent = os.getpid()

    def before_exec() -> None:
        if not set_parent_death_signal(number, parent):
            os._exit(1)

    return before_exec


def set_parent_death_signal(number: signal.Signals, parent: int) -> bool:
    """Have the kernel send this process a signal when its parent ends.

    Args:
        number: the signal.
        parent: process id of the parent, as it was before the fork.

    Returns:
        Whether the parent is still running. If not, no signal will be sent.
    """
    if _prctl is None:
        return True
    _prctl(_PR_SET_PDEATHSIG, number)
    return os.getppid() == parent
