"""The table of calibration errors in ``docs/learners.md`` is that of the stored results."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.calibration import PAGE, show, table

STORED = Path(__file__).parents[1] / "benchmarks" / "calibration.json"


def test_the_page_shows_the_stored_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    results = json.loads(STORED.read_text(encoding="utf-8"))
    assert table(results) in page
    assert show(page, results) == page
