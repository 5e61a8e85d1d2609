"""Signals that a supervisor handles between its other work."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class SignalFlags:
    """Requests that have arrived as signals."""

    stop_requested: bool = False
    replace_requested: bool = False


@contextmanager
def signal_flags() -> Iterator[SignalFlags]:
    """Set flags on SIGTERM, SIGINT and SIGHUP; restore the previous handlers afterwards."""
    flags = SignalFlags()

    def request_stop(_number: int, _frame: object) -> None:
        flags.stop_requested = True

    def request_replacement(_number: int, _frame: object) -> None:
        flags.replace_requested = True

    handlers = {
        signal.SIGTERM: request_stop,
        signal.SIGINT: request_stop,
        signal.SIGHUP: request_replacement,
    }
    previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield flags
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
