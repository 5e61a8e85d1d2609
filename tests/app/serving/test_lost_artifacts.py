"""A version whose file is missing or damaged has an error of its own, and its mail goes to the fallback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import in_process
import pytest
from in_process_api import InProcessApi
from waiting import wait_for

from app.health import routed_versions

MAIL = {"Content-Type": "message/rfc822"}
PREDICT = {"instances": [{"text": "an invoice"}]}


def message(number: int) -> bytes:
    return f"Message-ID: <{number}@example.org>\r\n\r\nmy invoice is wrong\r\n".encode()


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "removed": (Path.unlink, "is missing"),
    "truncated": (truncate, "bytes"),
    "emptied": (lambda path: path.write_bytes(b""), "bytes"),
    "cut in the header": (lambda path: path.write_bytes(path.read_bytes()[:20]), "bytes"),
    "with a flipped bit": (flip_a_bit, "is damaged"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_lost_artifact_returns_503_and_its_mail_goes_to_the_fallback(
    damage: str, service: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routed_versions, "CHECK_SECONDS", 0.0)
    destroy, problem = DAMAGE[damage]
    service.train(service.dataset())
    service.call("PUT", "/v1/routers/r", 200, json={"model": "m", "fallback": "desk"})
    # This request uses the new router. Afterwards nothing loads the version again by itself.
    service.call("POST", "/v1/models/m/predict", 200, json=PREDICT)
    path = next((service.storage.root / "artifacts").iterdir())
    content = path.read_bytes()
    service.forget_versions()
    destroy(path)

    response = service.send("POST", "/v1/models/m/predict", json=PREDICT)
    assert (response.status_code, response.json()["code"]) == (503, "artifact_unavailable"), response.text
    assert int(response.headers["retry-after"]) > 0
    assert "version 1 of m" in response.json()["detail"]

    decision = service.call("POST", "/v1/routers/r/messages", 200, content=message(1), headers=MAIL)
    assert (decision["disposition"], decision["destinations"], decision["ranking"]) == (
        "fallback",
        ["desk"],
        [],
    )
    assert (decision["model"], decision["version"]) == ("m", 1)
    assert "cannot be loaded" in decision["fallback_reason"]
    recorded = service.call("GET", f"/v1/decisions/{decision['decision_id']}", 200)
    assert recorded["fallback_reason"] == decision["fallback_reason"]
    metrics = service.send("GET", "/metrics").text
    assert 'covey_routing_fallbacks_total{router="r"}' in metrics

    def problems() -> list[str] | None:
        return service.routed_versions.problems() or None

    (found,) = wait_for(problems, what="the check of the routers")
    assert found.startswith("the messages of router r go to the fallback")
    assert problem in found

    # A restored file is used at once.
    with service.storage.create(f"artifacts/{path.name}") as file:
        file.write(content)
    service.call("POST", "/v1/models/m/predict", 200, json=PREDICT)
    decision = service.call("POST", "/v1/routers/r/messages", 200, content=message(2), headers=MAIL)
    assert "fallback_reason" not in decision
    wait_for(lambda: True if not service.routed_versions.problems() else None, what="the problem to end")


def test_mail_goes_to_the_fallback_if_the_alias_moves_to_a_version_that_cannot_read_it(
    service: InProcessApi,
) -> None:
    service.train(service.dataset())
    service.call("PUT", "/v1/routers/r", 200, json={"model": "m", "fallback": "desk"})
    rows = [{"features": {"x": n % 2}, "labels": [["a", "b"][n % 2]]} for n in range(8)]
    numbers = service.call("POST", "/v1/datasets", 201, json={"name": "numbers", "examples": rows})["id"]
    in_process.work(service.ctx)
    service.train(numbers)
    service.call("PUT", "/v1/models/m/aliases/live", 200, json={"version": 2})

    decision = service.call("POST", "/v1/routers/r/messages", 200, content=message(1), headers=MAIL)
    assert (decision["disposition"], decision["destinations"], decision["version"]) == (
        "fallback",
        ["desk"],
        2,
    )
    assert "was trained on numeric features" in decision["fallback_reason"]
