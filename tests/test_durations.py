"""The order of the tests."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import durations
import pytest


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        ("tests/app/test_ids.py::test_an_id[a]", "tests/app/test_ids.py"),
        ("tests/app/test_ids.py::test_an_id[a]@stack", "stack"),
        ("tests/app/test_ids.py::test_an_id[ann@example.org]", "tests/app/test_ids.py"),
        ("app/ids.py::app.ids.new_id", "app/ids.py"),
    ],
)
def test_the_unit_of_a_test_is_its_group_or_its_file(nodeid: str, unit: str) -> None:
    assert durations.unit_of(nodeid) == unit


def test_the_longest_units_run_first_and_keep_the_order_of_their_tests(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(durations, "FILE", tmp_path / "durations.json")
    durations.FILE.write_text(json.dumps({"short.py": 0.5, "long.py": 60.0, "group": 90.0}))
    ids = ["short.py::a", "new.py::a", "long.py::b", "other.py::a@group", "long.py::a", "short.py::b@group"]
    items: list[Any] = [SimpleNamespace(nodeid=nodeid, user_properties=[]) for nodeid in ids]
    durations.longest_first(items)
    assert [item.nodeid for item in items] == [
        *("other.py::a@group", "short.py::b@group"),
        *("long.py::b", "long.py::a"),
        *("new.py::a", "short.py::a"),
    ]


def test_a_run_stores_its_durations_by_unit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(durations, "FILE", tmp_path / "durations.json")
    durations.FILE.write_text("{}")
    plugin = durations.StoreDurations()
    tests: list[tuple[str, float]] = [("a.py::a", 0.25), ("a.py::b", 0.5), ("b.py::a@group", 2.0)]
    items: list[Any] = [SimpleNamespace(nodeid=nodeid, user_properties=[]) for nodeid, _ in tests]
    durations.longest_first(items)
    seconds = dict(tests)
    for item in items:
        nodeid = item.nodeid.partition("@")[0]  # as in the reports that pytest-xdist sends
        report: Any = SimpleNamespace(
            nodeid=nodeid, duration=seconds[item.nodeid], user_properties=item.user_properties
        )
        plugin.pytest_runtest_logreport(report)
    plugin.pytest_sessionfinish()
    assert list(json.loads(durations.FILE.read_text()).items()) == [("group", 2.0), ("a.py", 0.8)]
