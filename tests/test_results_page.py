"""``docs/results.md`` is what the scripts render from their stored results, and nobody types its numbers."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.papers import results
from benchmarks.papers.results import CHARTS, DOCS, PAGE, PARTS

TEXT = PAGE.read_text("utf-8")

NUMBER = re.compile(r"(?<!section )(?<!\d)\d*\.\d+|\d+ ?%")
"""A decimal number or a percentage, as measured figures are."""


def test_the_page_is_rendered_from_the_stored_results() -> None:
    assert results.render_page() == TEXT


def test_each_script_is_a_part_and_stores_results_that_it_can_measure() -> None:
    folder = Path(importlib.import_module("benchmarks.papers").__path__[0])
    scripts = {path.stem for path in folder.glob("*.py") if "\ndef render(" in path.read_text("utf-8")}
    assert scripts == set(PARTS)
    for part in PARTS:
        assert set(results.stored(part)) <= set(results.module_of(part).RESULTS), part


def test_there_are_no_results_or_charts_of_other_parts() -> None:
    assert {path.stem for path in CHARTS.glob("*.json")} == set(PARTS)
    shown = set(re.findall(r"!\[.*?\]\((.+?)\)", TEXT))
    assert shown == {path.relative_to(DOCS).as_posix() for path in CHARTS.glob("*.svg")}


@pytest.mark.parametrize("part", PARTS)
def test_each_result_names_its_origin(part: str) -> None:
    for name, result in results.stored(part).items():
        assert set(result) == {"origin", "figures"}, name
        assert result["origin"]["kind"] in ("measured", "page")
        assert re.fullmatch(r"[0-9a-f]{12}", result["origin"]["commit"])


@pytest.mark.parametrize("part", PARTS)
def test_a_changed_figure_changes_the_page(part: str) -> None:
    figures = results.figures_of(part)
    numbers = _numbers(figures)
    numbers = numbers[:: max(1, len(numbers) // 25)]
    changed = 0
    for holder, key in numbers:
        before = holder[key]
        holder[key] = before + 1.5
        changed += results.render_part(part, figures) not in TEXT
        holder[key] = before
    assert changed >= 0.5 * len(numbers)


@pytest.mark.parametrize("part", PARTS)
def test_no_figure_is_typed_in_a_text(part: str) -> None:
    typed = [
        text for text in _template_texts(inspect.getsource(results.module_of(part))) if NUMBER.search(text)
    ]
    assert typed == []


def test_a_typed_figure_is_found() -> None:
    source = 'def render(found):\n    return f"""The loss is 7.9, not {found}.\n"""\n'
    assert [text for text in _template_texts(source) if NUMBER.search(text)] == ["The loss is 7.9, not "]


def test_a_result_is_stored_with_the_commit_that_measured_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "CHARTS", tmp_path)
    results.store("mlpp_table_4", "operations", {"labels": 3})
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=DOCS, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert results.stored("mlpp_table_4") == {
        "operations": {"origin": {"kind": "measured", "commit": commit}, "figures": {"labels": 3}}
    }


def test_the_head_of_the_page_names_the_commands() -> None:
    assert TEXT.startswith(results.HEAD)


def _numbers(value: Any) -> list[tuple[Any, Any]]:
    """Return the places of all decimal numbers: their container and their key in it.

    The losses of single folds (``values``) are stored, but the page shows only their means.
    """
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found: list[tuple[Any, Any]] = []
    for key, item in items:
        if isinstance(item, float):
            found.append((value, key))
        elif key != "values":
            found += _numbers(item)
    return found


def _template_texts(source: str) -> list[str]:
    """Return the text between the placeholders of f-strings, without the formats of the placeholders."""
    tree = ast.parse(source)
    formats = {id(node.format_spec) for node in ast.walk(tree) if isinstance(node, ast.FormattedValue)}
    return [
        str(value.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr) and id(node) not in formats
        for value in node.values
        if isinstance(value, ast.Constant)
    ]
