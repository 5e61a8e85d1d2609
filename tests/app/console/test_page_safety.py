"""What keeps the pages of the console safe: scopes, the content security policy, and escaped names."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import in_process
import pytest
from console_visitors import Visitor, visitor
from in_process_api import InProcessApi
from stack import departments

from app.console.route import PageRoute

MARKUP = '</script><img src=x onerror=alert(1)>" style="color:red" {{7*7}} \'<b>'
PUBLIC = {
    *("/console/sign-in", "/console/sign-in/provider", "/console/sign-in/callback", "/console/sign-out"),
    "/console/{path:path}",
}
"""Pages for visitors who have not signed in."""


@pytest.fixture(scope="module")
def trainer(api: InProcessApi) -> Visitor:
    return visitor(api, "read", "predict", "train")


@pytest.fixture(scope="module")
def paths(api: InProcessApi) -> list[str]:
    """Pages about resources of every kind, with markup in each name."""
    examples = [
        {
            "text": f"{MARKUP} {item['text']}",
            "labels": [MARKUP if label == "billing" else label for label in item["labels"]],
        }
        for item in departments(60)
    ]
    body = {"name": MARKUP, "description": MARKUP, "examples": examples}
    dataset = api.call("POST", "/v1/datasets", 201, json=body)["id"]
    in_process.work(api.ctx)
    split = {"kind": "random", "test_fraction": 0.25}
    learner = {"algorithm": "mp_boost", "rounds": 12}
    job = api.train(dataset, "m", learner=learner, split=split, decision={"kind": "auto"})
    experiment = {
        "dataset_id": dataset,
        "name": MARKUP,
        "configurations": [{"name": MARKUP, "learner": {"algorithm": "naive_bayes"}}],
        "split": {"kind": "folds", "folds": 2},
    }
    planned = api.call("POST", "/v1/experiments", 202, json=experiment)["id"]
    while in_process.work(api.ctx):
        pass
    router = {
        "model": "m", "fallback": MARKUP, "review_below": 1.0, "explain": True, "keep_messages": "all",
        "destinations": {MARKUP: MARKUP}, "at_most": 1,
    }  # fmt: skip
    api.call("PUT", "/v1/routers/desk", 200, json=router)
    message = f"Subject: {MARKUP}\r\n\r\nMy invoice and refund are wrong, {MARKUP}".encode()
    headers = {"Content-Type": "message/rfc822"}
    decision = api.call("POST", "/v1/routers/desk/messages", 200, content=message, headers=headers)
    decided = f"routers/desk/decisions/{decision['decision_id']}"
    return [
        "", "datasets", f"datasets/{dataset}", f"datasets/{dataset}/examples", "training", "training/new",
        f"training/{job['id']}", "experiments", "experiments/new", f"experiments/{planned}", "models",
        "models/m", "models/m/versions/1?texts=true", "routers", "routers/new", "routers/desk",
        "routers/desk/review", decided, "routers/desk/decisions", "routers/desk/report",
        "routers/desk/settings", "health", "batch-predictions", "batch-predictions/new", "help",
    ]  # fmt: skip


class Elements(HTMLParser):
    """Collects the names of elements, and of attributes that run scripts or set styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.inline: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See ``HTMLParser``."""
        self.names.add(tag)
        self.inline += [f"{tag} {name}" for name, _ in attrs if name.startswith("on") or name == "style"]
        self.inline += [tag] if tag == "style" or (tag == "script" and "src" not in dict(attrs)) else []


def test_names_of_users_never_become_markup_or_style(trainer: Visitor, paths: list[str]) -> None:
    shown = 0
    for path in paths:
        html = trainer.see(f"/console/{path}".rstrip("/"))
        elements = Elements(html)
        assert "b" not in elements.names, path
        assert elements.inline == [], f"{path}: the content security policy permits none of these"
        assert "{{7*7}}" in html or "onerror" not in html, path
        shown += "&lt;img src=x onerror" in html
    assert shown >= 12, "the pages show the names"


def test_every_page_requires_a_scope(api: InProcessApi) -> None:
    pages = [route for route in routes(api) if route.path not in PUBLIC]
    assert len(pages) > 25
    for route in pages:
        assert route.methods == {"GET"}, f"{route.path}: only requests of the API change something"
        assert route.dependencies, f"{route.path} requires no scope"


ACTIONS = {
    "data-api": "{}",
    "data-decision": "POST {}",
    "data-router": "POST {}/messages",
    "data-upload": "POST /v1/datasets",
}
"""Attributes of forms and buttons, and the requests that they lead to."""


class Targets(HTMLParser):
    """Collects the pages and the requests to which a page leads."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.pages: set[str] = set()
        self.requests: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See ``HTMLParser``."""
        values = dict(attrs)
        href = values.get("href") or ""
        if tag == "a" and href.startswith(("/console", "/v1")):
            self.pages.add(href.partition("#")[0])
        for name, request in ACTIONS.items():
            if name in values:
                self.requests.add(request.format(values[name]))


def scopes_of(document: dict[str, Any], request: str) -> set[str]:
    """Return the scopes of which one permits a request, as the OpenAPI document states them."""
    method, _, path = request.partition(" ")
    found = [
        operations[method.lower()]["description"]
        for template, operations in document["paths"].items()
        if method.lower() in operations
        and re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", template), path.partition("?")[0])
    ]
    assert found, request
    return set(re.findall(r"`(\w+)`", found[0].rpartition("Scope: ")[2]))


@pytest.mark.parametrize("scopes", [("read",), ("read", "predict"), ("read", "train")])
def test_pages_lead_only_to_what_their_visitor_may_do(
    api: InProcessApi, paths: list[str], scopes: tuple[str, ...]
) -> None:
    person = visitor(api, *scopes)
    document = api.app.openapi()
    requests: dict[str, str] = {}
    linked: dict[str, str] = {}
    for path in paths:
        response = person.get(f"/console/{path}".rstrip("/"))
        if response.status_code == 403:
            continue
        targets = Targets(response.text)
        requests |= dict.fromkeys(targets.requests, path)
        linked |= dict.fromkeys(targets.pages, path)
    assert len(linked) > 30
    for target, path in linked.items():
        if "/events" not in target:
            assert person.get(target).status_code != 403, f"{path} links to {target}"
    for request, path in requests.items():
        permitted = {"admin"} | scopes_of(document, request)
        assert permitted & set(scopes), f"{path} offers {request}"


def routes(api: InProcessApi) -> list[PageRoute]:
    return [route for route in api.app.routes if isinstance(route, PageRoute)]


@pytest.mark.parametrize("scope", ["read", "predict", "train"])
def test_a_session_may_only_do_what_its_key_may(api: InProcessApi, scope: str) -> None:
    person = visitor(api, scope)
    permitted = {
        "/console/datasets": {"read"},
        "/console/datasets/new": {"train"},
        "/console/training/new": {"train"},
        "/console/experiments/new": {"train"},
        "/console/routers/new": {"train"},
        "/console/keys": set(),
    }
    for path, scopes in permitted.items():
        assert person.get(path).status_code == (200 if scope in scopes else 403), path
