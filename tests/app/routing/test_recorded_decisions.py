"""Recorded decisions: their size is bounded, and the same message gets the same decision."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import in_process
import pytest
from message_routing import message_routing
from sqlalchemy import select

from app.api.paging import Page
from app.context import AppContext
from app.db import tables
from app.ids import new_id
from app.routing import decisions, message_router, service, shadows
from app.routing.decision_search import DecisionFilter
from app.routing.schemas import Decision, RouterPut, ShadowDecision
from app.training import service as training
from app.training.schemas import TrainingJobCreate
from models.mail import MailDocument, read_message

N_LABELS = 40
TOP = 5


@pytest.fixture
def ctx_with_router(ctx: AppContext, monkeypatch: pytest.MonkeyPatch) -> AppContext:
    """A service with a model of many labels, and a router that stores few of them."""
    examples = [
        {
            "email": {"subject": f"word{n % N_LABELS}", "text": "same text"},
            "labels": [f"label{n % N_LABELS:02d}"],
        }
        for n in range(4 * N_LABELS)
    ]
    dataset_id = in_process.dataset(ctx, examples)
    body = {"model": "m", "dataset_id": dataset_id, "learner": {"algorithm": "naive_bayes"}}
    job = training.create(ctx, TrainingJobCreate.model_validate(body), in_process.WITHOUT_KEY)
    in_process.work(ctx)
    assert training.get(ctx.db, job.id).state == "succeeded"
    service.put(ctx.db, "desk", RouterPut(model="m", fallback="front@example.org", shadow=1))
    monkeypatch.setattr(message_router, "DECISION_RANKING", TOP)
    return ctx


def with_settings(ctx: AppContext, **settings: Any) -> AppContext:
    return replace(ctx, settings=ctx.settings.model_copy(update=settings))


def message(words: str) -> MailDocument:
    return read_message(f"Subject: {words}\r\n\r\n{words}".encode())


def test_a_decision_has_the_top_of_the_ranking_and_is_the_same_for_the_same_message(
    ctx_with_router: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = ctx_with_router
    mail = message("word7")
    with message_routing(ctx) as routing:
        decision = routing.decide("desk", mail)
        assert [item.rank for item in decision.ranking] == list(range(1, TOP + 1))
        scores = [item.score for item in decision.ranking]
        assert scores == sorted(scores, reverse=True)
        assert routing.decide("desk", mail) == decision
    # The repetition is the same after a release that stores more.
    monkeypatch.setattr(message_router, "DECISION_RANKING", 30)
    with message_routing(ctx) as routing:
        assert routing.decide("desk", mail) == decision
    assert decisions.get(ctx.db, decision.decision_id).ranking == decision.ranking
    with ctx.db.read() as session:
        row = session.get_one(tables.Decision, decision.decision_id)
        assert len(row.response["ranking"]) == TOP


MESSAGES = {
    "plain": message("word7"),
    "with Message-ID": read_message(b"Message-ID: <1@example.org>\r\nSubject: word3\r\n\r\nword3"),
    "unreadable": read_message(b"\r\n"),
    "defective": read_message(b'Content-Transfer-Encoding: base64\r\nSubject: caf\xe9 "\r\n\r\n!!!'),
}


@pytest.mark.parametrize("keep_text", [True, False])
def test_the_bytes_of_a_decision_are_those_of_the_documented_schema(
    ctx_with_router: AppContext, keep_text: bool
) -> None:
    ctx = with_settings(ctx_with_router, keep_decision_text=keep_text)
    explained = set()
    for explain in (True, False):
        for kind, mail in MESSAGES.items():
            with message_routing(ctx) as routing:
                body = routing.route("desk", mail, explain=explain)
            decision = Decision.model_validate_json(body, strict=True)
            assert decision.model_dump_json(exclude_none=True).encode() == body
            assert (decision.message.subject is not None) == keep_text
            if kind == "unreadable":
                assert decision.disposition == "fallback"
            if decision.explanation is not None:
                explained.add((kind, explain))
            stored = json.loads(body)
            if kind == "plain" and explain:
                (term,) = stored["explanation"][0]["terms"]
                assert (term["words"], term["fields"]) == (["word7"], ["subject", "new_text"])
            texts = stored.pop("texts", None)
            assert (texts is not None) == (explain and "explanation" in stored)
            if not keep_text:
                stored.pop("explanation", None)  # it has words of the message
            with ctx.db.write() as tx:
                row = tx.session.get_one(tables.Decision, decision.decision_id)
                assert row.response == stored
                tx.session.delete(row)
    assert {("plain", True), ("with Message-ID", True)} <= explained
    assert all(explain for _, explain in explained)


@pytest.mark.parametrize("keep_text", [True, False])
def test_an_explained_decision_has_the_texts_in_which_its_words_occur(
    ctx_with_router: AppContext, keep_text: bool
) -> None:
    ctx = with_settings(ctx_with_router, keep_decision_text=keep_text)
    mail = read_message(b"Subject: word7 please\r\n\r\nPlease help: word7 is wrong.")
    with message_routing(ctx) as routing:
        first = Decision.model_validate_json(routing.route("desk", mail, explain=True))
        again = Decision.model_validate_json(routing.route("desk", mail, explain=True))
        without = Decision.model_validate_json(routing.route("desk", mail))
    assert first.explanation is not None
    assert first.texts is not None
    places = [place for term in first.explanation[0].terms for place in term.occurrences or ()]
    words = {first.texts[place.field][place.start : place.end] for place in places}
    assert words == {"word7"}
    assert set(first.texts) == {"subject", "new_text"}
    # A repetition returns the first decision. Its explanation is stored only with texts of messages.
    assert again == (first if keep_text else first.model_copy(update={"explanation": None, "texts": None}))
    assert without.texts is None
    assert decisions.get(ctx.db, first.decision_id).texts is None


def test_a_decision_has_the_share_of_words_that_the_version_does_not_know(
    ctx_with_router: AppContext,
) -> None:
    with message_routing(ctx_with_router) as routing:
        half = routing.decide("desk", read_message(b"Subject: word7\r\n\r\nunseen"))
        nothing = routing.decide("desk", read_message(b"\r\n"))
    assert half.message.unknown_words == 0.5
    with ctx_with_router.db.read() as session:
        row = session.get_one(tables.Decision, half.decision_id)
        assert row.unknown_words == 0.5
        assert session.get_one(tables.Decision, nothing.decision_id).unknown_words is None
    assert nothing.message.unknown_words is None


def test_a_decision_includes_departments_beyond_the_top_of_the_ranking(
    ctx_with_router: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_router, "DECISION_RANKING", 1)
    everything = message(" ".join(f"word{n}" for n in range(N_LABELS)))
    with message_routing(ctx_with_router) as routing:
        decision = routing.decide("desk", everything)
    assert {item.label for item in decision.ranking} >= {item.label for item in decision.departments}
    assert [item.rank for item in decision.ranking] == sorted(item.rank for item in decision.ranking)


def shadows_of(ctx: AppContext) -> list[Any]:
    with ctx.db.read() as session:
        return list(session.scalars(select(tables.Decision.shadow).order_by(tables.Decision.id)))


def test_the_shadow_version_predicts_for_each_new_message(ctx_with_router: AppContext) -> None:
    ctx = ctx_with_router
    with message_routing(ctx) as routing:
        decided = [routing.decide("desk", message(f"word{n}")) for n in range(12)]
        routing.decide("desk", message("word0"))  # not new
    for decision, stored in zip(decided, shadows_of(ctx), strict=True):
        shadow = ShadowDecision.model_validate_json(json.dumps(stored), strict=True)
        assert shadow.version == 1
        assert [item.rank for item in shadow.ranking] == list(range(1, shadows.SHADOW_RANKING + 1))
        assert [item.label for item in shadow.ranking[:TOP]] == [item.label for item in decision.ranking]
        assert set(shadow.labels) >= {department.label for department in decision.departments}
        assert shadow.labels == sorted(shadow.labels)
        same = set(shadow.labels) == {department.label for department in decision.departments}
        assert shadow.agrees == same
        with ctx.db.read() as session:
            row = session.get_one(tables.Decision, decision.decision_id)
        assert (row.shadow_version, row.shadow_agrees) == (1, same)


def test_a_message_is_routed_without_a_shadow_if_too_many_wait_for_it(
    ctx_with_router: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadows, "MAX_WAITING", 0)
    with message_routing(ctx_with_router) as routing:
        routing.decide("desk", message("word1"))
    assert shadows_of(ctx_with_router) == [None]


def test_a_message_is_routed_without_a_shadow_if_the_shadow_version_does_not_exist(
    ctx_with_router: AppContext,
) -> None:
    ctx = ctx_with_router
    with ctx.db.write() as tx:
        router = tx.session.get_one(tables.Router, "desk")
        router.config = {**router.config, "shadow": 9}
    with message_routing(ctx) as routing:
        routing.decide("desk", message("word1"))
        routing.decide("desk", message("word2"))
    assert shadows_of(ctx) == [None, None]


def stored_decisions(ctx: AppContext, n: int, **response: Any) -> list[str]:
    """Insert decisions as an earlier release stored them, with the whole ranking. Return their ids."""
    ids = [new_id("dec") for _ in range(n)]
    with ctx.db.write() as tx:
        router = tx.session.get_one(tables.Router, "desk")
        for id_ in ids:
            tx.session.add(
                tables.Decision(
                    id=id_,
                    router_id=router.id,
                    router="desk",
                    message_key=id_,
                    response={
                        "decision_id": id_,
                        "router": "desk",
                        "model": "m",
                        "version": 1,
                        "disposition": "fallback",
                        "departments": [],
                        "destinations": ["front@example.org"],
                        "message": {"automated": False, "defects": [], "truncated": False},
                        **response,
                    },
                    created_at=tx.now,
                )
            )
    return ids


def pages(ctx: AppContext, limit: int) -> Iterator[list[str]]:
    """Yield the ids of each page of the router's decisions."""
    after: str | None = None
    while True:
        page = decisions.page(ctx, "desk", DecisionFilter(), Page(limit, after))
        yield [item.decision_id for item in page.items]
        if page.next_cursor is None:
            return
        after = page.items[-1].decision_id


