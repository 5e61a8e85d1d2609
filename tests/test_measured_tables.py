"""The tables of the documentation are those of the stored results of the benchmarks, and of the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import learners_page
import pytest

from benchmarks import promises, tables
from benchmarks.compare.__main__ import COMPARISONS
from benchmarks.learners.studies import STUDIES
from benchmarks.papers import defaults

TABLES: dict[str, Mapping[str, str]] = {
    "learners": learners_page.rendered(),
    "papers": defaults.rendered(),
    "promises": promises.rendered(),
    **{name: {name: study.table(tables.stored(name))} for name, study in STUDIES.items()},
    **{name: comparison.rendered(name) for name, comparison in COMPARISONS.items()},
}
"""The tables of each benchmark by their marks."""


@pytest.mark.parametrize("name", TABLES)
def test_the_pages_show_the_tables(name: str) -> None:
    assert TABLES[name]
    for mark, text in TABLES[name].items():
        page = tables.page_with(mark).read_text(encoding="utf-8")
        assert tables.insert(page, mark, text) == page


def test_results_replace_those_of_the_same_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "STORED", tmp_path)
    tables.store("x", [{"a": 1, "b": 1, "value": 0.1}, {"a": 1, "b": 2, "value": 0.2}], ("a", "b"))
    tables.store("x", [{"a": 1, "b": 1, "value": 0.3}], ("a", "b"))
    assert tables.stored("x") == [{"a": 1, "b": 1, "value": 0.3}, {"a": 1, "b": 2, "value": 0.2}]


def test_a_page_without_marks_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 places"):
        tables.insert("no marks", "x", "text")
