"""The table of calibration errors in ``docs/learners.md`` is that of the stored results."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

STORED = Path(__file__).parents[1] / "benchmarks" / "calibration.json"


def test_the_page_shows_the_stored_results() -> None:
    script = importlib.import_module("benchmarks.calibration")
    page = script.PAGE.read_text(encoding="utf-8")
    results = json.loads(STORED.read_text(encoding="utf-8"))
    assert script.table(results) in page
    assert script.show(page, results) == page