def test_a_page_of_large_decisions_is_bounded_in_bytes(
    ctx_with_router: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = ctx_with_router
    ranking = [{"label": f"l{n}", "score": -1.5, "rank": n + 1} for n in range(200)]
    ids = stored_decisions(ctx, 12, ranking=ranking)
    one = len(decisions.get(ctx.db, ids[0]).model_dump_json(exclude_none=True))
    monkeypatch.setattr(decisions, "MAX_PAGE_BYTES", 4 * one)
    found = list(pages(ctx, 500))
    assert [id_ for page in found for id_ in page] == ids[::-1]
    assert {len(page) for page in found} == {4}
    monkeypatch.setattr(decisions, "MAX_PAGE_BYTES", 1)
    assert [len(page) for page in pages(ctx, 500)] == [1] * 12, "a page is never empty"


@pytest.mark.parametrize("limit", [1, 5, 11, 12, 13])
def test_pages_of_small_decisions_have_the_requested_number_of_items(
    ctx_with_router: AppContext, limit: int
) -> None:
    ids = stored_decisions(ctx_with_router, 12, ranking=[])
    found = list(pages(ctx_with_router, limit))
    assert [id_ for page in found for id_ in page] == ids[::-1]
    assert all(len(page) == limit for page in found[:-1])
