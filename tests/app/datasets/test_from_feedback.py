"""Data sets that are made from the feedback on decisions, over HTTP."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import in_process
import pytest
from contract import problem_of
from in_process_api import InProcessApi, api

from app.context import AppContext
from app.datasets.work import Ingestion
from app.db import tables
from app.errors import FileDamaged, NotReady
from app.storage import MissingFileError
from models.mail.email import Email
from workers import job_kinds

OCTETS = {"Content-Type": "application/octet-stream"}
MAIL = {"Content-Type": "message/rfc822"}


def raw(number: int, text: str = "my invoice is wrong") -> bytes:
    """Return a message."""
    return f"Message-ID: <{number}@example.org>\r\nSubject: mail {number}\r\n\r\n{text}\r\n".encode()


def mail(number: int, *labels: str, **fields: Any) -> dict[str, Any]:
    """Return a message as an example."""
    return {"raw_email": base64.b64encode(raw(number)).decode(), "labels": list(labels), **fields}


class Desk:
    """A router, and the messages that it keeps.

    Args:
        service: the API, with a model ``m``.
        name: name of the router.
    """

    def __init__(self, service: InProcessApi, name: str) -> None:
        self.service = service
        self.name = name
        self.kept: dict[str, bytes] = {}
        self.errors: dict[str, Exception] = {}
        self.configure(review_sample=0)

    def configure(self, **fields: Any) -> None:
        """Create or replace the router."""
        body = {"model": "m", "fallback": "desk@example.org", **fields}
        self.service.call("PUT", f"/v1/routers/{self.name}", 200, json=body)

    def read(self, _ctx: AppContext, row: tables.Decision) -> Email | None:
        """Return the kept message of a decision, or raise the error of its file."""
        if (error := self.errors.get(row.id)) is not None:
            raise error
        message = self.kept.get(row.id)
        return None if message is None else Email(raw=message)

    def route(self, number: int, *labels: str, keep: bool = True, answer: bool = True) -> dict[str, Any]:
        """Route a message, and submit the correct labels unless nobody answers."""
        decision: dict[str, Any] = self.service.call(
            "POST", f"/v1/routers/{self.name}/messages", 200, content=raw(number), headers=MAIL
        )
        if keep:
            self.kept[decision["decision_id"]] = raw(number)
        if not answer:
            return decision
        path = f"/v1/decisions/{decision['decision_id']}/feedback"
        feedback: dict[str, Any] = self.service.call(
            "POST", path, 200, json={"labels": list(labels), "allow_new_labels": True}
        )
        return feedback

    def create(self, **body: Any) -> dict[str, Any]:
        """Create a data set from the feedback, let a worker make it, and return it."""
        selection = {"router": self.name, **body.pop("from_feedback", {})}
        body = {"name": "next", "from_feedback": selection, **body}
        created = self.service.call("POST", "/v1/datasets", 201, json=body)
        in_process.work(self.service.ctx)
        return self.get(created["id"])

    def get(self, dataset_id: str) -> dict[str, Any]:
        """Return a data set."""
        dataset: dict[str, Any] = self.service.call("GET", f"/v1/datasets/{dataset_id}", 200)
        return dataset

    def examples(self, dataset: dict[str, Any]) -> list[tuple[str, list[str], str | None]]:
        """Return the id, labels and split of the examples."""
        assert dataset["state"] == "ready", dataset["error"]
        items = self.service.call("GET", f"/v1/datasets/{dataset['id']}/examples", 200)["items"]
        assert all("raw_email" in item for item in items)
        return [(item["id"], item["labels"], item.get("split")) for item in items]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    """The API, with a model ``m``. All tests of this file share it."""
    folder = tmp_path_factory.mktemp("api")
    with pytest.MonkeyPatch.context() as patch, api(folder, migrated_sqlite, patch) as service:
        service.train(service.dataset())
        yield service


@pytest.fixture
def desk(trained: InProcessApi, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A router for one test."""
    desk = Desk(trained, request.node.name[:60])
    monkeypatch.setitem(job_kinds.WORK, "ingest", Ingestion(desk.read))
    return desk


