"""The pages of data sets, trainings and experiments in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from browser import Console, check_page
from playwright.sync_api import Locator, Page, Route, expect
from stack import departments

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("console")]


PERSON = "trainer"

CONTENT = "".join(
    json.dumps({key: item[key] for key in ("text", "labels")}) + "\n" for item in departments(60)
)

DROP = """([name, content]) => {
  const files = new DataTransfer();
  files.items.add(new File([content], name));
  const options = { dataTransfer: files, bubbles: true, cancelable: true };
  for (const type of ["dragover", "drop"]) {
    document.querySelector("main").dispatchEvent(new DragEvent(type, options));
  }
}"""
"""Drops a file, as a person does who drags it from a folder. Only a script can do this in a test."""


EVENT_SOURCE = """path => new Promise((resolve) => {
  const source = new EventSource(path);
  let opened = 0;
  source.onopen = () => opened++;
  source.onerror = () => source.readyState === EventSource.CLOSED && resolve(opened);
})"""
"""Follows the events of a job until the browser does not connect again, and counts the connections."""


def test_the_path_from_a_dropped_file_to_a_version(page: Page) -> None:
    page.goto("/console/datasets")
    page.get_by_role("link", name="Upload a data set").click()
    check_page(page, name="upload")
    page.evaluate(DROP, ["invoice.pdf", "%PDF-1.7"])
    refused = "invoice.pdf is a PDF document. Export the data as CSV or JSON Lines."
    expect(page.get_by_text(refused)).to_be_visible()
    assert page.locator("#file").evaluate("file => file.validationMessage") == refused
    page.evaluate(DROP, ["empty.csv", ""])
    expect(page.get_by_text("empty.csv is empty.")).to_be_visible()
    page.evaluate(DROP, ["help desk.jsonl", CONTENT])
    expect(page.get_by_label("Name (required)")).to_have_value("help desk")
    expect(page.locator("[data-chosen]")).to_contain_text("help desk.jsonl")
    page.get_by_role("button", name="Upload", exact=True).click()

    # The page waits for the worker by itself.
    page.wait_for_url("**/console/datasets/ds_*")
    expect(page.get_by_role("heading", level=1)).to_have_text("help desk")
    expect(page.get_by_role("heading", name="Warnings")).to_be_visible()
    check_page(page, name="report")
    page.get_by_role("link", name="Examples").click()
    page.get_by_label("Text", exact=True).fill("INVOICE")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="on this page")).to_be_visible()
    check_page(page, name="examples")

    page.get_by_role("link", name="Report").click()
    page.get_by_role("link", name="Train a model").click()
    page.get_by_label("Model (required)").fill("inbox")
    expect(page.get_by_label("Learner", exact=True)).to_be_hidden()
    page.get_by_text("Advanced", exact=True).click()
    page.get_by_label("Learner", exact=True).select_option(label="MP-Boost")
    page.get_by_label("Rounds", exact=True).filter(visible=True).fill("25")
    promote = page.get_by_label("Put the version live", exact=True)
    promote.select_option(label="Only if better")
    page.get_by_label("Metric (required)").filter(visible=True).select_option(label="Covering loss")
    page.get_by_text("Advanced", exact=True).click()
    page.get_by_role("button", name="Start", exact=True).click()
    # The API says which field is wrong; the form says it beside the field.
    metric = page.get_by_label("Metric (required)").filter(visible=True)
    expect(metric).to_have_attribute("aria-invalid", "true")
    expect(metric).to_be_focused()
    expect(page.locator(".field .problem")).to_contain_text("cannot be compared by 'covering_loss'")
    check_page(page, name="form")
    promote.select_option(label="Only if it is the first version")
    page.get_by_role("button", name="Start", exact=True).press("Enter")

    page.wait_for_url("**/console/training/job_*")
    version = page.get_by_role("link", name="Open version 1 of inbox")
    expect(version).to_be_visible()
    expect(page.get_by_role("img", name="Loss bound by rounds")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel the training")).to_have_count(0)
    check_page(page, name="training")
    assert version.get_attribute("href") == "/console/models/inbox/versions/1"


def test_a_file_that_was_read_wrongly_is_explained_and_read_again(page: Page) -> None:
    page.goto("/console/datasets/new")
    page.locator("#file").set_input_files(
        {"name": "tickets.csv", "mimeType": "text/csv", "buffer": b"body,topic\nhello,sales\nbye,support\n"}
    )
    page.get_by_text("Format and labels", exact=True).click()
    page.get_by_label("Options", exact=True).select_option("csv")
    page.get_by_label("Text", exact=True).filter(visible=True).select_option(label="A text")
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url("**/console/datasets/ds_*")
    problem = "We could not read this file. There is no column 'labels'."
    expect(page.get_by_role("alert")).to_have_text(problem)
    check_page(page, name="failed")

    # The form shows how the file was read.
    page.get_by_role("link", name="Read the file again with other options").click()
    expect(page.get_by_label("Options", exact=True)).to_have_value("csv")
    page.go_back()
    # A choice for the option that is wrong reads the file that is already there, and replaces the data set.
    failed = page.url
    page.get_by_label("Labels", exact=True).select_option("topic")
    page.get_by_role("button", name="Read it again", exact=True).click()
    page.wait_for_url(lambda url: url != failed)
    expect(page.get_by_role("alert")).to_contain_text("is not a finite number")
    second = page.url
    page.get_by_label("Text", exact=True).select_option("body")
    page.get_by_role("button", name="Read it again", exact=True).click()
    page.wait_for_url(lambda url: url != second)
    expect(page.get_by_role("rowheader", name="support")).to_be_visible()
    page.goto(failed)
    expect(page.get_by_text("there is no data set")).to_be_visible()


def test_a_warning_offers_to_read_the_file_again(page: Page, console: Console) -> None:
    content = b"text,labels\n" + b"hello,sales;support\nbye,support\nhi,sales\n" * 5
    first = console.stack.upload(content, name="semicolons", format="csv")["id"]
    page.goto(f"/console/datasets/{first}")
    check_page(page, name="suggestion")
    page.get_by_role("button", name="Read it again with “;” between labels").click()
    page.wait_for_url(lambda url: not url.endswith(first))
    expect(page.get_by_role("rowheader", name="sales")).to_have_text("sales")
    expect(page.get_by_role("rowheader")).to_have_count(2)
    page.get_by_role("link", name="Read the file again with other options").click()
    expect(page.get_by_label("Separator between labels").filter(visible=True)).to_have_value(";")
    check_page(page, name="read-again")
    page.get_by_label("Name (required)").fill("with renamed labels")
    page.get_by_label("New names of labels").fill('{"sales": "revenue"}')
    page.get_by_role("button", name="Read the file again").click()
    page.wait_for_url("**/console/datasets/ds_*")
    expect(page.get_by_role("heading", level=1)).to_have_text("with renamed labels")
    expect(page.get_by_role("rowheader", name="revenue")).to_be_visible()
    page.goto(f"/console/datasets/{first}")
    expect(page.get_by_role("rowheader", name="sales;support")).to_be_visible()


def test_an_interrupted_upload_is_repeated(page: Page) -> None:
    page.goto("/console/datasets/new")
    page.locator("#file").set_input_files(
        {"name": "mail.jsonl", "mimeType": "application/jsonl", "buffer": CONTENT.encode()}
    )
    upload = page.get_by_role("button", name="Upload", exact=True)
    interrupted: list[str] = []

    def interrupt(route: Route) -> None:
        if interrupted:  # the content arrives, but not the response
            route.fetch()
        interrupted.append(route.request.url)
        route.abort()

    page.route("**/content", interrupt)
    for number in (1, 2):
        upload.click()
        lost = page.get_by_role("alert").filter(
            has_text="The connection was lost. Choose Upload to try again."
        )
        expect(lost).to_be_visible()
        assert len(interrupted) == number
        lost.evaluate("element => element.remove()")
    upload.click()
    page.wait_for_url("**/console/datasets/ds_*")
    assert page.url.rpartition("/")[2] in interrupted[1], "the content has arrived at the second time"
    expect(page.get_by_role("heading", name="Warnings")).to_be_visible()


def test_a_corrected_file_is_uploaded_and_its_data_set_deleted(page: Page, console: Console) -> None:
    failed = console.stack.upload(b"text,team\nhello,sales\n", name="tickets", format="csv")["id"]
    page.goto(f"/console/datasets/{failed}")
    page.locator("#file").set_input_files(
        {"name": "tickets.csv", "mimeType": "text/csv", "buffer": b"text,labels\nhello,sales\nbye,support\n"}
    )
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("heading", name="Labels")).to_be_visible()
    page.get_by_role("button", name="Delete the data set").press("Enter")
    page.get_by_role("button", name="Continue").press("Enter")
    page.wait_for_url("**/console/datasets")
    page.goto(f"/console/datasets/{failed}")
    expect(page.get_by_text(f"there is no data set {failed}")).to_be_visible()


def test_an_experiment_is_started_watched_and_its_winner_trained(page: Page, console: Console) -> None:
    dataset = console.stack.upload(CONTENT.encode(), name="mail")["id"]
    page.goto(f"/console/experiments/new?dataset={dataset}")
    page.get_by_label("Name", exact=True).fill("two learners")
    page.get_by_role("checkbox", name=re.compile("^Support vector machine")).uncheck()
    page.get_by_label("Held-out examples", exact=True).select_option("folds")
    page.get_by_label("Folds", exact=True).filter(visible=True).fill("2")
    check_page(page, name="experiment-form")
    page.get_by_role("button", name="Start the experiment").click()
    page.wait_for_url("**/console/experiments/exp_*")
    expect(page.get_by_role("heading", name="Best by Overall quality (F1)")).to_be_visible()
    check_page(page, name="experiment")
    page.get_by_role("link", name=re.compile("^Train the winner")).first.click()
    page.get_by_label("Model (required)").fill("winner")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url("**/console/training/job_*")
    expect(page.get_by_role("link", name="Open version 1 of winner")).to_be_visible()


@pytest.fixture
def running(console: Console) -> Iterator[str]:
    """A training that does not end by itself."""
    stack = console.stack
    dataset = stack.upload(CONTENT.encode(), name="mail")["id"]
    learner = {"algorithm": "mp_boost", "rounds": 100_000, "variant": "discrete"}
    job: str = stack.train(dataset, model="endless", learner=learner)["id"]
    yield job
    stack.call("POST", f"/v1/training-jobs/{job}/cancel", 202)
    assert stack.finished(job)["state"] == "cancelled"


def test_the_progress_and_the_curve_of_a_training_come_from_the_event_stream(
    page: Page, running: str, console: Console
) -> None:
    streams: list[str] = []
    page.on(
        "request", lambda request: streams.append(request.url) if request.url.endswith("/events") else None
    )
    page.goto(f"/console/training/{running}")
    progress = page.get_by_text(re.compile(r"^Training: [\d,]+ of 100,000 rounds$"))
    expect(progress).to_be_visible()
    expect(page.get_by_role("img", name="Loss bound by rounds")).to_be_visible()
    assert streams, "the page has a stream"

    # Without reading the page again, only the stream can tell how far the training is.
    page.route(f"**/console/training/{running}", lambda route: route.abort())
    for _ in range(2):
        before = progress.inner_text()
        expect(progress).not_to_have_text(before)
    page.unroute(f"**/console/training/{running}")

    console.stack.call("POST", f"/v1/training-jobs/{running}/cancel", 202)
    expect(page.get_by_text("The training was cancelled. It made no version.")).to_be_visible()
    assert page.evaluate(EVENT_SOURCE, f"/v1/training-jobs/{running}/events") == 1
    expect(page.locator(".toast.shown")).to_have_count(0)


def test_without_a_stream_the_page_of_a_training_is_read_again(page: Page, running: str) -> None:
    page.route("**/events", lambda route: route.fulfill(status=429, body="too many streams"))
    page.goto(f"/console/training/{running}")
    progress = page.get_by_text(re.compile(r"^Training: [\d,]+ of 100,000 rounds$"))
    for _ in range(2):
        before = progress.inner_text()
        expect(progress).not_to_have_text(before)


def choose_file(page: Page, name: str, content: bytes) -> Locator:
    """Choose a file in the form of an upload, and return the part of the form with its columns."""
    page.locator("#file").set_input_files({"name": name, "mimeType": "text/plain", "buffer": content})
    expect(page.locator("[data-chosen]")).to_contain_text(name)
    return page.get_by_role("group", name="Columns of the file")


def test_the_columns_of_a_table_are_chosen_beside_its_first_rows(page: Page) -> None:
    page.goto("/console/datasets/new")
    columns = choose_file(page, "plain.csv", b"text,labels\na,b\n")
    expect(columns.get_by_label("labels", exact=True)).to_have_value("labels")
    columns = choose_file(page, "mail.jsonl", b'{"text": "a", "labels": ["b"]}\n')
    expect(columns).to_be_hidden()
    content = (
        'Subject;body;team;product\nHello;"an invoice; für\n""wrong""";billing;\n'
        'Bye;the parcel;"shipping,billing";post\n'
    )
    columns = choose_file(page, "tickets.csv", content.encode("cp1252"))
    expect(columns).to_contain_text("CSV with semicolons between the cells, in Windows-1252.")
    expect(columns.get_by_role("cell", name='an invoice; für "wrong"')).to_be_visible()
    check_page(page, name="columns")
    columns.get_by_label("Subject").select_option("text")
    columns.get_by_label("body").select_option("text")
    page.get_by_role("button", name="Upload", exact=True).click()
    problem = columns.get_by_label("Subject").evaluate("select => select.validationMessage")
    assert problem == "Choose the column that contains the labels."
    columns.get_by_label("team").select_option("labels")
    columns.get_by_label("product").select_option("labels")
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url("**/console/datasets/ds_*")
    expect(page.get_by_role("rowheader", name="billing")).to_be_visible()
    expect(page.get_by_role("rowheader", name="post")).to_be_visible()
    page.get_by_role("link", name="Examples").click()
    expect(page.get_by_text("an invoice; für")).to_be_visible()
    expect(page.get_by_text("Hello")).to_be_visible()


def test_columns_of_yes_and_no_are_proposed_as_labels(page: Page) -> None:
    page.goto("/console/datasets/new")
    content = b"comment\ttoxic\trude\tscore\nyou fool\t1\t0\t7\nhello\t0\t0\t5\ngo away\t0\t1\t4\n"
    columns = choose_file(page, "comments.txt", content)
    expect(columns).to_contain_text("CSV with tabs between the cells.")
    for column, role in (("comment", ""), ("toxic", "flag"), ("rude", "flag"), ("score", "")):
        expect(columns.get_by_label(column)).to_have_value(role)
    columns.get_by_label("comment").select_option("text")
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url("**/console/datasets/ds_*")
    expect(page.get_by_role("rowheader")).to_have_count(2)
    expect(page.get_by_role("rowheader", name="toxic")).to_be_visible()
