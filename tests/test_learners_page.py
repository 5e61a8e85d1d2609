"""The page of the learners tells the parameters as they are."""

from __future__ import annotations

from learners_page import PAGE, written


def test_every_learner_has_its_table_and_it_is_current() -> None:
    page = PAGE.read_text("utf-8")
    assert written(page) == page, "run: python tests/support/learners_page.py"
