"""The pages of models and routing in a real browser."""

from __future__ import annotations

import re

import pytest
from browser import Console, check_page
from playwright.sync_api import FilePayload, Page, expect
from stack import Stack, departments

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("console")]

PERSON = "reviewer"

SOURCE = """From: Ann <ann@example.org>
Subject: Question
Message-ID: <question@example.org>

Hello, the invoice is wrong: my card was charged twice. Please check the payment and refund the amount.
"""


@pytest.fixture(scope="module", autouse=True)
def model(console: Console) -> None:
    """Two versions of the model ``helpdesk``."""
    examples = [
        {
            "email": {"subject": f"Message {i}", "text": example["text"]},
            "labels": ["sales"] if i % 9 == 0 else example["labels"],  # some labels are wrong
            "split": example["split"],
        }
        for i, example in enumerate(departments(80))
    ]
    stack = console.stack
    dataset = stack.dataset(examples, format="jsonl")["id"]
    for learner in ({"algorithm": "naive_bayes"}, {"algorithm": "mp_boost", "rounds": 30}):
        job = stack.train(dataset, model="helpdesk", learner=learner, decision={"kind": "auto"})
        assert stack.finished(job["id"])["state"] == "succeeded"


def test_versions_are_compared_promoted_and_rolled_back(page: Page) -> None:
    page.goto("/console/models")
    check_page(page)
    page.get_by_role("link", name="helpdesk").click()
    check_page(page)
    page.get_by_role("button", name="Compare the selected versions").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Versions 2 and 1 of helpdesk")
    expect(page.get_by_role("rowheader", name="learner.algorithm")).to_be_visible()
    check_page(page)
    page.get_by_role("link", name="Version 2").first.click()
    expect(page.get_by_role("heading", name="Labels", exact=True)).to_be_visible()
    check_page(page)
    page.get_by_role("button", name="Put live").click()
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("h1 .tag")).to_have_text("live")
    page.goto("/console/models/helpdesk")
    page.get_by_role("button", name="Roll back").click()
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("dl.facts").get_by_role("link", name="1")).to_be_visible()
    expect(page.get_by_role("cell", name="rolled back")).to_be_visible()
    with page.expect_download() as download:
        page.goto("/console/models/helpdesk/versions/1")
        page.get_by_role("link", name="Model card").click()
    assert download.value.suggested_filename == "helpdesk-1.md"


def test_a_pasted_message_is_reviewed_with_the_keyboard_alone_and_counts_in_the_report(page: Page) -> None:
    page.goto("/console/routers")
    page.get_by_role("link", name="Create a router").click()
    page.get_by_label("Name").fill("desk")
    page.get_by_label("Fallback").fill("front@example.org")
    page.get_by_label("Review below").fill("2")
    page.locator("#settings").evaluate("form => form.noValidate = true")
    page.get_by_role("button", name="Create the router").click()
    expect(page.locator("form .problem")).to_contain_text("1")
    check_page(page)
    page.get_by_label("Review below").fill("1")
    page.get_by_role("button", name="Create the router").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("desk")
    page.get_by_label("Message", exact=True).fill(SOURCE)
    expect(page.locator("#kind")).to_contain_text("source of a message")
    page.get_by_role("button", name="Route the message").click()
    result = page.locator("#result")
    expect(result.get_by_role("heading", name="Decision")).to_contain_text("review")
    expect(result.locator("mark.for").first).to_be_visible()
    marked = set(re.findall(r"[a-z]+", " ".join(result.locator("mark.for").all_inner_texts()).lower()))
    assert marked & {"invoice", "card", "charged", "payment", "refund", "amount"}
    check_page(page)

    result.get_by_role("link", name="Review queue").click()
    expect(page.get_by_role("heading", name="Question")).to_be_visible()
    expect(page.locator(".message mark").first).to_be_visible()
    check_page(page)
    key = page.get_by_role("checkbox", name="support").get_attribute("aria-keyshortcuts")
    assert key is not None
    page.keyboard.press("Enter")
    expect(page.locator("#correction .problem")).to_contain_text("Choose a department first")
    page.keyboard.press(key)
    expect(page.get_by_role("checkbox", name="support")).to_be_checked()
    page.keyboard.press("Enter")
    expect(page.locator("#saved")).to_contain_text("Question”: support")
    expect(page.get_by_text("No message awaits a review.")).to_be_visible()

    page.get_by_role("link", name="Change it").click()
    expect(page.get_by_role("checkbox", name="support")).to_be_checked()
    check_page(page)
    page.get_by_role("link", name="Report", exact=True).click()
    row = page.get_by_role("row", name=re.compile("^review"))
    expect(row.get_by_role("cell").nth(1)).to_have_text("1")
    check_page(page)
    page.get_by_role("link", name="Decisions", exact=True).click()
    expect(page.get_by_role("cell", name="support")).to_be_visible()
    check_page(page)
    page.get_by_role("link", name="Settings", exact=True).click()
    page.get_by_label("Maximum number of departments").fill("2")
    check_page(page)
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/console/routers/desk")
    page.get_by_role("link", name="Settings", exact=True).click()
    expect(page.get_by_label("Maximum number of departments")).to_have_value("2")


SPREADSHEET = "text,labels,split\n" + "".join(
    f'{item["text"]},"{",".join(item["labels"])}",{item["split"]}\n' for item in departments(120)
)


def press(page: Page, name: str) -> None:
    """Press a button after the scripts of its page were loaded."""
    button = page.get_by_role("button", name=name, exact=True)
    expect(button).to_be_visible()
    page.wait_for_load_state()
    button.click()


