"""Mail is never dropped: the fallback answers whatever became of the version of a router."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from importlib.resources import files

import in_process
import pytest
from in_process_api import InProcessApi

from models.pipeline import Pipeline

MAIL = {"Content-Type": "message/rfc822"}
LOST = {
    "version": ("DELETE FROM model_versions", "model m has no version 1"),
    "alias": ("DELETE FROM model_aliases", "model m has no alias live; existing aliases: none"),
    "model": (
        "DELETE FROM model_versions; DELETE FROM model_aliases; DELETE FROM models",
        "there is no model m",
    ),
}


def message(number: int) -> bytes:
    return f"Message-ID: <{number}@example.org>\r\n\r\nmy invoice is wrong\r\n".encode()


def lose(service: InProcessApi, statements: str) -> None:
    """Delete rows that a router refers to, as the service itself never does."""
    with closing(sqlite3.connect(service.ctx.db.engine.url.database or "")) as connection:
        connection.executescript(statements)
        connection.execute("UPDATE catalog_revisions SET revision = revision + 1")
        connection.commit()


@pytest.mark.parametrize("lost", LOST)
def test_the_fallback_answers_if_what_the_router_refers_to_is_gone(lost: str, service: InProcessApi) -> None:
    service.train(service.dataset())
    version = 1 if lost == "version" else "live"
    service.call("PUT", "/v1/routers/r", 200, json={"model": "m", "version": version, "fallback": "desk"})
    for path in ("", "/versions/1" if version == 1 else "/aliases/live"):
        service.call("DELETE", f"/v1/models/m{path}", 409)  # the service itself deletes nothing that is used
    statements, reason = LOST[lost]
    lose(service, statements)

    # Restarted: the process knows nothing of the version.
    service.forget_versions()
    service.call("POST", "/v1/models/m/predict", 404, json={"instances": [{"text": "x"}], "version": version})
    decision = service.call("POST", "/v1/routers/r/messages", 200, content=message(1), headers=MAIL)
    assert (decision["disposition"], decision["destinations"]) == ("fallback", ["desk"])
    assert (decision["model"], decision["fallback_reason"]) == ("m", reason)
    assert "version" not in decision
    again = service.call("POST", "/v1/routers/r/messages", 200, content=message(1), headers=MAIL)
    assert again == decision
    recorded = service.call("GET", f"/v1/decisions/{decision['decision_id']}", 200)
    assert "version" not in recorded
    listed = service.call("GET", "/v1/routers/r/decisions", 200)["items"]
    assert listed == [recorded]


def test_the_fallback_answers_if_the_version_fails_for_a_reason_that_nobody_foresaw(
    service: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.train(service.dataset())
    service.call("PUT", "/v1/routers/r", 200, json={"model": "m", "fallback": "desk"})

    def fail(*_: object, **__: object) -> None:
        raise IndexError("17")

    monkeypatch.setattr(Pipeline, "rank", fail)
    decision = service.call("POST", "/v1/routers/r/messages", 200, content=message(1), headers=MAIL)
    assert (decision["disposition"], decision["version"]) == ("fallback", 1)
    assert decision["fallback_reason"] == "version 1 of m failed with IndexError"


def test_a_message_without_a_known_word_goes_to_the_fallback(service: InProcessApi) -> None:
    """With the features that suit the learner, on the messages of ``covey demo``."""
    lines = (files("app.demo") / "messages.jsonl").read_text("utf-8").splitlines()
    examples = service.dataset([json.loads(line) for line in lines])
    body = {"dataset_id": examples, "model": "m", "learner": {"algorithm": "svm"}}
    job = service.call("POST", "/v1/training-jobs", 202, json=body)
    in_process.work(service.ctx)
    assert job["request"]["features"] == {"kind": "auto"}
    result = service.call("GET", f"/v1/training-jobs/{job['id']}", 200)["result"]
    assert result["metrics"]["test"]["f1_micro"] > 0.93

    instances = [{"text": "asdf"}, {"text": "My invoice is wrong"}]
    unknown, known = service.call("POST", "/v1/models/m/predict", 200, json={"instances": instances})[
        "predictions"
    ]
    assert (unknown["labels"], known["labels"]) == ([], ["billing"])
    service.call("PUT", "/v1/routers/r", 200, json={"model": "m", "fallback": "desk"})
    for text in ("asdf", ""):
        email = {"email": {"text": text}}
        decision = service.call("POST", "/v1/routers/r/message-parts", 200, json=email)
        assert (decision["disposition"], decision["destinations"]) == ("fallback", ["desk"])
        assert decision["version"] == result["version"]
        assert decision["fallback_reason"] == "the message has no word that the version knows"
    email = {"email": {"text": "My invoice is wrong"}}
    decision = service.call("POST", "/v1/routers/r/message-parts", 200, json=email)
    assert decision["disposition"] == "routed"
    assert "fallback_reason" not in decision
