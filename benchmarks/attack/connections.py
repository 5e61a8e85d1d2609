"""Connections that stay open: event streams, and requests that never end."""

from __future__ import annotations

import resource
import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.attack.harness import (
    BODY,
    LONG,
    MIB,
    PREDICT,
    Result,
    Service,
    Targets,
    at_most,
    attack,
    expect,
    holds,
    memory,
)

STREAMS = 300
SILENT = 1100
HALF_BODIES = 30
CLOSED_WITHIN_SECONDS = 150.0


def _median(service: Service) -> float:
    """Return the median latency of predictions in milliseconds."""
    seconds = []
    for _ in range(100):
        began = time.monotonic()
        service.stack.call("POST", PREDICT, 200, json=BODY)
        seconds.append(time.monotonic() - began)
    return statistics.median(seconds) * 1000


@attack("300 event streams of one job")
def streams(targets: Targets) -> Iterator[Result]:
    """Follow one job with many clients; predictions must not wait for them."""
    with targets.new() as service, ExitStack() as opened:
        service.prepare()
        job = service.stack.train(service.dataset, model="long", learner=LONG)["id"]
        alone = _median(service)
        request = (
            f"GET /v1/training-jobs/{job}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            "Accept: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        connections = [opened.enter_context(service.connect()) for _ in range(STREAMS)]
        for connection in connections:
            connection.sendall(request.encode())
        statuses = [connection.recv(12).decode().rpartition(" ")[2] for connection in connections]
        yield holds("statuses of the streams", {*statuses} <= {"200", "429", "503"}, sorted({*statuses}))
        time.sleep(2.0)
        beside = _median(service)
        # Both medians are of the same machine; a millisecond more is no regression.
        yield at_most(f"p50 of predictions beside {STREAMS} streams", beside, 5 * alone + 20, "ms")
        service.stack.call("POST", f"/v1/training-jobs/{job}/cancel", 202)
        followed = [one for one, status in zip(connections, statuses, strict=True) if status == "200"]
        missed = sum(b"event: cancelled" not in _rest(connection) for connection in followed)
        yield expect(f"of {len(followed)} streams, those that miss the last event", missed, 0)


def _rest(connection: socket.socket) -> bytes:
    """Return what the service sends until it closes a connection."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


@contextmanager
def _files(soft: int) -> Iterator[None]:
    """Set the soft limit of open files, which new processes inherit."""
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))


def _is_closed(connection: socket.socket) -> bool:
    """Whether the service has closed a connection; reads what it sent before."""
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


def _all_closed(connections: list[socket.socket]) -> float:
    """Wait until all connections are closed; returns the seconds, or the limit."""
    began = time.monotonic()
    waiting = connections
    while waiting and time.monotonic() - began < CLOSED_WITHIN_SECONDS:
        time.sleep(0.5)
        waiting = [connection for connection in waiting if not _is_closed(connection)]
    return time.monotonic() - began if not waiting else float("inf")


@attack("connections that send nothing, half a head or half a body")
def half_requests(targets: Targets) -> Iterator[Result]:
    """Open more connections than the usual limit of files, and leave them."""
    with ExitStack() as opened:
        with _files(1024):
            service = opened.enter_context(targets.new())
        service.prepare()
        with _files(8192):
            kinds = {
                "nothing": b"",
                "half a head": b"POST /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nX-",
                "half a body": (
                    b"POST /v1/datasets HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
                ),
            }
            held = {}
            for name, content in kinds.items():
                held[name] = [opened.enter_context(service.connect()) for _ in range(SILENT // 3 + 1)]
                for connection in held[name]:
                    connection.sendall(content)
            with service.client(30) as client:
                response = client.post(PREDICT, json=BODY)
            yield expect(f"status of a prediction beside {SILENT} connections", response.status_code, 200)
            for name, connections in held.items():
                seconds = _all_closed(connections)
                yield at_most(
                    f"time until connections with {name} are closed", seconds, CLOSED_WITHIN_SECONDS, "s"
                )


@attack("30 large bodies that never end")
def half_bodies(targets: Targets) -> Iterator[Result]:
    """Send almost all of the largest bodies that are allowed, at the same time."""
    with targets.new() as service, ExitStack() as opened:
        service.prepare()
        before = memory(service.api, "VmRSS")
        size = 8 * MIB - 1
        head = (
            "POST /v1/models/attacked/predict HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
        )
        piece = b" " * (size - 1)
        for _ in range(HALF_BODIES):
            connection = opened.enter_context(service.connect())
            connection.settimeout(5.0)
            try:
                connection.sendall(head.encode() + piece)
            except OSError:  # refused, or not read
                continue
        grown = (memory(service.api, "VmRSS") - before) / MIB
        yield at_most("growth of the API", grown, 512.0, "MiB")
        with service.client(30) as client:
            yield expect("status of a prediction meanwhile", client.post(PREDICT, json=BODY).status_code, 200)


@attack("malformed HTTP", short=True)
def malformed(targets: Targets) -> Iterator[Result]:
    """Send bytes that are no HTTP; the response must be a problem document."""
    for name, content in {
        "no HTTP": b"\x16\x03\x01 hello\r\n\r\n",
        "a bad header": b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
    }.items():
        received = targets.shared.send_raw(content, shut=True)
        yield holds(f"{name}: status 400", received.startswith(b"HTTP/1.1 400"), received[:30])
        yield holds(f"{name}: a problem document", b"application/problem+json" in received, received[:200])
