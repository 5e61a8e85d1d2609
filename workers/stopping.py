"""The flags that stop this worker, or only this process of it."""

from __future__ import annotations

import mmap

# One byte of memory that all processes of the worker share.
_worker = mmap.mmap(-1, 1)
_terminated = False


def request() -> None:
    """Request that every process of this worker stops."""
    _worker[0] = 1


def terminate() -> None:
    """Request that this process stops."""
    global _terminated  # noqa: PLW0603 - the handler of a signal calls it
    _terminated = True


def terminated() -> bool:
    """Return whether only this process was asked to stop."""
    return _terminated


def worker_stops() -> bool:
    """Return whether every process of this worker stops."""
    return _worker[0] == 1


def requested() -> bool:
    """Return whether this process must release its job."""
    return _terminated or worker_stops()
