"""The page of results has every part that there is a script for, with its pictures, and nothing else."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from benchmarks.papers.__main__ import PARTS
from benchmarks.papers.results import DOCS, PAGE, PICTURES

TEXT = PAGE.read_text("utf-8")


def test_every_script_has_its_part_in_the_order_of_the_page() -> None:
    assert re.findall(r"<!-- part: (\w+) -->\n## (.+)", TEXT) == [
        (name, importlib.import_module(f"benchmarks.papers.{name}").TITLE) for name in PARTS
    ]


def test_every_script_is_a_part_or_serves_some() -> None:
    folder = Path(importlib.import_module("benchmarks.papers").__path__[0])
    scripts = {path.stem for path in folder.glob("*.py") if "\ndef run(bench" in path.read_text("utf-8")}
    assert scripts == set(PARTS)


def test_pictures_are_there_and_none_is_left_over() -> None:
    shown = set(re.findall(r"!\[.*?\]\((.+?)\)", TEXT))
    assert shown == {path.relative_to(DOCS).as_posix() for path in PICTURES.glob("*")}
