"""The way of a newcomer through the console, as the README describes it."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

MESSAGES = Path(__file__).parents[2] / "app/demo/messages.jsonl"
SUBJECT = "Invoice and delivery"
TEXT = "The invoice shows the same payment twice, and the parcel is late."


def upload(page: Page) -> None:
    """Upload the example messages, and wait for the report of the data set."""
    page.goto("/console")
    page.get_by_role("link", name="Upload a data set").click()
    page.get_by_label("File (required)").set_input_files(MESSAGES)
    page.get_by_label("Name (required)", exact=True).fill("helpdesk")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("Most frequent labels")).to_be_visible()


def train(page: Page) -> None:
    """Train a version of ``helpdesk`` on the page of the data set, and open the version."""
    page.get_by_role("link", name="Train a model").click()
    page.get_by_label("Model (required)", exact=True).fill("helpdesk")
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("link", name="Open version 1 of helpdesk").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("helpdesk, version 1")


def create_router(page: Page) -> None:
    """Create the router ``frontdesk``, which lets people review most messages."""
    page.get_by_role("link", name="Create a router").click()
    page.get_by_label("Name (required)", exact=True).fill("frontdesk")
    page.get_by_label("Fallback (required)").fill("frontdesk@example.org")
    page.get_by_label("Review below").fill("0.99")
    page.get_by_text("Destinations of departments").click()
    for label in ("billing", "shipping"):
        page.get_by_label(label, exact=True).fill(f"{label}@example.org")
    page.get_by_role("button", name="Create the router").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("frontdesk")


def route(page: Page) -> None:
    """Route a message on the page of the router, and wait for the decision."""
    page.get_by_label("Subject").fill(SUBJECT)
    page.get_by_label("Message", exact=True).fill(TEXT)
    page.get_by_role("button", name="Route the message").click()
    expect(page.get_by_role("heading", name="Deciding words")).to_be_visible()
