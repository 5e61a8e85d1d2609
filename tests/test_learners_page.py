"""docs/learners.md lists the current parameters of every learner."""

from __future__ import annotations

from learners_page import PAGE, render


def test_every_learner_has_its_table_and_it_is_current() -> None:
    page = PAGE.read_text("utf-8")
    assert render(page) == page, "run: python tests/support/learners_page.py"
