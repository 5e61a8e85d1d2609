"""Ends a process at once when it gets SIGTERM or SIGINT.

Python calls handlers of signals in the main thread only, after the function that runs there. So a handler
waits for a name server, for example. A thread does not, if the C part of the handler writes to its socket.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def end_on_signal(before: Callable[[], None]) -> Iterator[None]:
    """Have SIGTERM and SIGINT end the process with the status 0 while the block runs in the main thread.

    Args:
        before: called before the end, in another thread.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)

    def wait() -> None:
        if reader.recv(1):
            before()
            os._exit(0)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    previous_fd = signal.set_wakeup_fd(writer.fileno())
    previous = {number: signal.signal(number, _do_nothing) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(previous_fd)
        writer.close()
        thread.join()
        reader.close()


def _do_nothing(_number: int, _frame: object) -> None:
    """Be a handler, so that the number of the signal is written."""
