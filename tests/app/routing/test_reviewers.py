"""A review queue for several people: reservations, assignments, notes, and who gave the feedback."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from contract import problem_of
from in_process_api import InProcessApi

from app.db import tables
from app.routing import decisions, reviews
from app.routing.schemas import Feedback, Review, ReviewPut

MAIL = {"Content-Type": "message/rfc822"}


@dataclass
class Reviewer:
    """A person with an API key."""

    service: InProcessApi
    id: str
    headers: dict[str, str]

    def call(self, method: str, path: str, status: int, **options: Any) -> Any:
        return self.service.call(method, path, status, headers=self.headers, **options)

    def send(self, method: str, path: str, **options: Any) -> Any:
        return self.service.send(method, path, headers=self.headers, **options)


@pytest.fixture
def decision(service: InProcessApi) -> str:
    """The path of a decision."""
    service.train(service.dataset())
    service.call("PUT", "/v1/routers/desk", 200, json={"model": "m", "fallback": "desk", "review_sample": 1})
    raw = b"Subject: Refund\r\n\r\nMy invoice is wrong.\r\n"
    routed = service.call("POST", "/v1/routers/desk/messages", 200, content=raw, headers=MAIL)
    return f"/v1/decisions/{routed['decision_id']}"


@pytest.fixture
def people(service: InProcessApi, decision: str) -> tuple[Reviewer, Reviewer]:
    """Ann and Bob."""
    headers: dict[str, str] = {}
    found = []
    for name, scopes in (("Root", ["admin"]), ("Ann", ["read", "review"]), ("Bob", ["read", "predict"])):
        body = {"name": name, "scopes": scopes}
        key = service.call("POST", "/v1/api-keys", 201, json=body, headers=headers)
        reviewer = Reviewer(service, key["id"], {"Authorization": f"Bearer {key['secret']}"})
        headers = headers or reviewer.headers
        found.append(reviewer)
    return found[1], found[2]


def test_a_message_that_a_person_has_open_is_reserved_for_ten_minutes(
    decision: str, people: tuple[Reviewer, Reviewer]
) -> None:
    ann, bob = people
    path = f"{decision}/reservation"
    reserved = ann.call("PUT", path, 200)
    assert reserved["reserved_by"] == {"id": ann.id, "name": "Ann"}
    problem = problem_of(bob.send("PUT", path), 409, "message_reserved")
    assert problem["detail"] == "Ann has reserved this message"
    listed = bob.call("GET", "/v1/routers/desk/decisions?review=any&feedback=none", 200)["items"]
    assert [item["review"] for item in listed] == [bob.call("GET", decision, 200)["review"]] == [reserved]
    again = ann.call("PUT", path, 200)
    assert again["reserved_until"] >= reserved["reserved_until"], "the same person keeps it for longer"

    bob.call("DELETE", path, 204)  # it is not Bob's
    problem_of(bob.send("PUT", path), 409, "message_reserved")
    with ann.service.ctx.db.write() as tx:
        row = tx.session.get_one(tables.Review, decision.rpartition("/")[2])
        row.reserved_until = tx.now - timedelta(seconds=1)
    assert "review" not in bob.call("GET", decision, 200), "a reservation ends by itself"
    assert bob.call("PUT", path, 200)["reserved_by"]["name"] == "Bob"
    bob.call("DELETE", path, 204)
    assert ann.call("PUT", path, 200)["reserved_by"]["name"] == "Ann"


def test_a_message_is_assigned_and_noted_until_the_feedback_says_who_gave_it(
    decision: str, people: tuple[Reviewer, Reviewer]
) -> None:
    ann, bob = people
    ann.call("PUT", f"{decision}/reservation", 200)
    noted = bob.call("PUT", f"{decision}/review", 200, json={"assigned_to": "Ann", "note": "a new product?"})
    assert (noted["assigned_to"], noted["note"]) == ("Ann", "a new product?")
    assert noted["note_by"] == {"id": bob.id, "name": "Bob"}
    assert noted["reserved_by"]["name"] == "Ann"
    assigned = ann.call(
        "PUT", f"{decision}/review", 200, json={"assigned_to": "Bob", "note": "a new product?"}
    )
    assert (assigned["assigned_to"], assigned["note_by"]["name"]) == ("Bob", "Bob"), "it is still Bob's note"

    feedback = ann.call("POST", f"{decision}/feedback", 200, json={"labels": ["sales"]})
    assert feedback["feedback_by"] == {"id": ann.id, "name": "Ann"}
    assert "reserved_by" not in feedback["review"]
    assert feedback["review"]["note"] == "a new product?"
    assert ann.call("GET", decision, 200) == feedback
    assert ann.call("PUT", f"{decision}/review", 200, json={}) == {}, "what is absent is removed"
    problem_of(ann.send("PUT", "/v1/decisions/dec_none/review", json={}), 404, "not_found")
    problem_of(
        ann.send("PUT", f"{decision}/review", json={"note": "x" * 2001}), 422, "invalid_request", "/note"
    )


def test_without_a_person_nothing_is_reserved(service: InProcessApi, decision: str) -> None:
    id_ = decision.rpartition("/")[2]
    db = service.ctx.db
    assert reviews.reserve(db, id_, None) == Review()
    reviews.release(db, id_, None)
    with db.read() as session:
        assert session.get(tables.Review, id_) is None, "most messages have no row"
    assert reviews.put(db, id_, ReviewPut(note="?"), None) == Review(note="?")
    assert decisions.give_feedback(db, id_, Feedback(labels=["sales"]), None).feedback_by is None
    service.call("DELETE", decision, 204)
