"""Edges of the HTTP interface: discarded bodies, names, feedback of Label Studio, and files on the disk."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from httpx import Response

from benchmarks.attack.harness import (
    MESSAGES,
    MIB,
    MODEL,
    QUICK,
    ROUTER,
    Result,
    Service,
    Targets,
    attack,
    expect,
    holds,
    until,
    within,
)

JSON = {"Content-Type": "application/json"}
RAW = {"Content-Type": "message/rfc822"}
CONFIG = (
    '<View><Text name="m" value="$text"/><Choices name="c" toName="m" choice="multiple">'
    '<Choice value="billing"/></Choices></View>'
)


@attack("a message that is longer than all bodies in memory")
def long_message(targets: Targets) -> Iterator[Result]:
    """Send a message whose rest is discarded; its bytes must not count as bytes in memory."""
    settings = {"COVEY_MAX_MESSAGE_BYTES": "1000000", "COVEY_MAX_BODIES_BYTES": "1"}
    with targets.new(settings) as service:
        service.prepare()
        content = b"Subject: invoice\r\n\r\n" + b"the invoice is wrong\r\n" * (64 * MIB // 22)
        response = service.post(MESSAGES, content=content, headers=RAW)
        yield expect("status", response.status_code, 200)
        yield holds("it is truncated", response.json()["message"]["truncated"])


@attack("aliases that look like versions", short=True)
def aliases(targets: Targets) -> Iterator[Result]:
    """Set aliases that a reader would take for the number of a version."""
    for alias in ("1", "001", "v2", "latest"):
        path = f"/v1/models/{MODEL}/aliases/{alias}"
        response = targets.shared.request("PUT", path, json={"version": 1})
        yield expect(f"status of {alias}", response.status_code, 422)


@attack("choices of Label Studio that are no labels", short=True)
def choices(targets: Targets) -> Iterator[Result]:
    """Send annotations whose choices ``/v1`` refuses as feedback, and a note without a choice."""
    service = targets.shared
    names = {
        "nothing": [""],
        "a blank": [" "],
        "NUL": ["a\0"],
        "20,001 choices": [f"l{n}" for n in range(20_001)],
    }
    for what, selected in names.items():
        response = _annotate(service, [{"from_name": "c", "value": {"choices": selected}}])
        yield expect(f"{what}: status", response.status_code, 413, 422)
    noted = _annotate(service, [{"from_name": "note", "value": {"text": ["a note"]}}])
    yield expect("a note without a choice", noted.json()["status"], "ignored")


def _annotate(service: Service, result: list[dict[str, object]]) -> Response:
    task = {"id": 1, "data": {"text": "an annotated text"}}
    event = {
        "action": "ANNOTATION_CREATED",
        "project": {"label_config": CONFIG},
        "annotation": {"task": 1, "result": result},
        "task": task,
    }
    return service.post(f"/label-studio/routers/{ROUTER}/webhook", json=event)


@attack("what a folder that others can read shows of the database")
def files(targets: Targets) -> Iterator[Result]:
    """Start a service in a folder of mode 0755, and delete a decision."""
    data = targets.new_folder() / "data"
    data.mkdir(mode=0o755)
    with targets.new(data=data) as service:
        service.prepare()
        content = b"Subject: Divorce-of-Ann\r\n\r\nthe invoice is wrong\r\n"
        decision = service.post(MESSAGES, content=content, headers=RAW).json()["decision_id"]
        yield expect("files with the subject before", bool(_containing(data, b"Divorce-of-Ann")), True)
        service.request("DELETE", f"/v1/decisions/{decision}")
        yield expect("files with the subject afterwards", _containing(data, b"Divorce-of-Ann"), [])
        modes = {path.name: oct(path.stat().st_mode & 0o777) for path in data.glob("covey.db*")}
        yield expect("modes of the database", set(modes.values()), {"0o600"})


def _containing(folder: Path, text: bytes) -> list[str]:
    return [path.name for path in folder.glob("covey.db*") if text in path.read_bytes()]


@attack("the plan of an experiment with 1,000 cells")
def plan(targets: Targets) -> Iterator[Result]:
    """Write to the database all the time while the cells are queued."""
    with targets.new() as service:
        service.prepare()
        waits: list[float] = []
        done = threading.Event()

        def write() -> None:
            with service.client() as client:
                for number in range(1_000_000):
                    began = time.monotonic()
                    body = {"model": MODEL, "fallback": f"{number}@example.org"}
                    client.put("/v1/routers/written", json=body).raise_for_status()
                    waits.append(time.monotonic() - began)
                    if done.wait(0.02):
                        return

        writing = threading.Thread(target=write)
        writing.start()
        configurations = [{"name": f"c{n}", "learner": QUICK} for n in range(100)]
        body = {
            "dataset_id": service.dataset,
            "configurations": configurations,
            "split": {"kind": "folds", "folds": 10},
        }
        experiment = service.post("/v1/experiments", content=json.dumps(body).encode(), headers=JSON).json()
        path = f"/v1/experiments/{experiment['id']}"
        until(lambda: len(service.get(path).json()["cells"]) == 1000, "the plan")
        done.set()
        writing.join()
        yield expect("cells", len(service.get(path).json()["cells"]), 1000)
        yield within("longest other write", max(waits), 1.0)
        service.post(f"{path}/cancel")
