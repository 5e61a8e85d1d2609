"""Every shell and Python snippet of the README and of ``docs`` runs, or says why no test runs it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import page_snippets
import pytest
from page_snippets import ROOT, ReaderService
from required import missing

pytestmark = [pytest.mark.build, pytest.mark.system]

RUN_BY_OTHER_TESTS = {
    "docs/library.md": "tests/covey/test_library_page.py",
    "docs/python-client.md": "tests/clients/test_python_readme.py",
    "docs/routing.md": "tests/system/test_routing_loop.py",
}
"""Pages that need more than the service, and the tests that run them with it."""


def order(page: Path) -> tuple[str, bool]:
    """Place a page behind the page that it continues."""
    before = page_snippets.continued(page)
    return page_snippets.name_of(before or page), before is not None


PAGES = sorted(
    (
        page
        for page in page_snippets.pages()
        if page_snippets.name_of(page) not in RUN_BY_OTHER_TESTS
        and any(not snippet.not_run for snippet in page_snippets.snippets(page))
    ),
    key=order,
)


@pytest.mark.parametrize("page", PAGES, ids=page_snippets.name_of)
def test_the_snippets_of_the_page_run(page: Path, service: ReaderService) -> None:
    for command in ("curl", "zip"):
        used = any(f"{command} " in snippet.code for snippet in page_snippets.snippets(page))
        if used and shutil.which(command) is None:
            missing(f"{command} is not installed (on Debian: the package {command})")
    service.run(page)


def test_every_page_that_other_tests_run_is_run_by_them() -> None:
    for page, test in RUN_BY_OTHER_TESTS.items():
        assert f'"{Path(page).name}"' in (ROOT / test).read_text("utf-8"), (page, test)


def test_snippets_that_are_not_run_are_few_and_have_a_reason() -> None:
    snippets = [snippet for page in page_snippets.pages() for snippet in page_snippets.snippets(page)]
    not_run = [snippet for snippet in snippets if snippet.not_run]
    for snippet in not_run:
        assert len(snippet.not_run.split()) >= 2, snippet.place
    assert len(not_run) < len(snippets) / 3, [snippet.place for snippet in not_run]


def test_a_snippet_has_a_language_that_is_run() -> None:
    for page in page_snippets.pages():
        languages = set(re.findall(r"^ *```(\w+)$", page.read_text("utf-8"), re.MULTILINE))
        assert not languages & {"shell", "console", "zsh", "py"}, page_snippets.name_of(page)
