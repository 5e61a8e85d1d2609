"""The tables of ``docs/background/results.md`` are what the parts render from their stored results."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.papers import frame
from benchmarks.papers.__main__ import PARTS, rendered
from benchmarks.tables import DOCS, insert

TEXT = frame.PAGE.read_text("utf-8")

WITHOUT_DECIMALS = {"mp_boost_figure_2", "adaboost_lc_figure_3", "mlpp_table_4"}
"""Parts whose tables show no decimal number of a result: they are drawn, or count."""


def test_the_tables_are_rendered_from_the_stored_results() -> None:
    for mark, text in rendered().items():
        assert insert(TEXT, mark, text) == TEXT


def test_every_table_of_the_page_is_rendered() -> None:
    marks = re.findall(r"<!-- (?!end )(.*?) -->", TEXT)
    assert marks == list(dict.fromkeys(marks))
    assert set(marks) == set(rendered())
    between = re.sub(r"<!-- (?!end ).*?<!-- end .*? -->", "", TEXT, flags=re.DOTALL)
    assert [line for line in between.splitlines() if line.startswith("|")] == []


@pytest.mark.parametrize("part", PARTS)
def test_each_result_can_be_measured_and_names_its_origin(part: str) -> None:
    assert set(frame.stored(part)) <= set(PARTS[part].results)
    for result in frame.stored(part).values():
        assert set(result) == {"origin", "figures"}
        assert result["origin"]["kind"] in ("measured", "page")
        assert re.fullmatch(r"[0-9a-f]{12}", result["origin"]["commit"])


def test_there_are_no_results_or_charts_of_other_parts() -> None:
    assert {path.stem for path in frame.RESULTS.glob("*.json")} == set(PARTS)
    shown = set(re.findall(r"!\[.*?\]\(results/(.+?)\)", TEXT))
    assert shown == {path.name for path in frame.RESULTS.glob("*.svg")}


@pytest.mark.parametrize("part", [part for part in PARTS if part not in WITHOUT_DECIMALS])
def test_a_changed_figure_changes_the_tables(part: str) -> None:
    figures = frame.figures_of(part)
    before = PARTS[part].marked(part, figures)
    changed = 0
    numbers = _numbers(figures)
    numbers = numbers[:: max(1, len(numbers) // 25)]
    for holder, key in numbers:
        value = holder[key]
        holder[key] = value + 1.5
        changed += PARTS[part].marked(part, figures) != before
        holder[key] = value
    assert changed >= 0.4 * len(numbers)  # sentences of the page tell of the others


def test_a_result_is_stored_with_the_commit_that_measured_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame, "RESULTS", tmp_path)
    frame.store("mlpp_table_4", "operations", {"labels": 3}, ["operations"])
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=DOCS, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert frame.stored("mlpp_table_4") == {
        "operations": {"origin": {"kind": "measured", "commit": commit}, "figures": {"labels": 3}}
    }


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
