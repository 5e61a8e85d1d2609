"""Requests whose cost grows faster than their size, and strings that no response can contain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from benchmarks.attack.harness import (
    MESSAGES,
    MODEL,
    PREDICT,
    QUICK,
    Result,
    Service,
    Targets,
    at_most,
    attack,
    expect,
    holds,
    within,
)

JSON = {"Content-Type": "application/json"}
SURROGATE = '"\\ud800"'
ALLOWED_SECONDS = 2.0


def _chain(n: int) -> dict[str, str]:
    return {f"l{i}": f"l{i + 1}" for i in range(n)}


def _cost(service: Service, what: str, path: str, body: dict[str, Any]) -> Iterator[Result]:
    with service.watched() as cost:
        response = service.post(path, json=body)
    yield holds(f"{what}: status", response.status_code < 500, response.status_code)
    yield at_most(f"{what}: CPU time of the API", cost.cpu_seconds, ALLOWED_SECONDS, "s")
    yield within(f"{what}: longest health check", cost.longest_wait, ALLOWED_SECONDS)


@attack("deep trees and large coverings", short=True)
def structures(targets: Targets) -> Iterator[Result]:
    """Send label trees and coverings whose checks were cubic and quadratic."""
    service = targets.shared
    tree = {"name": "deep", "label_tree": _chain(4000)}
    yield from _cost(service, "a tree 4,000 deep", "/v1/datasets", tree)
    names = [f"label {n}" for n in range(40_000)]
    for what, groups in {
        "a covering with one group of 40,000 names": [names],
        "a covering with 40,000 groups": [[name] for name in names],
        "a covering with one name 40,000 times": [["billing"] * 40_000],
    }.items():
        covering = {
            "kind": "groups",
            "groups": [{"labels": group} for group in groups],
        }
        body = {
            "model": "covered",
            "dataset_id": service.dataset,
            "learner": {"algorithm": "adaboost_lc", "rounds": 3, "covering": covering},
        }
        yield from _cost(service, what, "/v1/training-jobs", body)
    for dataset in list(service.stack.all("/v1/datasets")):
        if dataset["name"] == "deep":
            service.request("DELETE", f"/v1/datasets/{dataset['id']}")


@attack("bodies with hundreds of thousands of wrong items", short=True)
def wrong_items(targets: Targets) -> Iterator[Result]:
    """Send bodies in which every item is invalid; the API must not describe all of them."""
    n = 300_000
    bodies: dict[str, tuple[str, dict[str, Any]]] = {
        "examples": ("/v1/datasets", {"name": "x", "examples": [1] * n}),
        "unknown fields": ("/v1/datasets", {"name": "x", **{f"f{i}": 1 for i in range(n)}}),
        "features": (PREDICT, {"instances": [{"features": {f"f{i}": "x" for i in range(n)}}]}),
        "configurations": ("/v1/experiments", {"dataset_id": "x", "configurations": [1] * n}),
        "measures": ("/v1/experiments", {"dataset_id": "x", "configurations": [], "measures": [1] * n}),
        "scopes": ("/v1/api-keys", {"name": "x", "scopes": ["y"] * n}),
        "grids": (
            "/v1/experiments",
            {"dataset_id": "x", "grid": {"learner": [{"algorithm": "x"}] * (n // 10)}},
        ),
    }
    for what, (path, body) in bodies.items():
        with targets.shared.watched() as cost:
            response = targets.shared.post(path, json=body)
        yield expect(f"{what}: status", response.status_code, 413, 422)
        yield at_most(f"{what}: size of the response", len(response.content) / 1e6, 1.0, "MB")
        yield at_most(f"{what}: CPU time of the API", cost.cpu_seconds, 3 * ALLOWED_SECONDS, "s")
        yield at_most(f"{what}: growth of the API", cost.grown_mib, 256.0, "MiB")
        yield within(f"{what}: longest health check", cost.longest_wait, 1.0)


@attack("lone surrogates in every string", short=True)
def surrogates(targets: Targets) -> Iterator[Result]:
    """Send strings that UTF-8 cannot encode; the API must refuse them, or answer without an error."""
    service = targets.shared
    dataset = service.dataset
    before = len(list(service.stack.all("/v1/datasets")))
    bodies = [
        ("POST", "/v1/datasets", f'{{"name": {SURROGATE}}}'),
        ("POST", "/v1/datasets", f'{{"name": "x", "description": {SURROGATE}}}'),
        ("POST", "/v1/datasets", f'{{"name": "x", "label_tree": {{{SURROGATE}: "a"}}}}'),
        ("POST", "/v1/datasets", f'{{"name": "x", "examples": [{{"text": "x", "labels": [{SURROGATE}]}}]}}'),
        ("POST", PREDICT, f'{{"instances": [{{"text": {SURROGATE}}}]}}'),
        ("POST", PREDICT, f'{{"instances": [{{"features": {{{SURROGATE}: 1}}}}]}}'),
        ("POST", MESSAGES, f'{{"email": {{"subject": {SURROGATE}, "text": {SURROGATE}}}}}'),
        ("POST", "/v1/api-keys", f'{{"name": {SURROGATE}, "scopes": ["read"]}}'),
        ("PUT", "/v1/routers/odd", f'{{"model": "{MODEL}", "fallback": {SURROGATE}}}'),
        (
            "POST",
            "/v1/experiments",
            (
                f'{{"dataset_id": "{dataset}", "name": {SURROGATE}, '
                f'"configurations": [{{"learner": {json.dumps(QUICK)}}}]}}'
            ),
        ),
        (
            "POST",
            "/v1/training-jobs",
            f'{{"dataset_id": {SURROGATE}, "model": "x", "learner": {json.dumps(QUICK)}}}',
        ),
    ]
    for method, path, content in bodies:
        response = service.request(method, path, content=content.encode(), headers=JSON)
        yield holds(f"status of {method} {path}", response.status_code < 500, response.status_code)
        if response.status_code == 201:
            service.request("DELETE", f"{path}/{response.json()['id']}")
    yield expect("data sets afterwards", len(list(service.stack.all("/v1/datasets"))), before)
    for path in ("/v1/datasets", "/v1/routers", "/v1/experiments", "/v1/training-jobs", "/v1/models"):
        yield expect(f"status of the list {path}", service.get(path).status_code, 200)


@attack("line breaks in destinations", short=True)
def destinations(targets: Targets) -> Iterator[Result]:
    """Configure destinations that would add header fields to a mail."""
    hostile = "a@example.org\r\nBcc: b@example.org"
    for field in ({"fallback": hostile}, {"fallback": "a@b", "destinations": {"billing": hostile}}):
        response = targets.shared.request("PUT", "/v1/routers/broken", json={"model": MODEL, **field})
        yield expect(f"status of {next(reversed(field))}", response.status_code, 422)
