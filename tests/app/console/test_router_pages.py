"""The pages of routing: try a message, the review queue, decisions, the report, and settings."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from console_visitors import Visitor, visitor
from in_process_api import InProcessApi
from stack import departments

ROUTER = {
    "model": "m",
    "fallback": "front@example.org",
    "review_below": 1.0,
    "review_sample": 1.0,
    "explain": True,
    "keep_messages": "review",
    "destinations": {"billing": "billing@example.org"},
    "thresholds": {"sales": 0.5},
}
MESSAGE = (
    b"From: ann@example.org\r\nSubject: <b>Refund</b>\r\n\r\n"
    b"My invoice and refund are wrong, the card was charged.\r\n"
)


@pytest.fixture(scope="module")
def decision(api: InProcessApi) -> dict[str, Any]:
    """A decision that waits in the review queue of the router ``desk``."""
    examples = [
        {
            "email": {"subject": f"Message {i}", "text": example["text"]},
            "labels": example["labels"],
            "split": example["split"],
        }
        for i, example in enumerate(departments(80))
    ]
    api.train(api.dataset(examples), decision={"kind": "auto"})
    api.call("PUT", "/v1/routers/desk", 200, json=ROUTER)
    headers = {"Content-Type": "message/rfc822"}
    routed: dict[str, Any] = api.call(
        "POST", "/v1/routers/desk/messages", 200, content=MESSAGE, headers=headers
    )
    assert routed["disposition"] == "review"
    return routed


@pytest.fixture(scope="module")
def reader(api: InProcessApi, decision: dict[str, Any]) -> Visitor:
    return visitor(api, "read")


@pytest.fixture(scope="module")
def reviewer(api: InProcessApi, decision: dict[str, Any]) -> Visitor:
    return visitor(api, "read", "predict")


@pytest.fixture(scope="module")
def trainer(api: InProcessApi, decision: dict[str, Any]) -> Visitor:
    return visitor(api, "read", "predict", "train")


@pytest.fixture(scope="module")
def corrector(api: InProcessApi, decision: dict[str, Any]) -> Visitor:
    return visitor(api, "review")


def test_routers_are_listed_with_the_messages_that_wait(reader: Visitor, trainer: Visitor) -> None:
    text = reader.see("/console/routers")
    assert '<a href="/console/routers/desk/review">1<span' in text
    assert "Create a router" not in text
    assert "Create a router" in trainer.see("/console/routers")
    visitor(reader.api, "predict").see("/console/routers", status=403)


def test_messages_are_routed_only_with_the_scope_predict(reader: Visitor, reviewer: Visitor) -> None:
    assert "you need the scope predict" in reader.see("/console/routers/desk")
    text = reviewer.see("/console/routers/desk")
    assert 'data-router="/v1/routers/desk"' in text
    assert "1 message awaiting review" in text
    reader.see("/console/routers/none", status=404)


def test_the_review_queue_shows_the_message_and_its_likely_labels(
    reader: Visitor, reviewer: Visitor, trainer: Visitor, decision: dict[str, Any]
) -> None:
    path = "/console/routers/desk/review"
    text = trainer.see(path)
    assert "<b>Refund" not in text, "text of a message is escaped"
    assert '<p class="text" data-field="new_text">My invoice and refund are wrong' in text
    assert "From ann@example.org" in text
    ranked = [item["label"] for item in decision["ranking"]]
    assert re.findall(r'name="labels" value="(\w+)"', text)[: len(ranked)] == ranked
    assert f'data-decision="/v1/decisions/{decision["decision_id"]}/feedback"' in text
    explained = re.search(r'data-explanation="([^"]*)"', text)
    assert explained is not None
    assert json.loads(unescape(explained[1])) == decision["explanation"]
    # Only people who may read messages see the text, and only those who may give feedback see the form.
    assert "data-field" not in reviewer.see(path)
    assert 'id="correction"' in reviewer.see(path)
    assert "This message belongs to the random sample" in reviewer.see(path)
    assert 'id="correction"' not in reader.see(path)


def test_the_queue_has_messages_without_a_department_and_is_filtered(
    reviewer: Visitor, decision: dict[str, Any]
) -> None:
    api = reviewer.api
    router = {**ROUTER, "review_below": None, "review_sample": 0}
    api.call("PUT", "/v1/routers/lost", 200, json=router)
    headers = {"Content-Type": "message/rfc822"}
    raw = b"Subject: xyzzy\r\n\r\nplugh\r\n"
    lost = api.call("POST", "/v1/routers/lost/messages", 200, content=raw, headers=headers)
    assert lost["disposition"] == "fallback"
    path = "/console/routers/lost/review"
    form = f'data-decision="/v1/decisions/{lost["decision_id"]}/feedback"'
    assert form in reviewer.see(path)
    shown = reviewer.see(f"{path}?reason=fallback")
    assert form in shown
    assert 'href="/console/routers/lost/review?reason=fallback" aria-current="true"' in shown
    assert f"review?reason=fallback&amp;saved={lost['decision_id']}" in shown, (
        "the next one is of the same kind"
    )
    assert "No department was found, so the message went to the fallback." in shown
    assert "No message of this kind awaits a review" in reviewer.see(f"{path}?reason=sample")


def test_a_message_that_a_reviewer_has_open_or_that_is_assigned_is_not_the_next_one_of_others(
    reviewer: Visitor, trainer: Visitor
) -> None:
    api = reviewer.api
    api.call("PUT", "/v1/routers/team", 200, json=ROUTER)
    headers = {"Content-Type": "message/rfc822"}
    first, second = (
        api.call(
            "POST",
            "/v1/routers/team/messages",
            200,
            content=f"Message-ID: <{n}@example.org>\r\nSubject: Mail {n}\r\n\r\nhello\r\n".encode(),
            headers=headers,
        )["decision_id"]
        for n in (1, 2)
    )

    def shown(visitor: Visitor) -> list[str]:
        text = visitor.see("/console/routers/team/review")
        return re.findall(r'data-decision="/v1/decisions/(\w+)/feedback"', text)

    def put(visitor: Visitor, path: str, **options: Any) -> None:
        bearer = {"Authorization": f"Bearer {visitor.secret}"}
        api.call("PUT", f"/v1/decisions/{path}", 200, headers=bearer, **options)

    assert shown(reviewer) == shown(trainer) == [first]
    put(reviewer, f"{first}/reservation")
    assert (shown(reviewer), shown(trainer)) == ([first], [second])
    assert "visitor has it open" in trainer.see("/console/routers/team/review")
    put(reviewer, f"{second}/review", json={"assigned_to": "Ann", "note": "a <new> product"})
    assert (shown(reviewer), shown(trainer)) == ([first], [])
    text = trainer.see("/console/routers/team/review")
    assert "Other people have the messages that wait." in text
    assert '<span class="tag">for Ann</span>' in text
    assert "Note by visitor: a &lt;new&gt; product" in trainer.see(
        f"/console/routers/team/decisions/{second}"
    )


def test_a_decision_shows_why_and_its_feedback(trainer: Visitor, decision: dict[str, Any]) -> None:
    path = f"/console/routers/desk/decisions/{decision['decision_id']}"
    text = trainer.see(path)
    assert "Deciding words" in text
    assert "The probability that exactly these departments are right is below 1." in text
    trainer.see("/console/routers/desk/decisions/dec_none", status=404)
    feedback = {"labels": ["support"]}
    api = trainer.api
    api.call("PUT", "/v1/routers/other", 200, json=ROUTER)
    trainer.see(f"/console/routers/other/decisions/{decision['decision_id']}", status=404)
    headers = {"Content-Type": "message/rfc822"}
    second = api.call("POST", "/v1/routers/other/messages", 200, content=MESSAGE, headers=headers)[
        "decision_id"
    ]
    api.call("POST", f"/v1/decisions/{second}/feedback", 200, json=feedback)
    assert re.search(r'value="support" checked', trainer.see(f"/console/routers/other/decisions/{second}"))
    empty = trainer.see(f"/console/routers/other/review?saved={second}")
    assert "No message awaits a review" in empty
    assert "support" in empty[empty.index('id="saved"') :]


def test_decisions_are_found_by_disposition_feedback_and_department(
    reader: Visitor, decision: dict[str, Any]
) -> None:
    path = "/console/routers/desk/decisions"
    link = f"{path}/{decision['decision_id']}"
    assert link in reader.see(path)
    assert link in reader.see(f"{path}?disposition=review&feedback=none&label=")
    assert link not in reader.see(f"{path}?disposition=fallback")
    assert link not in reader.see(f"{path}?label=nothing")


def test_the_decisions_that_are_shown_can_be_exported(reader: Visitor, decision: dict[str, Any]) -> None:
    path = "/console/routers/desk/decisions"
    for query, n in ((f"disposition=review&sender=ann&label={decision['ranking'][-1]['label']}", 0), ("", 1)):
        links = re.findall(r'<a download href="([^"]+)"', reader.see(f"{path}?{query}"))
        csv, ndjson = (reader.get(unescape(link)).text.splitlines() for link in links)
        assert (len(csv), len(ndjson)) == (n + 1, n)


@pytest.mark.parametrize("by", ["department", "week", "version"])
def test_the_report_is_a_part_of_the_page(reader: Visitor, by: str) -> None:
    text = reader.see(f"/console/routers/desk/report?by={by}")
    assert text.count("<html") == text.count("<h1>") == 1
    assert "<h2>Volume</h2>" in text
    assert "<svg" in text


def test_settings_are_a_form_that_keeps_what_it_has_no_field_for(reader: Visitor, trainer: Visitor) -> None:
    text = trainer.see("/console/routers/desk/settings")
    etag = trainer.api.send("GET", "/v1/routers/desk").headers["ETag"]
    assert f'data-etag="{etag.replace(chr(34), "&#34;")}"' in text
    assert re.search(r'data-destination="billing" value="billing@example.org"', text)
    rest = re.search(r'id="f-rest"[^>]*>([^<]*)</textarea>', text)
    assert rest is not None
    assert json.loads(unescape(rest[1])) == {"thresholds": {"sales": 0.5}}
    assert "Delete this router" in text
    shown = reader.see("/console/routers/desk/settings")
    assert '<fieldset class="bare" disabled>' in shown
    assert "Delete this router" not in shown
    assert '<option value="live" selected>' in trainer.see("/console/routers/new")
    reader.see("/console/routers/new", status=403)


def test_a_reviewer_without_other_scopes_sees_only_what_a_review_needs(
    corrector: Visitor, decision: dict[str, Any]
) -> None:
    assert corrector.get("/console").headers["Location"] == "/console/routers"
    text = corrector.see("/console/routers")
    assert "/console/models" not in text
    assert "/console/datasets" not in text
    text = corrector.see("/console/routers/desk/review")
    for path in ("", "/report", "/settings"):
        assert f'href="/console/routers/desk{path}"' not in text
        corrector.see(f"/console/routers/desk{path}", status=403)
    text = corrector.see(f"/console/routers/desk/decisions/{decision['decision_id']}")
    assert "My invoice and refund are wrong" in text, "the kept message"
    assert 'data-decision="/v1/decisions/' in text, "the form of a correction"
    corrector.see("/console/routers/desk/decisions?text=invoice")
