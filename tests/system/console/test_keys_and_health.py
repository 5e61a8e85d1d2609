"""Signing in, and the pages of health and of keys, in a real browser."""

from __future__ import annotations

import pytest
from browser import Console, check_page, new_context
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("console")]

PERSON = "administrator"


def test_signing_in_with_the_keyboard_and_out(console: Console) -> None:
    context = new_context(console.browser, console.stack.url)
    page = context.new_page()
    page.goto("/")
    check_page(page)
    page.keyboard.type("cov_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("unknown or has expired")
    expect(page.get_by_label("API key")).to_be_focused()
    page.keyboard.type(console.keys[PERSON])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Which departments should a message go to?")
    page.get_by_role("button", name="Sign out").press("Enter")
    expect(page.get_by_label("API key")).to_be_visible()
    page.goto("/console/health")
    expect(page.get_by_label("API key")).to_be_visible()
    context.close()


def test_the_first_page_and_the_page_of_health(page: Page) -> None:
    page.goto("/console")
    check_page(page)
    page.get_by_role("link", name="Health").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs and health")
    expect(page.get_by_text("The service is ready.")).to_be_visible()
    check_page(page)


def test_keys_are_created_rotated_and_deleted(page: Page, console: Console) -> None:
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
    assert console.stack.http.get("/v1/datasets", headers=bearer).status_code == 403, (
        "the key has only one scope"
    )

    page.reload()
    page.get_by_role("button", name="Delete mail gateway").click()
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("rowheader", name="mail gateway")).to_have_count(0)
    assert console.stack.http.get("/v1/datasets", headers=bearer).status_code == 401


def test_a_session_that_ends_keeps_what_was_typed(console: Console) -> None:
    context = new_context(console.browser, console.stack.url)
    page = context.new_page()

    def sign_in(tab: Page) -> None:
        tab.get_by_label("API key").fill(console.keys[PERSON])
        tab.get_by_label("API key").press("Enter")
        expect(tab.get_by_role("button", name="Sign out")).to_be_visible()

    page.goto("/console/sign-in?next=/console/keys")
    sign_in(page)
    page.get_by_text("Create a key").click()
    page.get_by_label("Name").fill("mail gateway 2")
    (cookie,) = (item for item in context.cookies() if item["name"] == "covey_session")
    csrf = page.locator("html").get_attribute("data-csrf") or ""
    ended = console.stack.http.post(
        "/console/sign-out",
        data={"csrf": csrf},
        headers={"Authorization": "", "Cookie": f"covey_session={cookie['value']}"},
    )
    assert ended.status_code == 303
    page.get_by_role("button", name="Create the key").click()
    dialog = page.get_by_role("dialog", name="Your session has ended")
    expect(dialog).to_contain_text("you have signed out, or an administrator has ended it")
    check_page(page)
    dialog.get_by_role("button", name="Continue").click()
    expect(dialog.get_by_role("alert")).to_have_text("You are not signed in yet.")
    with context.expect_page() as opened:
        dialog.get_by_role("link", name="Sign in").click()
    expect(opened.value.get_by_role("heading", name="Your session has ended")).to_be_visible()
    sign_in(opened.value)
    opened.value.close()
    dialog.get_by_role("button", name="Continue").click()
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Create the key").click()
    expect(page.locator("#secret")).to_contain_text("cov_")
    context.close()
