"""Metrics of several API processes: each process writes its own to files, and each returns the sum of all."""

from __future__ import annotations

import os
from pathlib import Path

from prometheus_client import values

_SUPERVISOR = "supervisor"

_owner: int | str = _SUPERVISOR


def share_metrics(folder: Path, number: int | None = None) -> None:
    """Keep the metrics of this process in files. Call it before any metric exists, and again in each fork.

    The files outlive the process, so counters do not decrease when a process ends. The next process with the
    same number continues its files, so they do not grow in number.

    Args:
        folder: folder that the processes of the service share.
        number: a number that no other running process has; None for the supervisor, which only creates the
            metrics.
    """
    global _owner  # noqa: PLW0603 - the metrics ask for it
    _owner = _SUPERVISOR if number is None else number
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR") != str(folder) or values.ValueClass is values.MutexValue:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
        values.ValueClass = values.MultiProcessValue(lambda: _owner)  # type: ignore[no-untyped-call]
