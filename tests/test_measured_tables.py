"""The tables of the documentation are those of the stored results of the benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks import promises, tables
from benchmarks.compare.__main__ import COMPARISONS
from benchmarks.learners.studies import STUDIES
from benchmarks.papers import defaults

PAGES: dict[str, tuple[Path, Mapping[str, str]]] = {
    "papers": (defaults.PAGE, defaults.rendered()),
    "promises": (promises.PAGE, promises.rendered()),
    **{name: (study.page, {name: study.table(tables.stored(name))}) for name, study in STUDIES.items()},
    **{name: (comparison.page, comparison.rendered(name)) for name, comparison in COMPARISONS.items()},
}
"""The pages with tables, and the tables by their marks."""


@pytest.mark.parametrize("name", PAGES)
def test_the_page_shows_the_stored_results(name: str) -> None:
    path, found = PAGES[name]
    page = path.read_text(encoding="utf-8")
    assert found
    for mark, text in found.items():
        assert tables.insert(page, mark, text) == page


def test_results_replace_those_of_the_same_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "STORED", tmp_path)
    tables.store("x", [{"a": 1, "b": 1, "value": 0.1}, {"a": 1, "b": 2, "value": 0.2}], ("a", "b"))
    tables.store("x", [{"a": 1, "b": 1, "value": 0.3}], ("a", "b"))
    assert tables.stored("x") == [{"a": 1, "b": 1, "value": 0.3}, {"a": 1, "b": 2, "value": 0.2}]


def test_a_page_without_marks_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 places"):
        tables.insert("no marks", "x", "text")
