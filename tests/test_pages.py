"""Pages for users are short; explanations and measurements are in ``docs/background``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
FOR_USERS = ("Start", "Data", "Models", "Mail", "Operations")
REFERENCE = {"settings", "cli"}
"""Pages that people search rather than read."""

_PART = re.compile(r"^:caption: ([^\n]+)\n\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
NAVIGATION = dict(_PART.findall((DOCS / "index.md").read_text("utf-8")))
PAGES = [page for part in FOR_USERS for page in NAVIGATION[part].split() if page not in REFERENCE]
NOT_READ = re.compile(r"^ *```.*?^ *```$|<!--.*?-->|\]\([^)]*\)", re.MULTILINE | re.DOTALL)


def words(page: str) -> int:
    """Count the words of a page, without code, comments and the targets of links."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    return len(re.findall(r"\w[\w'’.-]*", NOT_READ.sub(" ", text)))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_for_users_is_short(page: str) -> None:
    assert words(page) <= 2_000


def test_the_pages_for_users_are_short_together() -> None:
    assert sum(map(words, PAGES)) <= 25_000
