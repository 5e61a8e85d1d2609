"""A newcomer's way through the console in a real browser, and the keyboard alone for the review."""

from __future__ import annotations

from collections.abc import Iterator

import console_tour
import pytest
from browser import check_page, chromium, new_context
from page_snippets import ReaderService
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.build, pytest.mark.system]


@pytest.fixture
def page(service: ReaderService) -> Iterator[Page]:
    """A page of a service without keys and without data."""
    service.clear()
    with chromium() as browser:
        context = new_context(browser, service.stack.url)
        yield context.new_page()
        context.close()


def test_from_a_file_to_a_corrected_message(page: Page) -> None:
    console_tour.upload(page)
    console_tour.train(page)
    expect(page.get_by_text("Reliability: label sets")).to_be_visible()
    check_page(page)
    console_tour.create_router(page)
    console_tour.route(page)
    expect(page.locator("#result")).to_contain_text("billing")
    expect(page.locator("#result mark").first).to_be_visible()
    check_page(page)

    # From here on with the keyboard alone.
    page.get_by_role("link", name="Review queue").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=console_tour.SUBJECT)).to_be_visible()
    check_page(page)
    boxes = page.get_by_role("checkbox")
    expect(boxes.nth(1)).not_to_be_checked()
    page.keyboard.press("2")
    expect(boxes.nth(1)).to_be_checked()
    label = boxes.nth(1).get_attribute("value")
    page.keyboard.press("Enter")
    expect(page.locator("#saved")).to_contain_text(f"Saved for “{console_tour.SUBJECT}”: {label}")
    expect(page.get_by_text("No message awaits a review.")).to_be_visible()
    page.get_by_role("link", name="Report", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="Volume")).to_be_visible()
    check_page(page)
    page.get_by_role("link", name="Decisions", exact=True).press("Enter")
    assert label is not None
    expect(page.get_by_role("cell", name=label, exact=True)).to_be_visible()
    check_page(page)
