"""The pages of the console in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import check_page, chromium, new_context, sign_in
from playwright.sync_api import Browser, Page, expect
from stack import Stack

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("console")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, str]]:
    """A service that requires keys, and the key of its administrator."""
    data = tmp_path_factory.mktemp("console") / "data"
    stack = Stack(data).start()
    key = stack.call("POST", "/v1/api-keys", 201, json={"name": "admin", "scopes": ["admin"]})["secret"]
    yield stack, key
    stack.stop()


@pytest.fixture
def page(browser: Browser, keyed: tuple[Stack, str]) -> Iterator[Page]:
    """A page of the administrator, who is signed in."""
    stack, key = keyed
    context = new_context(browser, stack.url)
    page = context.new_page()
    sign_in(page, key)
    yield page
    context.close()


def test_signing_in_with_the_keyboard_and_out(browser: Browser, keyed: tuple[Stack, str]) -> None:
    stack, key = keyed
    context = new_context(browser, stack.url)
    page = context.new_page()
    page.goto("/")
    check_page(page)
    page.keyboard.type("cov_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("unknown or has expired")
    expect(page.get_by_label("API key")).to_be_focused()
    page.keyboard.type(key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Which departments should a message go to?")
    page.get_by_role("button", name="Sign out").press("Enter")
    expect(page.get_by_label("API key")).to_be_visible()
    page.goto("/console/health")
    expect(page.get_by_label("API key")).to_be_visible()
    context.close()


def test_the_first_page_and_the_page_of_health(page: Page) -> None:
    check_page(page)
    page.get_by_role("link", name="Health").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs and health")
    expect(page.get_by_text("The service is ready.")).to_be_visible()
    check_page(page)


def test_keys_are_created_rotated_and_deleted(page: Page, keyed: tuple[Stack, str]) -> None:
    stack, _ = keyed
    page.goto("/console/keys")
    page.get_by_text("Create a key").click()
    page.get_by_role("checkbox", name="predict").uncheck()
    page.get_by_label("Name").fill("mail gateway")
    page.get_by_role("button", name="Create the key").click()
    # The API explains what is missing; the explanation is beside its field.
    expect(page.locator("form .problem")).to_be_visible()
    check_page(page)
    page.get_by_role("checkbox", name="predict").check()
    page.get_by_role("button", name="Create the key").click()
    secret = page.locator("#secret")
    expect(secret).to_contain_text("cov_")
    bearer = {"Authorization": f"Bearer {secret.text_content()}"}
    assert stack.http.get("/v1/datasets", headers=bearer).status_code == 403, "the key has only one scope"

    page.reload()
    page.get_by_role("button", name="Delete mail gateway").click()
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("rowheader", name="mail gateway")).to_have_count(0)
    assert stack.http.get("/v1/datasets", headers=bearer).status_code == 401
