"""Release, memory, CPU and open files of the API processes, and the state of the storage."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable

from prometheus_client import process_collector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.context import AppContext
from app.server.process_name import siblings_of_same_name
from app.version import __version__


class ProcessCollector(Collector):
    """The standard metrics ``process_…`` of the API processes: sums, if there are several.

    The start is that of the youngest process, and the limit of open files that of each process.
    """

    def collect(self) -> Iterable[Metric]:
        """Return the metrics; only the release on other systems than Linux."""
        build = GaugeMetricFamily(
            "covey_build_info", "The release of this process; always 1.", labels=["version", "python"]
        )
        build.add_metric([__version__, platform.python_version()], 1)
        yield build
        yield from sum_of_processes(_pids())


class StorageCollector(Collector):
    """Whether this process reaches the storage, and the space that is free in its folder.

    Args:
        ctx: the application context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        reason = self._ctx.storage_probe.reason()
        yield GaugeMetricFamily(
            "covey_storage_available", "Whether the storage can be used.", value=float(reason is None)
        )
        free = self._ctx.storage_probe.free_bytes
        if reason is None and free is not None:
            yield GaugeMetricFamily("covey_storage_free_bytes", "Free space of the storage.", value=free)


def sum_of_processes(pids: Iterable[int]) -> list[Metric]:
    """Return the metrics ``process_…`` of processes, added up."""
    families: dict[str, Metric] = {}
    for pid in pids:
        one = process_collector.ProcessCollector(pid=lambda pid=pid: pid, registry=None)  # type: ignore[misc]
        for family in one.collect():
            if (known := families.setdefault(family.name, family)) is family:
                continue
            (first,), (second,) = known.samples, family.samples
            combine = max if family.name in ("process_start_time_seconds", "process_max_fds") else _add
            known.samples = [first._replace(value=combine(first.value, second.value))]
    return list(families.values())


def _add(first: float, second: float) -> float:
    return first + second


def _pids() -> list[int]:
    """Return this process, and the other API processes of the service if they share their metrics."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return [os.getpid()]
    return siblings_of_same_name()
