"""The stop flag of a worker: one byte of memory that all its processes share."""

from __future__ import annotations

import mmap

_flag = mmap.mmap(-1, 1)


def request() -> None:
    """Request that every process of this worker stops."""
    _flag[0] = 1


def requested() -> bool:
    """Return whether this worker is stopping."""
    return _flag[0] == 1
