"""``docs/learners.md`` lists the current parameters of every learner."""

from __future__ import annotations

from learners_page import PAGE, render


def test_the_tables_of_parameters_are_up_to_date() -> None:
    page = PAGE.read_text("utf-8")
    assert render(page) == page, "run: python tests/support/learners_page.py"
