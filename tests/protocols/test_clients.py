"""Clients of other projects work unmodified: Triton, KServe and MLServer, and Label Studio.

Their packages bring hundreds of others, some in versions that exclude those of the service. They have virtual
environments of their own, which `make protocol-clients` creates before it runs these tests.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stack import Stack, departments

DRIVERS = Path(__file__).parent / "drivers"
FOLDER = os.environ.get("COVEY_PROTOCOL_CLIENTS", "")
"""The folder with the virtual environments."""

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not FOLDER, reason="the clients are missing; run make protocol-clients"),
    pytest.mark.xdist_group("protocol-clients"),
]

TEXTS = ["my invoice is wrong", "die Rechnung für März"]
LIMIT_SECONDS = 600.0


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("protocol-clients") / "data").start()
    stack.http.headers["Authorization"] = f"Bearer {create_key(stack, 'admin')}"
    learner = {"learner": {"algorithm": "mp_boost", "rounds": 10}}
    texts = [{**item, "id": str(i)} for i, item in enumerate(departments(40))]
    dataset = stack.dataset(texts)["id"]
    train(stack, dataset, model="calibrated", decision={"kind": "auto"}, **learner)
    emails = [
        {"id": item["id"], "email": {"subject": item["text"]}, "labels": item["labels"]} for item in texts
    ]
    train(stack, stack.dataset(emails)["id"], model="mail", decision={"kind": "sign"}, **learner)
    rows = [
        {"id": str(i), "features": {"a": 1.0, "b": float(i % 2)}, "labels": ["odd" if i % 2 else "even"]}
        for i in range(12)
    ]
    numeric = {"features": {"kind": "numeric"}, "decision": {"kind": "sign"}}
    train(stack, stack.dataset(rows)["id"], model="numbers", **numeric, **learner)
    router = {"model": "mail", "fallback": "front", "keep_messages": "all"}
    stack.call("PUT", "/v1/routers/desk", 200, json=router)
    yield stack
    stack.stop()


def train(stack: Stack, dataset: str, **request: Any) -> None:
    job = stack.finished(stack.train(dataset, **request)["id"])
    assert job["state"] == "succeeded", job


def create_key(stack: Stack, scope: str) -> str:
    secret: str = stack.call("POST", "/v1/api-keys", 201, json={"name": scope, "scopes": [scope]})["secret"]
    return secret


def drive(driver: str, environment: str, *arguments: str) -> Any:
    """Run a driver with the Python of a virtual environment, and return what it prints."""
    result = subprocess.run(
        [f"{FOLDER}/{environment}/bin/python", str(DRIVERS / f"{driver}_driver.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    return json.loads(result.stdout.splitlines()[-1])


def predicted(stack: Stack, model: str, instances: Any) -> dict[str, list[Any]]:
    """Return the predictions of the API as the elements of the outputs."""
    body = {"instances": instances}
    found = stack.call("POST", f"/v1/models/{model}/predict", 200, json=body)["predictions"]
    ranked = [item for one in found for item in one["ranking"]]
    outputs: dict[str, list[Any]] = {
        "labels": [json.dumps(one["labels"], separators=(",", ":")) for one in found],
        "ranking": [item["label"] for item in ranked],
        "scores": [item["score"] for item in ranked],
    }
    if "set_probability" in found[0]:
        outputs["probabilities"] = [item["probability"] for item in ranked]
        outputs["set_probability"] = [one["set_probability"] for one in found]
    return outputs


@pytest.mark.parametrize("client", ["tritonclient", "kserve", "mlserver"])
def test_a_client_of_the_open_inference_protocol_predicts_as_the_api(service: Stack, client: str) -> None:
    address = service.url.removeprefix("http://")
    found = drive(client, "open-inference", address, create_key(service, "predict"))
    assert found["outputs"] == predicted(service, "calibrated", [{"text": text} for text in TEXTS])
    rows = [{"features": {"a": 1.0, "b": b}} for b in (0.0, 1.0)]
    if "numbers" in found:
        assert found["numbers"] == predicted(service, "numbers", rows)["labels"]
    if "emails" in found:
        emails = [{"email": {"subject": TEXTS[0]}}, {"email": {"subject": TEXTS[1], "text": "please help"}}]
        assert found["emails"] == predicted(service, "mail", emails)["labels"]
    if "missing" in found:
        status, message = found["missing"]
        assert int(status) == 404
        assert "there is no model missing" in message
    if "anonymous" in found:
        status, message = found["anonymous"]
        assert (status, "API key" in message) == ("401", True)


def test_label_studio_shows_predictions_and_its_annotations_are_feedback(
    service: Stack, tmp_path: Path
) -> None:
    labels = service.call("GET", "/v1/models/mail/versions/1", 200)["labels"]
    tasks = [{"subject": item["text"], "text": f"message {i}"} for i, item in enumerate(departments(3))]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    key = create_key(service, "predict")
    found = drive("label_studio", "label-studio", service.url, key, str(tmp_path), *labels)
    assert (found["state"], found["model_version"]) == ("CO", "mail 1"), "CO: connected"
    assert found["versions"] == ["mail 1"]
    assert found["wrong_key"] == 400
    items = service.call("GET", "/v1/routers/desk/decisions", 200)["items"]
    decisions = {item["message"]["subject"]: item for item in items}
    assert decisions.keys() == {item["subject"] for item in tasks}
    for subject, decision in decisions.items():
        assert found["predictions"][subject] == [item["label"] for item in decision["departments"]]
    created, updated = found["annotated"]
    assert decisions[created]["feedback"] == labels[:1]
    assert decisions[updated]["feedback"] == labels[1:2], "the annotation was updated"
    assert sum("feedback" in decision for decision in decisions.values()) == 2
