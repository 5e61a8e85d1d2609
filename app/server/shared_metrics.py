"""Metrics of several API processes: each process writes its own to files, and each returns the sum of all."""

from __future__ import annotations

import os
from pathlib import Path

from prometheus_client import values


def share_metrics(folder: Path, number: int) -> None:
    """Keep the metrics of this process in files. Call it before any metric is created.

    The files outlive the process, so counters do not decrease when a process ends. The next process with the
    same number continues its files, so they do not grow in number.

    Args:
        folder: folder that the processes of the service share.
        number: a number that no other running process has.
    """
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    values.ValueClass = values.MultiProcessValue(lambda: number)  # type: ignore[no-untyped-call]
