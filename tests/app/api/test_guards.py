"""The guard in front of every route."""

from __future__ import annotations

from contract import DOCUMENT
from fastapi import Request

from app.api.guards import Actor, Caller, actor_of, has_scope


def request(caller: Caller | None) -> Request:
    return Request({"type": "http", "state": {} if caller is None else {"caller": caller}})


def test_a_request_has_an_actor_with_a_name() -> None:
    actor = actor_of(request(Caller("key_1", "mail gateway", ("predict",))))
    assert isinstance(actor, Actor)
    assert (actor.id, actor.name) == ("key_1", "mail gateway")


def test_an_anonymous_request_has_no_actor_and_may_do_everything() -> None:
    assert actor_of(request(None)) is None
    assert has_scope(request(None), "admin")


def test_a_caller_may_do_only_what_its_scopes_permit() -> None:
    assert not has_scope(request(Caller("key_1", "mail gateway", ("predict",))), "train")


def test_the_scope_review_permits_what_a_review_needs_and_nothing_else() -> None:
    permitted = {
        operation["operationId"]
        for methods in DOCUMENT["paths"].values()
        for operation in methods.values()
        if "`review`" in operation["description"].rpartition("Scope:")[2]
    }
    assert permitted == {
        "routers_list",
        "routers_get",
        "routers_list_decisions",
        "models_get_version",
        "decisions_get",
        "decisions_get_message",
        "decisions_give_feedback",
        "decisions_reserve",
        "decisions_release",
        "decisions_put_review",
    }
