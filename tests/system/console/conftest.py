"""One service and one browser for all tests of the console."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import Console, chromium, new_context
from playwright.sync_api import Page
from stack import Stack

SCOPES = {
    "administrator": ["admin"],
    "trainer": ["read", "train"],
    "reviewer": ["read", "predict", "train"],
}
"""The people who open pages, the administrator first, and the scopes of their keys."""


@pytest.fixture(scope="package")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """The console with keys of an administrator and of people with fewer scopes."""
    stack = Stack(tmp_path_factory.mktemp("console") / "data").start()
    keys = {}
    for person, scopes in SCOPES.items():
        body = {"name": person, "scopes": scopes}
        keys[person] = stack.call("POST", "/v1/api-keys", 201, json=body)["secret"]
        stack.http.headers["Authorization"] = f"Bearer {keys['administrator']}"
    with chromium() as browser:
        yield Console(stack, browser, keys)
    stack.stop()


@pytest.fixture
def page(request: pytest.FixtureRequest, console: Console) -> Iterator[Page]:
    """A page of a person who has signed in: the constant ``PERSON`` of the module."""
    session = console.session_of(request.module.PERSON)
    context = new_context(console.browser, console.stack.url, session=session)
    yield context.new_page()
    context.close()
