"""Imports of artifacts with a hostile manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from stack import BYTES

from benchmarks.attack.harness import MODEL, Result, Service, Targets, attack, expect, holds


def forge(content: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """Change the manifest of an artifact, and repair its checksums."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    manifest = json.loads(header["__metadata__"]["manifest"])
    change(manifest)
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    header["__metadata__"] = {"manifest": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    return len(encoded).to_bytes(8, "little") + encoded + content[8 + length :]


def _deep(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def _label(text: str) -> Callable[[dict[str, Any]], None]:
    def change(manifest: dict[str, Any]) -> None:
        manifest["labels"][-1] = text

    return change


CHANGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "a lone surrogate in a label": _label("\ud800"),
    "a lone surrogate in a warning": lambda manifest: manifest["warnings"].append("\ud800"),
    "a lone surrogate in the facts": lambda manifest: manifest["facts"].update(x="\ud800"),
    "a lone surrogate in the software": lambda manifest: manifest["software"].update({"\ud800": "1"}),
    "NUL in a label": _label("a\0b"),
    "metrics of a wrong type": lambda manifest: manifest["extra"].update(metrics=[1]),
    "metrics of text": lambda manifest: manifest["extra"].update(metrics={"train": {"f1_micro": "high"}}),
    "a digest of a wrong type": lambda manifest: manifest["extra"].update(dataset_sha256={"a": 1}),
    "timings of a wrong type": lambda manifest: manifest["extra"].update(timings="long"),
    "facts 900 deep": lambda manifest: manifest["facts"].update(_deep(900)),
    "extra 900 deep": lambda manifest: manifest["extra"].update(x=_deep(900)),
    "facts of 4 MB": lambda manifest: manifest["facts"].update(x=["x" * 1000] * 4000),
    "a huge number in the facts": lambda manifest: manifest["facts"].update(x=10**400),
    "a huge seed": lambda manifest: manifest.update(seed=10**40),
}


@attack("hostile manifests", short=True)
def manifests(targets: Targets) -> Iterator[Result]:
    """Import each forged artifact; afterwards every list must still work."""
    service = targets.shared
    content = service.get(f"/v1/models/{MODEL}/versions/1/artifact").content
    for n, (name, change) in enumerate(CHANGES.items()):
        yield from _import(service, f"forged{n}", name, forge(content, change))
    yield expect("status of the list of models", service.get("/v1/models").status_code, 200)


def _import(service: Service, model: str, name: str, content: bytes) -> Iterator[Result]:
    path = f"/v1/models/{model}"
    with service.client() as client:  # the API closes the connection of a body that it does not read
        status = client.post(f"{path}/versions", content=content, headers=BYTES).status_code
    yield holds(f"{name}: accepted or refused", status in (201, 400, 413, 422), status)
    exists = service.get(path).status_code
    yield expect(f"{name}: status of the model", exists, 200 if status == 201 else 404)
    if exists == 200:
        for suffix in ("", "/versions", "/versions/1"):
            yield expect(
                f"{name}: status of {suffix or 'the model'}", service.get(path + suffix).status_code, 200
            )
        service.request("DELETE", path)


@attack("an artifact with more labels than the limit")
def label_limit(targets: Targets) -> Iterator[Result]:
    """Import a model of four labels into a service that allows three."""
    content = targets.shared.get(f"/v1/models/{MODEL}/versions/1/artifact").content
    with targets.new({"COVEY_MAX_LABELS": "3"}) as service:
        response = service.post("/v1/models/large/versions", content=content, headers=BYTES)
        yield expect("status of the import", response.status_code, 413, 422)
