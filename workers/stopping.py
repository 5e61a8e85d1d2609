"""Whether this worker was told to stop: one byte that all of its processes share, database or not."""

from __future__ import annotations

import mmap

_flag = mmap.mmap(-1, 1)


def ask() -> None:
    """Tell every process of this worker to stop."""
    _flag[0] = 1


def asked() -> bool:
    """Whether this worker was told to stop."""
    return _flag[0] == 1
