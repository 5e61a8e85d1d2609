"""``docs/results.md`` has one part for each script, with its charts, and nothing else."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from benchmarks.papers.__main__ import PARTS
from benchmarks.papers.results import CHARTS, DOCS, PAGE

TEXT = PAGE.read_text("utf-8")


def test_each_script_has_its_part_in_the_order_of_the_page() -> None:
    assert re.findall(r"<!-- part: (\w+) -->\n## (.+)", TEXT) == [
        (name, importlib.import_module(f"benchmarks.papers.{name}").TITLE) for name in PARTS
    ]


def test_each_script_with_a_run_function_is_a_part() -> None:
    folder = Path(importlib.import_module("benchmarks.papers").__path__[0])
    scripts = {path.stem for path in folder.glob("*.py") if "\ndef run(bench" in path.read_text("utf-8")}
    assert scripts == set(PARTS)


def test_the_page_shows_all_charts() -> None:
    shown = set(re.findall(r"!\[.*?\]\((.+?)\)", TEXT))
    assert shown == {path.relative_to(DOCS).as_posix() for path in CHARTS.glob("*")}