def test_corrections_and_the_old_data_set_become_the_next_one(desk: Desk) -> None:
    old = desk.service.dataset(
        [
            mail(1, "billing", id="a", split="train"),
            mail(2, "billing", id="b", split="test"),
            mail(3, "shipping", id="c", split="test"),
        ]
    )
    desk.route(2, "returns")
    desk.route(4, "shipping")
    desk.route(5, "billing", keep=False)
    dataset = desk.create(and_dataset=old)
    assert desk.examples(dataset) == [
        ("a", ["billing"], "train"),
        ("b", ["returns"], "test"),
        ("c", ["shipping"], "test"),
        ("4@example.org", ["shipping"], "train"),
    ]
    lineage = dataset["lineage"]
    assert [(entry["dataset_id"], entry["n_used"]) for entry in lineage["datasets"]] == [(old, 3)]
    feedback = lineage["feedback"]
    assert feedback.pop("to")
    assert feedback == {
        "router": desk.name,
        "n_decisions": 3,
        "n_sampled": 0,
        "n_relabelled": 1,
        "n_new": 1,
        "n_without_message": 1,
    }
    assert any("not available: 1 of 3" in warning for warning in dataset["warnings"])
    job = desk.service.train(dataset["id"], model="next")
    assert desk.service.call("GET", f"/v1/training-jobs/{job['id']}", 200)["state"] == "succeeded"


def test_messages_join_a_data_set_of_texts_as_the_model_reads_them(desk: Desk) -> None:
    desk.configure(review_sample=1)
    texts = [
        {"id": "a", "text": "the parcel is late", "labels": ["shipping"], "split": "train"},
        {"id": "b", "text": "the price is too high", "labels": ["sales"], "split": "test"},
    ]
    old = desk.service.dataset(texts)
    decisions = [desk.route(number, "billing")["decision_id"] for number in range(1, 7)]
    dataset = desk.create(and_dataset=old)
    assert (dataset["state"], dataset["kind"]) == ("ready", "text")
    items = desk.service.call("GET", f"/v1/datasets/{dataset['id']}/examples", 200)["items"]
    assert items[:2] == texts
    assert [item["id"] for item in items[2:]] == decisions
    assert items[2]["text"] == "mail 1\nmy invoice is wrong"
    assert {item["selected_by"] for item in items[2:]} == {"sample"}
    assert [item["split"] for item in items[2:]].count("test") == 1, "a fifth of the sample tests"

    desk.route(2, "returns")
    again = desk.create(and_dataset=dataset["id"])
    changed = desk.service.call("GET", f"/v1/datasets/{again['id']}/examples", 200)["items"]
    assert [item["labels"] for item in changed[2:4]] == [["billing"], ["returns"]]
    assert len(changed) == len(items), "a message that is in the data set gets the labels of the feedback"


def test_only_corrections_or_only_confirmations(desk: Desk) -> None:
    for number in (1, 2):
        decision = desk.route(number)
        labels = [department["label"] for department in decision["departments"]]
        desk.route(number, *labels if number == 1 else ["other"])
    assert [id_ for id_, *_ in desk.examples(desk.create(from_feedback={"feedback": "agreed"}))] == [
        "1@example.org"
    ]
    corrected = desk.create(from_feedback={"feedback": "corrected"})
    assert [id_ for id_, *_ in desk.examples(corrected)] == ["2@example.org"]
    assert corrected["lineage"]["feedback"]["feedback"] == "corrected"
    assert len(desk.examples(desk.create())) == 2


def test_examples_say_why_they_were_reviewed(desk: Desk) -> None:
    for number in (1, 2):
        desk.route(number, "a")
    desk.configure(review_sample=1)
    for number in (3, 4, 5):
        assert desk.route(number, "a")["sampled"] is True
    doubted = desk.route(6, "b")["decision_id"]
    with desk.service.ctx.db.write() as tx:
        row = tx.session.get_one(tables.Decision, doubted)
        row.disposition, row.sampled = "review", False
    dataset = desk.create()
    assert dataset["lineage"]["feedback"]["n_sampled"] == 3
    items = desk.service.call("GET", f"/v1/datasets/{dataset['id']}/examples", 200)["items"]
    assert [(item["id"][0], item["selected_by"]) for item in items] == [
        *(("1", "volunteered"), ("2", "volunteered")),
        *(("3", "sample"), ("4", "sample"), ("5", "sample"), ("6", "doubt")),
    ]
    corrected = desk.create(from_feedback={"feedback": "corrected"})
    assert corrected["lineage"]["feedback"]["n_sampled"] == 0, "mistakes are no random sample"
    copy = desk.service.call(
        "POST", "/v1/datasets", 201, json={"name": "copy", "derive": {"datasets": [dataset["id"]]}}
    )
    in_process.work(desk.service.ctx)
    copied = desk.service.call("GET", f"/v1/datasets/{copy['id']}/examples", 200)["items"]
    assert copied == items


