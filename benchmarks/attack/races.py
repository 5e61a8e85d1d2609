"""Requests of two clients in the same moment, on PostgreSQL."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator

from stack import BYTES

from benchmarks.attack.harness import (
    FALLBACK,
    MODEL,
    QUICK,
    Result,
    Service,
    Targets,
    at_the_same_time,
    attack,
    expect,
    holds,
)

ROUNDS = 25
"""Number of times that each pair of requests runs."""
MAX_HEAD_START_SECONDS = 0.01
"""Longest time between the two requests, so that each one is sometimes first."""
MESSAGE = {"email": {"subject": "Invoice", "text": "my invoice is wrong"}}


def _sender(service: Service, method: str, path: str, body: object = None) -> Callable[[], int]:
    """Return a function that sends a request on a connection of its own, and returns the status."""
    client = service.client()
    client.get("/health/live")

    def send() -> int:
        time.sleep(random.uniform(0.0, MAX_HEAD_START_SECONDS))  # noqa: S311 - no secret
        try:
            return client.request(method, path, json=body).status_code
        finally:
            client.close()

    return send


def _statuses(what: str, seen: Counter[str], allowed: set[str]) -> Result:
    return holds(f"statuses of {what}", set(seen) <= allowed, dict(sorted(seen.items())))


def _import(service: Service, model: str, artifact: bytes) -> None:
    service.stack.call("POST", f"/v1/models/{model}/versions", 201, content=artifact, headers=BYTES)


@attack("a router against the deletion of its model or alias")
def routers(targets: Targets) -> Iterator[Result]:
    """A router that exists must decide about its mail, or send it to the fallback."""
    with targets.with_postgres() as (service, _):
        service.prepare()
        artifact = service.get(f"/v1/models/{MODEL}/versions/1/artifact").content
        for what in ("model", "alias"):
            seen: Counter[str] = Counter()
            mail: Counter[str] = Counter()
            for n in range(ROUNDS):
                model, router = f"{what}{n}", f"/v1/routers/{what}{n}"
                _import(service, model, artifact)
                gone = f"/v1/models/{model}"
                if what == "alias":
                    service.stack.call("PUT", f"/v1/models/{model}/aliases/mail", 200, json={"version": 1})
                    gone += "/aliases/mail"
                body = {
                    "model": model,
                    "fallback": FALLBACK,
                    "version": "mail" if what == "alias" else "live",
                }
                both = at_the_same_time(
                    _sender(service, "PUT", router, body), _sender(service, "DELETE", gone)
                )
                seen[f"{both[0]} and {both[1]}"] += 1
                if service.get(router).status_code == 200:
                    mail[str(service.post(f"{router}/message-parts", json=MESSAGE).status_code)] += 1
            allowed = {f"{put} and {end}" for put in (200, 409, 422) for end in (204, 409)}
            yield _statuses(f"PUT of a router and DELETE of its {what}", seen, allowed)
            yield _statuses(f"mail after DELETE of the {what}", mail, {"200"})


@attack("two first requests for one name")
def first_requests(targets: Targets) -> Iterator[Result]:
    """Create the same router, model and alias twice in the same moment."""
    with targets.with_postgres() as (service, _):
        service.prepare()
        seen: Counter[str] = Counter()
        body = {"model": MODEL, "fallback": FALLBACK}
        for n in range(ROUNDS):
            put = [_sender(service, "PUT", f"/v1/routers/r{n}", body) for _ in range(3)]
            seen.update(map(str, at_the_same_time(*put)))
        yield _statuses("three first PUTs of a router", seen, {"200", "409"})
        seen = Counter()
        for n in range(ROUNDS):
            send = [
                _sender(service, "PUT", f"/v1/models/{MODEL}/aliases/a{n}", {"version": 1}) for _ in range(3)
            ]
            seen.update(map(str, at_the_same_time(*send)))
        yield _statuses("three first PUTs of an alias", seen, {"200", "409"})


@attack("a data set that is deleted while a job is created")
def datasets(targets: Targets) -> Iterator[Result]:
    """Delete a data set in the moment in which a training or an experiment refers to it."""
    with targets.with_postgres() as (service, _):
        for what, path in (("training", "/v1/training-jobs"), ("experiment", "/v1/experiments")):
            seen: Counter[str] = Counter()
            created = []
            for _ in range(ROUNDS):
                examples = [{"text": "a b", "labels": ["x"]}, {"text": "c d", "labels": ["y"]}] * 2
                dataset = service.stack.dataset(examples)["id"]
                body = {"dataset_id": dataset, "model": "raced", "learner": QUICK}
                if what == "experiment":
                    body = {"dataset_id": dataset, "configurations": [{"learner": QUICK}]}
                both = at_the_same_time(
                    _sender(service, "POST", path, body),
                    _sender(service, "DELETE", f"/v1/datasets/{dataset}"),
                )
                seen[f"{both[0]} and {both[1]}"] += 1
                created.append(both[0] == 202)
            allowed = {f"{made} and {end}" for made in (202, 404, 409, 422) for end in (204, 409)}
            yield _statuses(f"a new {what} and DELETE of its data set", seen, allowed)


@attack("a new alias against the deletion of its model")
def deadlock(targets: Targets) -> Iterator[Result]:
    """Lock the same rows in two orders, which PostgreSQL ends as a deadlock."""
    with targets.with_postgres() as (service, _):
        service.prepare()
        artifact = service.get(f"/v1/models/{MODEL}/versions/1/artifact").content
        seen: Counter[str] = Counter()
        for n in range(ROUNDS):
            model = f"/v1/models/locked{n}"
            _import(service, model.rpartition("/")[2], artifact)
            aliases = [_sender(service, "PUT", f"{model}/aliases/a{k}", {"version": 1}) for k in range(3)]
            statuses = at_the_same_time(*aliases, _sender(service, "DELETE", model))
            seen.update(map(str, statuses))
        yield _statuses("PUTs of aliases and DELETE of the model", seen, {"200", "204", "404", "409"})
        yield expect("errors in the log", service.stack.log.read_text().count("deadlock"), 0)
