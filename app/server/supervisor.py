"""Supervision of the child processes of a command, until a signal stops it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from app.server.child_process import POLL_SECONDS, ChildProcess, replace
from app.server.signals import signal_flags


def supervise(
    children: Sequence[ChildProcess],
    replaceable: Sequence[ChildProcess] = (),
    on_tick: Callable[[], object] = lambda: None,
) -> None:
    """Start child processes, restart those that die, and stop all on SIGTERM or SIGINT.

    On SIGHUP, it replaces child processes one by one: the old process stops when the new one is ready.

    Args:
        children: the child processes in the order of their start. The first ones stop last.
        replaceable: those that SIGHUP replaces, in this order.
        on_tick: called several times a second.
    """
    with signal_flags() as flags:

        def restart_dead() -> bool:
            """Restart dead children; return false if the service must stop."""
            if flags.stop_requested:
                return False
            for child in children:
                child.restart_if_dead()
            return True

        try:
            while restart_dead():
                if flags.replace_requested:
                    flags.replace_requested = False
                    for child in replaceable:
                        replace(child, restart_dead)
                on_tick()
                time.sleep(POLL_SECONDS)
        finally:
            for child in replaceable:
                child.terminate()  # they stop at the same time
            for child in reversed(children):
                child.stop()
