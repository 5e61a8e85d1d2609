"""``docs/results.md`` has one part for each script, with its charts, and nothing else."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

from benchmarks.papers.__main__ import PARTS
from benchmarks.papers.results import CHARTS, DOCS, HEAD, PAGE

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


@pytest.mark.parametrize("name", PARTS)
def test_the_page_contains_the_text_of_the_script(name: str) -> None:
    module = importlib.import_module(f"benchmarks.papers.{name}")
    (part,) = re.findall(rf"<!-- part: {name} -->\n(.*?)<!-- end -->", TEXT, re.DOTALL)
    text = [segment for segment in _template_text(inspect.getsource(module.run)) if len(segment) > 40]
    assert text
    assert [segment for segment in text if segment not in part] == []


def test_the_page_begins_with_the_head_of_the_script() -> None:
    assert TEXT.startswith(HEAD)


def _template_text(source: str) -> list[str]:
    """Return the text between the placeholders of multi-line f-strings."""
    templates = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.JoinedStr)]
    texts = [
        [value.value for value in template.values if isinstance(value, ast.Constant)]
        for template in templates
        if template.end_lineno != template.lineno
    ]
    return [str(text).strip() for template in texts for text in template]
