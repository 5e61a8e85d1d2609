"""Requests in the name of e-mail providers: without a signature, or with one signature for many messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

import httpx
import providers
from providers import Request

from benchmarks.attack.harness import (
    MIB,
    ROUTER,
    Result,
    Service,
    Targets,
    at_most,
    at_the_same_time,
    attack,
    expect,
    within,
)

FORM_BYTES = 48 * MIB
URLENCODED = {"Content-Type": "application/x-www-form-urlencoded"}
SNS = {"Content-Type": "text/plain; charset=UTF-8"}
N_MESSAGES = 20


def _send(service: Service, request: Request) -> httpx.Response:
    """Send a request on a connection of its own, without an API key."""
    headers = {"Authorization": "", **request.headers}
    with service.client() as client:
        return client.post(request.path(ROUTER), headers=headers, content=request.body)


@attack("bodies of providers without a signature")
def unsigned(targets: Targets) -> Iterator[Result]:
    """Send large bodies: to verify them must not need more memory than to receive them."""
    settings = {
        f"COVEY_{name.upper()}": str(value)
        for name, value in providers.settings(targets.new_folder()).items()
    }
    bodies = {
        "a form of escapes": (
            Request("mailgun/mime", URLENCODED, b"body-mime=" + b"%41" * (FORM_BYTES // 3)),
            403,
        ),
        "a form of separators": (Request("mailgun/mime", URLENCODED, b"&" * FORM_BYTES), 400),
        "a form of line breaks": (
            Request(
                "mailgun/mime", providers.FORM, b"--xYzZY\r\n\r\n" + b"\r" * FORM_BYTES + b"\r\n--xYzZY--"
            ),
            403,
        ),
        "a form of almost boundaries": (
            Request("mailgun/mime", providers.FORM, b"--xYzZY\r\n\r\n" + b"\r\n--xYzZ" * (FORM_BYTES // 8)),
            400,
        ),
        "a notification of lists": (Request("ses", SNS, b'{"a": [' + b"[]," * (MIB // 2) + b"0]}"), 403),
        "a notification of brackets": (Request("ses", SNS, b"[" * MIB), 400),
    }
    with targets.new(settings) as service:
        service.prepare()
        for what, (request, status) in bodies.items():
            with service.watched() as cost:
                response = _send(service, request)
            yield expect(f"{what}: status", response.status_code, status)
            # The body arrives in pieces, which are joined: twice its size.
            yield at_most(
                f"{what}: growth of the API", cost.grown_mib, 2.5 * len(request.body) / MIB + 32, "MiB"
            )
            yield at_most(f"{what}: CPU time of the API", cost.cpu_seconds, 2.0, "s")
            yield within(f"{what}: longest health check", cost.longest_wait, 0.5)


@attack("one token of Mailgun for many messages at the same time")
def one_token(targets: Targets) -> Iterator[Result]:
    """Send different messages with one signature: only one of them may get a decision."""
    settings = {
        f"COVEY_{name.upper()}": str(value)
        for name, value in providers.settings(targets.new_folder()).items()
    }
    with targets.new(settings) as service:
        service.prepare()
        requests = [
            providers.mailgun(b"Subject: invoice %d\r\n\r\nmy invoice is wrong" % number, token=b"one token")
            for number in range(N_MESSAGES)
        ]
        responses = at_the_same_time(*(partial(_send, service, request) for request in requests))
        statuses = Counter(response.status_code for response in responses)
        yield expect("statuses", dict(statuses), {200: 1, 403: N_MESSAGES - 1})
        recorded = service.stack.call("GET", f"/v1/routers/{ROUTER}/decisions", 200)["items"]
        yield expect("decisions", len(recorded), 1)