def test_a_sample_that_few_have_answered_is_no_sample(desk: Desk) -> None:
    """People have only answered what the version doubted: these messages are no random sample."""
    desk.configure(review_sample=1)
    doubted = {desk.route(number, "a")["decision_id"] for number in (1, 5, 9)}
    unanswered = [desk.route(number, answer=False) for number in (2, 3, 6, 7)]
    desk.route(8, "a")
    with desk.service.ctx.db.write() as tx:
        for id_ in doubted:
            tx.session.get_one(tables.Decision, id_).disposition = "review"
    dataset = desk.create()
    assert dataset["lineage"]["feedback"]["n_sampled"] == 0
    (warning,) = [warning for warning in dataset["warnings"] if "random sample" in warning]
    assert "3 of 3 review, 1 of 5 routed" in warning
    items = desk.service.call("GET", f"/v1/datasets/{dataset['id']}/examples", 200)["items"]
    assert {item["selected_by"] for item in items} == {"doubt", "volunteered"}
    assert len(items) == 4, "a message without feedback is in no data set, whatever the router predicts"
    for decision in unanswered[:3]:
        path = f"/v1/decisions/{decision['decision_id']}/feedback"
        desk.service.call("POST", path, 200, json={"labels": ["a"], "allow_new_labels": True})
    desk.route(10, answer=False)  # it arrived after the last answer, so somebody may still review it
    assert desk.create()["lineage"]["feedback"]["n_sampled"] == 7


def test_the_time_of_the_feedback_selects_decisions(desk: Desk) -> None:
    days = {desk.route(day, "a")["decision_id"]: datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)}
    with desk.service.ctx.db.write() as tx:
        for decision_id, time in days.items():
            tx.session.get_one(tables.Decision, decision_id).feedback_at = time
    window = {"from": "2026-01-02T00:00:00Z", "to": "2026-01-03T01:00:00+01:00"}
    dataset = desk.create(from_feedback=window)
    assert [id_ for id_, *_ in desk.examples(dataset)] == ["2@example.org"]
    feedback = dataset["lineage"]["feedback"]
    assert (feedback["from"], feedback["to"]) == ("2026-01-02T00:00:00.000Z", "2026-01-03T00:00:00.000Z")
    failed = desk.create(from_feedback={"to": "2020-01-01T00:00:00Z"})
    assert failed["state"] == "failed"
    assert "no decision has feedback in this time" in failed["error"]["detail"]


def test_feedback_that_arrives_later_belongs_to_the_next_data_set(desk: Desk) -> None:
    desk.route(1, "a")
    body = {"name": "next", "from_feedback": {"router": desk.name}}
    created = desk.service.call("POST", "/v1/datasets", 201, json=body)
    desk.route(2, "b")
    in_process.work(desk.service.ctx)
    assert [id_ for id_, *_ in desk.examples(desk.get(created["id"]))] == ["1@example.org"]


def test_labels_of_the_feedback_are_renamed_and_closed_under_the_tree(desk: Desk) -> None:
    desk.route(1, "Hilfe")
    dataset = desk.create(rename_labels={"Hilfe": "help"}, label_tree={"help": "service"})
    assert desk.examples(dataset) == [("1@example.org", ["help", "service"], None)]
    assert dataset["lineage"]["rename_labels"] == {"Hilfe": "help"}


def test_without_a_message_the_data_set_fails_and_releases_the_other_one(desk: Desk) -> None:
    desk.route(1, "a", keep=False)
    other = desk.service.dataset([mail(9, "b")])
    dataset = desk.create(and_dataset=other)
    assert dataset["state"] == "failed"
    assert "no message of the 1 decisions with feedback is available" in dataset["error"]["detail"]
    path = f"/v1/datasets/{dataset['id']}/content"
    problem_of(desk.service.send("PUT", path, content=b"x", headers=OCTETS), 409, "dataset_has_content")
    desk.service.call("DELETE", f"/v1/datasets/{other}", 204)


def test_a_missing_or_damaged_file_does_not_stop_the_others(desk: Desk) -> None:
    desk.route(1, "a")
    desk.errors[desk.route(2, "a")["decision_id"]] = MissingFileError("messages/2")
    desk.errors[desk.route(3, "a")["decision_id"]] = FileDamaged("the message of a decision")
    dataset = desk.create()
    assert [id_ for id_, *_ in desk.examples(dataset)] == ["1@example.org"]
    assert dataset["lineage"]["feedback"]["n_without_message"] == 2
    desk.errors[desk.route(4, "a")["decision_id"]] = NotReady("add the key", code="encryption_key_missing")
    failed = desk.create()
    assert (failed["state"], failed["error"]["detail"]) == ("failed", "add the key")


