"""How fast changes of the catalog are seen by every process, and the first requests after them."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from benchmarks.serving.bodies import PLACEHOLDER, exchange, raw_request, read_bodies
from benchmarks.serving.processes import Target
from benchmarks.serving.report import Goal, Values
from benchmarks.serving.service import Service
from benchmarks.serving.setup import Setup

PROCESSES = 4
CONNECTIONS = 32
"""The kernel distributes them over the processes."""

PAUSE_SECONDS = 0.02
"""Pause of a connection between a response and its next request."""

SETTLE_SECONDS = 1.5
"""Pause before a change, in which every process sees the state before it."""

SEEN_SECONDS = 1.5
"""How long the connections go on after a change."""

COLD_VERSIONS = 20
REQUESTS = 10


@dataclass(frozen=True)
class Seen:
    """A response: when it arrived, its status, and its body."""

    at: float
    status: int
    body: bytes


@dataclass(frozen=True)
class Outcome:
    """What the connections saw of a change.

    Attributes:
        seconds: time from the response to the change to the last response that did not follow it.
        failed: responses that are neither as before nor as after the change, or have another status.
    """

    seconds: float
    failed: int


def judge(
    seen: list[Seen], changed_at: float, old: Callable[[Seen], bool], new: Callable[[Seen], bool]
) -> Outcome:
    """Classify the responses.

    >>> seen = [Seen(1.0, 200, b"a"), Seen(2.25, 200, b"a"), Seen(2.5, 200, b"b"), Seen(2.75, 500, b"")]
    >>> judge(seen, 2.0, lambda one: one.body == b"a", lambda one: one.body == b"b")
    Outcome(seconds=0.25, failed=1)
    """
    latest = max((one.at for one in seen if old(one)), default=changed_at)
    return Outcome(max(0.0, latest - changed_at), sum(not old(one) and not new(one) for one in seen))


def measure(setup: Setup) -> list[Goal]:
    """Promote versions, replace a router and revoke keys under load, in turn."""
    outcomes: dict[str, list[Outcome]] = {"promote": [], "router change": [], "revoked key": []}
    with setup.start("changes", "--processes", str(PROCESSES)) as running:
        versions = [1, running.import_model("mp_boost", setup.artifacts["mp_boost_half"])]
        for number in range(2 * setup.rounds):
            outcomes["promote"].append(
                _promote(setup, running, versions[number % 2], versions[1 - number % 2])
            )
            outcomes["router change"].append(_replace_router(setup, running, number))
            outcomes["revoked key"].append(_revoke(setup, running))
            print({name: own[-1] for name, own in outcomes.items()}, file=sys.stderr, flush=True)
    goals = [
        Goal(
            f"{name}, seen by {PROCESSES} processes after",
            1.0,
            Values.of([one.seconds for one in own]),
            "s",
            at_least=False,
        )
        for name, own in outcomes.items()
    ]
    failed = Values.of([float(one.failed) for own in outcomes.values() for one in own])
    goals.append(Goal("failed or mixed responses during a change", 0.0, failed, "responses", at_least=False))
    return goals


def first_requests(setup: Setup) -> list[Goal]:
    """Promote versions that no process has loaded, and compare the first request with the tenth."""
    first, tenth = [], []
    running = setup.sqlite
    target = setup.predict(running, "mp_boost")
    contents = read_bodies(target.bodies)
    with httpx.Client(headers=dict(target.headers), timeout=300, trust_env=False) as client:
        client.post(target.url, content=contents[0]).raise_for_status()
        for _ in range(COLD_VERSIONS):
            version = running.import_model("mp_boost", setup.artifacts["mp_boost"])
            running.call("PUT", "/v1/models/mp_boost/aliases/live", json={"version": version})
            took = []
            for number in range(REQUESTS):
                began = time.perf_counter()
                client.post(target.url, content=contents[number]).raise_for_status()
                took.append((time.perf_counter() - began) * 1000)
            first.append(took[0])
            tenth.append(took[-1])
    print(f"first {sorted(first)}, tenth {sorted(tenth)}, in ms", file=sys.stderr, flush=True)
    ratio = statistics.median(first) / statistics.median(tenth)
    ratios = Values.ratios(first, tenth)
    return [
        Goal(
            "first request after a promote, of the tenth",
            1.25,
            Values(ratio, ratios.lowest, ratios.highest),
            at_least=False,
        )
    ]


def _promote(setup: Setup, running: Service, old: int, new: int) -> Outcome:
    """Move the alias ``live``. A response is mixed if its content is not that of its version."""
    path = "/v1/models/mp_boost"
    running.call("PUT", f"{path}/aliases/live", json={"version": old})
    time.sleep(SETTLE_SECONDS)
    target = setup.predict(running, "mp_boost")
    body = read_bodies(target.bodies)[0]
    instances = json.loads(body)
    expected = {
        version: json.dumps(running.call("POST", f"{path}/predict", json={**instances, "version": version}))
        for version in (old, new)
    }

    def is_of(version: int) -> Callable[[Seen], bool]:
        return lambda one: one.status == 200 and json.dumps(json.loads(one.body)) == expected[version]

    def promote() -> None:
        running.call("PUT", f"{path}/aliases/live", json={"version": new})

    seen, changed_at = asyncio.run(_observe(target, body, promote))
    return judge(seen, changed_at, is_of(old), is_of(new))


def _replace_router(setup: Setup, running: Service, number: int) -> Outcome:
    """Replace the router. A response is mixed if it has destinations of both routers."""
    domains = (f"old{number}.example", f"new{number}.example")
    running.put_router("mp_boost", domains[0])
    time.sleep(SETTLE_SECONDS)
    target = setup.messages(running)
    body = read_bodies(target.bodies)[0]

    def is_of(domain: str) -> Callable[[Seen], bool]:
        return lambda one: one.status == 200 and _domains(one.body) == {domain}

    def replace() -> None:
        running.put_router("mp_boost", domains[1])

    seen, changed_at = asyncio.run(_observe(target, body, replace))
    return judge(seen, changed_at, is_of(domains[0]), is_of(domains[1]))


def _revoke(setup: Setup, running: Service) -> Outcome:
    """Delete an API key that requests use."""
    created = running.call("POST", "/v1/api-keys", json={"name": "revoked", "scopes": ["predict"]})
    target = setup.predict(running, "mp_boost")
    target = Target(
        target.url, target.bodies, {**target.headers, "Authorization": f"Bearer {created['secret']}"}
    )
    body = read_bodies(target.bodies)[0]

    def revoke() -> None:
        running.call("DELETE", f"/v1/api-keys/{created['id']}")

    seen, changed_at = asyncio.run(_observe(target, body, revoke))
    return judge(seen, changed_at, lambda one: one.status == 200, lambda one: one.status == 401)


def _domains(body: bytes) -> set[str]:
    destinations: list[str] = json.loads(body)["destinations"]
    return {destination.partition("@")[2] for destination in destinations}


async def _observe(target: Target, body: bytes, change: Callable[[], None]) -> tuple[list[Seen], float]:
    """Send requests over all connections before, during and after a change.

    Returns:
        all responses, and the time at which the change was confirmed.
    """
    seen: list[Seen] = []
    done = asyncio.Event()
    clients = [asyncio.create_task(_client(target, body, n, seen, done)) for n in range(CONNECTIONS)]
    await asyncio.sleep(0.5)
    await asyncio.to_thread(change)
    changed_at = time.monotonic()
    await asyncio.sleep(SEEN_SECONDS)
    done.set()
    await asyncio.gather(*clients)
    return seen, changed_at


async def _client(target: Target, body: bytes, number: int, seen: list[Seen], done: asyncio.Event) -> None:
    parts = urlsplit(target.url)
    request = raw_request(target.url, target.headers, body)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    sent = 0
    began = f"{time.monotonic_ns() % 10**12:012}"
    try:
        while not done.is_set():
            sent += 1
            own = request.replace(PLACEHOLDER, f"{began}{number:04}{sent:08}".encode(), 1)
            status, content = await exchange(reader, writer, own)
            seen.append(Seen(time.monotonic(), status, content))
            await asyncio.sleep(PAUSE_SECONDS)
    except (OSError, asyncio.IncompleteReadError):
        seen.append(Seen(time.monotonic(), 0, b""))
    finally:
        writer.close()
