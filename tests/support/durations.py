"""Units of tests that one process runs, since they share fixtures, and how long the units take.

A unit is an ``xdist_group``, or the other tests of a file. Units that take long run first, so that all
processes of ``make test`` end at the same time. ``make durations`` stores the durations.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadGroupScheduling

FILE = Path(__file__).parents[1] / "durations.json"

DEFAULT_SECONDS = 5.0
"""The duration of a unit that is not stored. A new test may take long, so it does not run last."""


def unit_of(nodeid: str) -> str:
    """Return the unit of a test. With ``--dist loadgroup``, pytest-xdist adds ``@`` and the group to ids."""
    if nodeid.rfind("@") > nodeid.rfind("]"):
        return nodeid.rpartition("@")[2]
    return nodeid.partition("::")[0]


def longest_first(items: list[pytest.Item]) -> None:
    """Sort tests by the durations of their units. Those of a unit keep their order: they share fixtures."""
    seconds: dict[str, float] = json.loads(FILE.read_text("utf-8"))

    def key(item: pytest.Item) -> tuple[float, str]:
        unit = unit_of(item.nodeid)
        return -seconds.get(unit, DEFAULT_SECONDS), unit

    items.sort(key=key)
    for item in items:
        # Reports lack the group that pytest-xdist has added to the id.
        item.user_properties.append(("unit", unit_of(item.nodeid)))


def scheduler(config: pytest.Config, log: Any) -> Any:
    """Return a scheduler for units. That of pytest-xdist lets all processes run tests of each file."""
    scheduling = LoadGroupScheduling(config, log)
    scheduling._split_scope = unit_of
    return scheduling


class StoreDurations:
    """A plugin that stores the durations of a run."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the duration of a test, of its setup, or of its teardown."""
        unit = dict(report.user_properties)["unit"]
        self._seconds[str(unit)] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the file, the longest units first."""
        longest_first = sorted(self._seconds.items(), key=lambda item: (-round(item[1], 1), item[0]))
        seconds = {unit: round(duration, 1) for unit, duration in longest_first}
        FILE.write_text(json.dumps(seconds, indent=1) + "\n", "utf-8")