def test_the_loop_from_a_spreadsheet_to_the_next_version_and_back(page: Page) -> None:
    page.goto("/console/datasets/new")
    file: FilePayload = {"name": "tickets.csv", "mimeType": "text/csv", "buffer": SPREADSHEET.encode()}
    page.locator("#file").set_input_files(file)
    press(page, "Upload")
    page.get_by_role("link", name="Train a model").click()
    page.get_by_label("Model (required)").fill("tickets")
    press(page, "Start")
    page.get_by_role("link", name="Open version 1 of tickets").click()
    page.get_by_role("link", name="Create a router").click()
    page.get_by_label("Name").fill("tickets")
    page.get_by_label("Fallback").fill("front@example.org")
    page.get_by_label("Random sample").fill("1")
    press(page, "Create the router")

    page.get_by_label("Message", exact=True).fill(SOURCE)
    press(page, "Route the message")
    with page.expect_response(re.compile("/reservation$")) as reserved:
        page.get_by_role("link", name="Review queue").first.click()
    assert reserved.value.json()["reserved_by"]["name"] == PERSON
    page.get_by_text("Assign the message, or leave a note").click()
    page.get_by_label("Note", exact=True).fill("a refund")
    press(page, "Save for other reviewers")
    expect(page.locator("#note")).to_have_text(f"Note by {PERSON}: a refund")
    check_page(page)
    page.get_by_role("checkbox", name="support").check()
    press(page, "Save Enter")
    expect(page.locator("#saved")).to_contain_text("support")
    page.get_by_role("link", name="Make a data set from 1 reviewed message").click()
    expect(page.get_by_label("Together with the data set")).to_contain_text("tickets, 120 examples")
    check_page(page)
    press(page, "Make the data set")
    press(page, "Train, and put it live if it is better")
    promotion = page.locator("#promotion")
    expect(promotion).to_contain_text(
        re.compile(r"Of \d+ test messages, the new version gets \d+ fully right")
    )
    expect(promotion).to_contain_text("The new version was not put live, because")
    check_page(page)

    page.get_by_role("link", name="Open version 2 of tickets").click()
    press(page, "Put live")
    press(page, "Continue")
    expect(page.locator("h1 .tag")).to_have_text("live")
    page.get_by_role("link", name="tickets", exact=True).first.click()
    press(page, "Roll back")
    press(page, "Continue")
    expect(page.locator("dl.facts").get_by_role("link", name="1")).to_be_visible()


DROP = """([name, content]) => {
  const files = new DataTransfer();
  files.items.add(new File([content], name, { type: "message/rfc822" }));
  const target = document.getElementById("message");
  for (const type of ["dragenter", "dragover", "drop"]) {
    const options = { dataTransfer: files, bubbles: true, cancelable: true };
    target.dispatchEvent(new DragEvent(type, options));
  }
}"""
"""Drops a file on the field of the message. Only a script can do this in a test."""


def create_router(stack: Stack, name: str) -> None:
    config = {"model": "helpdesk", "fallback": "front@example.org", "explain": True}
    stack.call("PUT", f"/v1/routers/{name}", 200, json=config)


def test_a_dropped_message_is_routed(page: Page, console: Console) -> None:
    create_router(console.stack, "dropped")
    page.goto("/console/routers/dropped")
    page.evaluate(DROP, ["invoice.pdf", "%PDF-1.7"])
    page.get_by_role("button", name="Route the message").click()
    expect(
        page.get_by_text("invoice.pdf is a PDF document; send the e-mail that contains it.")
    ).to_be_visible()
    page.get_by_label("Message", exact=True).fill("What was typed before counts no longer.")
    page.evaluate(DROP, ["question.eml", SOURCE])
    expect(page.get_by_text("question.eml")).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_have_value("")
    expect(page.get_by_label("Subject")).to_be_disabled()
    check_page(page)
    page.get_by_role("button", name="Route the message").click()
    result = page.locator("#result")
    expect(result.get_by_role("heading", name="Decision")).to_be_visible()
    result.get_by_role("link", name="Correct this decision").click()
    expect(page.get_by_role("heading", level=2, name="Question")).to_be_visible()


def test_settings_that_somebody_else_changed_meanwhile_are_not_lost(page: Page, console: Console) -> None:
    stack = console.stack
    create_router(stack, "shared")
    page.goto("/console/routers/shared/settings")
    page.get_by_label("Fallback").fill("mine@example.org")
    config = {"model": "helpdesk", "fallback": "theirs@example.org", "at_most": 3}
    stack.call("PUT", "/v1/routers/shared", 200, json=config)

    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("This router has changed")
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.get_by_label("Fallback")).to_have_value("mine@example.org")
    differences = page.locator("#changed li")
    expect(differences.filter(has_text="Fallback")).to_have_text(
        "Fallback: saved theirs@example.org, yours mine@example.org"
    )
    expect(differences.filter(has_text="Maximum number of departments")).to_contain_text(
        "saved 3, yours nothing"
    )
    expect(differences).to_have_count(3)
    assert stack.call("GET", "/v1/routers/shared", 200)["fallback"] == "theirs@example.org"
    check_page(page)

    page.get_by_role("button", name="Save my settings instead").click()
    page.wait_for_url("**/console/routers/shared")
    saved = stack.call("GET", "/v1/routers/shared", 200)
    assert saved["fallback"] == "mine@example.org"
    assert "at_most" not in saved, "the settings on the page replace all others"
