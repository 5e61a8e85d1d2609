"""Bodies whose reading holds the event loop, so that all other requests of a process wait.

Code in C can hold the interpreter until it returns, also in a thread.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import providers

from benchmarks.attack.harness import (
    MESSAGES,
    MIB,
    MODEL,
    PREDICT,
    ROUTER,
    Result,
    Targets,
    at_most,
    attack,
    expect,
    within,
)

HELD_SECONDS = 0.1
"""How long a body can delay other requests."""

CPU_SECONDS = 2.0
"""CPU time of a body that is refused."""

ATTEMPTS = 3
"""Other work on the machine delays a health check, too, so the shortest of several delays counts."""

JSON = {"Content-Type": "application/json"}
RAW = {"Content-Type": "message/rfc822"}
LABEL_STUDIO = f"/label-studio/models/{MODEL}/setup"
INBOUND = f"/v1/routers/{ROUTER}/inbound"


@dataclass(frozen=True)
class Shape:
    """A body that is expensive to read.

    Attributes:
        path: path of the operation.
        content: the body.
        statuses: the statuses that it can get.
        headers: the headers.
    """

    path: str
    content: bytes
    statuses: tuple[int, ...]
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)


def _repeated(start: bytes, part: bytes, end: bytes, n_bytes: int) -> bytes:
    """Return a body of almost ``n_bytes`` with as many equal parts as fit."""
    return start + part * ((n_bytes - len(start) - len(end)) // len(part)) + end


def _config(part: str, n: int) -> bytes:
    choices = '<Text name="m" value="$text"/><Choices name="c" toName="m"><Choice value="billing"/></Choices>'
    return json.dumps({"schema": f"<View>{choices}{part * n}</View>"}).encode()


def _shapes() -> Iterator[tuple[str, Shape]]:
    postmark = {**JSON, **providers.postmark(b"").headers}
    for what, part in {"lists": b"[],", "numbers": b"1,", "objects": b'{"a":1},', "texts": b'"",'}.items():
        body = _repeated(b'{"RawEmail":"a","x":[', part, b"1]}", 16 * MIB)
        yield f"Postmark, 16 MiB of {what}", Shape(f"{INBOUND}/postmark", body, (413, 503), postmark)
    text = json.dumps({"RawEmail": "Subject: a\r\n\r\n" + '":' * (5 * MIB)}).encode()
    yield "Postmark, 15 MiB of quotation marks", Shape(f"{INBOUND}/postmark", text, (200,), postmark)
    for what, part in {"lists": b"[],", "objects": b'{"a":1},'}.items():
        body = _repeated(b'{"Type":"Notification","x":[', part, b"1]}", 2 * 1000**2)
        shape = Shape(f"{INBOUND}/ses", body, (400, 403, 413, 422), {"Content-Type": "text/plain"})
        yield f"unsigned SES, 2 MB of {what}", shape
    for what, start, part in (
        ("CR LF CR", b"Subject: a\r\n\r\n", b"\r\n\r"),
        ("CR LF CR in the header", b"Subject: a", b"\r\n\r"),
        ("CR CR LF", b"Subject: a\r\r\n\r\r\n", b"\r\r\n"),
        ("CR", b"Subject: a\r\n\r\n", b"\r"),
        ("LF", b"Subject: a\r\n\r\n", b"\n"),
    ):
        yield f"mail, 25 MiB of {what}", Shape(MESSAGES, _repeated(start, part, b"", 25 * MIB), (200,), RAW)
    quotes = json.dumps({"instances": [{"text": '":' * (2 * MIB)}]}).encode()
    yield "a text of quotation marks, 6 MiB", Shape(PREDICT, quotes, (413, 422))
    parts = json.dumps({"email": {"text": '":' * (2 * MIB)}}).encode()
    yield (
        "an e-mail of quotation marks, 6 MiB",
        Shape(f"/v1/routers/{ROUTER}/message-parts", parts, (200, 413)),
    )
    for start, end in ((b'{"instances":[', b"1]}"), (b'{"instances":[{"features":[', b"1]}]}")):
        body = _repeated(start, b"1,", end, 8 * MIB)
        yield f"8 MiB of numbers after {start.decode()}", Shape(PREDICT, body, (413,))
    for what, tag, n in (
        ("tags", "<a/>", 480_000),
        ("controls", "<Choices/>", 180_000),
        ("open tags", "<a>", 600_000),
        ("choices", '<Choice value="a"/>', 100_000),
    ):
        yield f"a configuration of {what}", Shape(LABEL_STUDIO, _config(tag, n), (200, 422))


@attack("bodies that hold the event loop")
def held_loop(targets: Targets) -> Iterator[Result]:
    """Send each shape, and a health check every 20 ms at the same time."""
    settings: dict[str, Any] = providers.settings(targets.new_folder())
    variables = {f"COVEY_{name.upper()}": str(value) for name, value in settings.items()}
    with targets.new(variables) as service:
        service.prepare()
        for what, shape in _shapes():
            waits: list[float] = []
            cpu: list[float] = []
            for _ in range(ATTEMPTS):
                with service.watched() as cost:
                    response = service.post(shape.path, content=shape.content, headers=dict(shape.headers))
                waits.append(cost.longest_wait)
                cpu.append(cost.cpu_seconds)
            yield expect(f"{what}: status", response.status_code, *shape.statuses)
            yield within(f"{what}: longest health check", min(waits), HELD_SECONDS)
            if response.status_code == 413:
                yield at_most(f"{what}: CPU time until it is refused", min(cpu), CPU_SECONDS, "s")
