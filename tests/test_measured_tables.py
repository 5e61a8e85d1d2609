"""The tables of the documentation are those of the stored results of the benchmarks."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from benchmarks import tables

MEASURED = (
    "calibration",
    "collected_writes",
    "decisions",
    "default_features",
    "linear_models",
    "mail_fields",
    "number_scaling",
    "papers.defaults",
    "promises",
    "single_document",
    "text_options",
    "threads",
    "threshold_bins",
)
"""The benchmarks with tables in the documentation."""


@pytest.mark.parametrize("name", MEASURED)
def test_the_page_shows_the_stored_results(name: str) -> None:
    script = importlib.import_module(f"benchmarks.{name}")
    page = script.PAGE.read_text(encoding="utf-8")
    found = script.rendered()
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