def test_a_decision_with_too_many_labels_does_not_stop_the_others(desk: Desk) -> None:
    desk.route(1, "billing")
    broken = desk.route(2)["decision_id"]
    with desk.service.ctx.db.write() as tx:
        row = tx.session.get_one(tables.Decision, broken)
        row.feedback = [f"label{n}" for n in range(20_001)]
    dataset = desk.create()
    assert [labels for _, labels, _ in desk.examples(dataset)] == [["billing"]]
    (warning,) = [text for text in dataset["warnings"] if "more than 20,000 labels" in text]
    assert broken in warning


def test_uploaded_messages_are_joined_by_their_message_id(desk: Desk) -> None:
    desk.route(1, "a", keep=False)
    desk.route(2, "b", keep=False)
    desk.route(3, "c")
    other = desk.service.dataset([mail(9, "z", split="train"), mail(8, "z", split="test")])
    created = desk.create(format="mbox", and_dataset=other)
    assert created["state"] == "awaiting_content"
    mailbox = b"".join(b"From a\n" + raw(number).replace(b"\r", b"") + b"\n" for number in (2, 7))
    path = f"/v1/datasets/{created['id']}/content"
    desk.service.call("PUT", path, 202, content=mailbox, headers=OCTETS)
    problem_of(desk.service.send("DELETE", f"/v1/datasets/{other}"), 409, "dataset_in_use")
    in_process.work(desk.service.ctx)
    dataset = desk.get(created["id"])
    assert desk.examples(dataset) == [
        ("1", ["z"], "train"),
        ("2", ["z"], "test"),
        ("2@example.org", ["b"], "train"),
        ("3@example.org", ["c"], "train"),
    ]
    feedback = dataset["lineage"]["feedback"]
    assert (feedback["n_new"], feedback["n_without_message"], feedback["n_unlabelled"]) == (2, 1, 1)
    desk.service.call("DELETE", f"/v1/datasets/{other}", 204)


def test_a_failed_upload_accepts_other_content_unless_the_other_data_set_was_deleted(desk: Desk) -> None:
    desk.route(1, "a", keep=False)
    other = desk.service.dataset([mail(9, "z")])
    created = desk.create(format="jsonl", and_dataset=other)
    path = f"/v1/datasets/{created['id']}/content"
    desk.service.call("PUT", path, 202, content=b"{}", headers=OCTETS)
    in_process.work(desk.service.ctx)
    assert desk.get(created["id"])["state"] == "failed"
    desk.service.call("DELETE", f"/v1/datasets/{other}", 204)
    response = desk.service.send("PUT", path, content=b"{}", headers=OCTETS)
    assert other in problem_of(response, 409, "conflict")["detail"]


def test_a_wrong_request_is_rejected_at_its_place(desk: Desk) -> None:
    text = desk.service.dataset()
    numeric = desk.service.dataset([{"features": {"x": 1.0}, "labels": ["a"]}])
    of = {"router": desk.name}
    backwards = {**of, "from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}
    cases: list[tuple[dict[str, Any], int, str, str]] = [
        ({"from_feedback": {"router": "none"}}, 404, "not_found", "/from_feedback/router"),
        ({"from_feedback": {}}, 422, "invalid_request", "/from_feedback/router"),
        ({"from_feedback": backwards}, 422, "invalid_request", "/from_feedback"),
        ({"from_feedback": of, "and_dataset": numeric}, 422, "invalid_parameters", "/and_dataset"),
        ({"from_feedback": of, "and_dataset": "ds_no"}, 404, "not_found", "/and_dataset"),
        ({"from_feedback": of, "format": "csv"}, 422, "invalid_request", ""),
        ({"from_feedback": of, "max_bad_records": 1}, 422, "invalid_request", ""),
        ({"from_feedback": of, "derive": {"datasets": [text]}}, 422, "invalid_request", ""),
        ({"and_dataset": text}, 422, "invalid_request", ""),
    ]
    for body, status, code, pointer in cases:
        response = desk.service.send("POST", "/v1/datasets", json={"name": "x", **body})
        problem_of(response, status, code, pointer)


def test_a_repeated_request_gets_the_same_lineage(desk: Desk) -> None:
    body = {"name": "x", "from_feedback": {"router": desk.name, "from": "2026-01-01T00:00:00Z"}}
    headers = {"Idempotency-Key": "once"}
    first, second = (
        desk.service.call("POST", "/v1/datasets", 201, json=body, headers=headers) for _ in range(2)
    )
    assert first == second
    assert first["lineage"]["feedback"]["from"] == "2026-01-01T00:00:00.000Z"
