"""Limits of a client, headers of every response, and the places where the words of messages are stored."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from contract import problem_of
from stack import Stack, departments
from waiting import LIMIT_SECONDS, wait_for

pytestmark = pytest.mark.system

ORIGIN = "https://desk.example.org"
"""An origin that ``secured_stack`` allows."""


@pytest.fixture
def client(secured_stack: tuple[Stack, str]) -> Iterator[Stack]:
    """The service, with a separate key for each test, so that no test uses up the limits of another one."""
    stack, admin = secured_stack
    stack.http.headers["Authorization"] = f"Bearer {admin}"
    key = stack.call("POST", "/v1/api-keys", 201, json={"name": "one", "scopes": ["admin"]})
    stack.http.headers["Authorization"] = f"Bearer {key['secret']}"
    yield stack
    del stack.http.headers["Authorization"]


def test_a_key_over_its_rate_limit_gets_429_and_other_keys_do_not(
    secured_stack: tuple[Stack, str], client: Stack
) -> None:
    accepted_requests = 0
    while (response := client.http.get("/v1/learners")).status_code == 200:
        accepted_requests += 1
        assert accepted_requests < 5_000
    problem_of(response, 429, "too_many_requests")
    assert accepted_requests >= 400
    assert 1 <= int(response.headers["Retry-After"]) <= 2
    _, admin = secured_stack
    assert client.http.get("/v1/datasets", headers={"Authorization": f"Bearer {admin}"}).status_code == 200
    assert client.http.get("/health/live").status_code == 200

    def accepted() -> bool | None:
        return client.http.get("/v1/datasets").status_code == 200 or None

    wait_for(accepted, what="the rate limit to allow a request")


def test_jobs_in_flight_and_concurrent_requests_are_limited(client: Stack) -> None:
    dataset = client.dataset(departments(40))
    holds = [client.hold(model="flight") for _ in range(2)]
    jobs = [client.train(dataset["id"], model="flight") for _ in holds]
    body = {"dataset_id": dataset["id"], "model": "flight", "learner": {"algorithm": "mp_boost"}}
    problem = problem_of(client.http.post("/v1/training-jobs", json=body), 429, "too_many_jobs")
    assert "2 jobs in flight" in problem["detail"]
    cell = {"learner": {"algorithm": "mp_boost", "rounds": 5}}
    experiment = {
        "dataset_id": dataset["id"],
        "configurations": [cell],
        "split": {"kind": "folds", "folds": 2},
    }
    problem_of(client.http.post("/v1/experiments", json=experiment), 429, "too_many_jobs")

    # A response with an event stream lasts as long as its job.
    path = f"/v1/training-jobs/{jobs[0]['id']}/events"

    def limited_at_once() -> bool | None:
        # If Redis is slow once, as on a busy machine, the service does not count requests for a while.
        with ExitStack() as streams:
            for _ in range(3):
                response = streams.enter_context(
                    client.http.stream("GET", path, headers={"Accept": "text/event-stream"})
                )
                assert response.status_code == 200
            rejected = client.http.get("/v1/datasets")
            if rejected.status_code == 200:
                return None
            problem_of(rejected, 429, "too_many_at_once")
            return True

    wait_for(limited_at_once, what="the limit of concurrent requests")

    def free() -> bool | None:
        return client.http.get("/v1/datasets").status_code == 200 or None

    wait_for(free, what="the end of the streams")
    for job in jobs:
        client.call("POST", f"/v1/training-jobs/{job['id']}/cancel", 202)
        client.finished(job["id"])
    for hold in holds:
        hold.release()
    client.finished(client.train(dataset["id"], model="flight")["id"])


def test_every_response_has_security_headers_for_browsers(client: Stack) -> None:
    paths = {
        "/v1/datasets": 200,
        "/v1/datasets/ds_no": 404,
        "/nowhere": 404,
        "/health/live": 200,
        "/docs": 200,
    }
    for path, status in paths.items():
        response = client.http.get(path)
        assert response.status_code == status
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert "Server" not in response.headers
        assert (response.headers.get("Cache-Control") == "no-store") == path.startswith("/v1/")
    rejected = client.http.get("/v1/datasets", headers={"Authorization": "Bearer x"})
    assert rejected.status_code == 401
    assert rejected.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/v1/datasets", "/v1/models/helpdesk/predict"])
def test_only_configured_origins_get_cors_headers(client: Stack, path: str) -> None:
    def preflight(origin: str) -> httpx.Response:
        headers = {
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type",
        }
        return client.http.options(path, headers=headers)

    assert preflight(ORIGIN).status_code == 200
    assert preflight(ORIGIN).headers["Access-Control-Allow-Origin"] == ORIGIN
    assert "Access-Control-Allow-Credentials" not in preflight(ORIGIN).headers
    assert "Access-Control-Allow-Origin" not in preflight("https://elsewhere.example.com").headers
    for origin, allowed in ((ORIGIN, ORIGIN), ("https://elsewhere.example.com", None)):
        response = client.http.post(path, headers={"Origin": origin})
        assert response.status_code == 422
        assert response.headers.get("Access-Control-Allow-Origin") == allowed


def test_without_the_setting_a_service_without_keys_rejects_pages_of_other_origins(stack: Stack) -> None:
    for method in ("GET", "OPTIONS"):
        headers = {"Origin": ORIGIN, "Access-Control-Request-Method": "GET"}
        response = stack.http.request(method, "/v1/datasets", headers=headers)
        problem_of(response, 403, "foreign_origin")
        assert not [name for name in response.headers if name.lower().startswith("access-control-")]


def test_large_headers_are_rejected(stack: Stack) -> None:
    response = stack.http.get("/v1/datasets", headers={f"X-{i}": "x" * 1000 for i in range(40)})
    problem_of(response, 431, "headers_too_large")
    assert stack.http.get("/v1/datasets", headers={"X-One": "x" * 8000}).status_code == 200


@pytest.mark.parametrize("head", [b"X-A: ", b"", b"GET /"], ids=["a header", "many headers", "a path"])
def test_the_server_closes_a_connection_with_endless_headers(stack: Stack, head: bytes) -> None:
    address = urlsplit(stack.url)
    assert address.hostname is not None
    line = b"" if head == b"GET /" else b"GET /v1/datasets HTTP/1.1\r\nHost: x\r\n"
    chunk = b"X-B: bbbbbbbbb\r\n" * 4096 if head == b"" else b"a" * 65_536
    sent = 0
    with socket.create_connection(
        (address.hostname, address.port or 80), timeout=LIMIT_SECONDS
    ) as connection:
        connection.sendall(line + head)
        with suppress(ConnectionError):
            while sent < 64 * 1024 * 1024:
                connection.sendall(chunk)
                sent += len(chunk)
    # The client fills the buffers of the connection before it notices that the server has closed it.
    assert sent < 16 * 1024 * 1024
    assert stack.http.get("/health/live").status_code == 200


def test_deleting_a_decision_deletes_its_text(killable_stack: Stack) -> None:
    stack = killable_stack
    dataset = stack.dataset(departments(80))
    stack.finished(stack.train(dataset["id"], model="deleted-text")["id"])
    router = {"model": "deleted-text", "fallback": "front@example.org", "explain": True}
    stack.call("PUT", "/v1/routers/deleted-text", 200, json=router)
    message = {"email": {"subject": "xylograph parcel", "text": "the courier is late with my parcel"}}
    first = stack.call("POST", "/v1/routers/deleted-text/message-parts", 200, json=message)
    path = f"/v1/decisions/{first['decision_id']}"
    stored = stack.call("GET", path, 200)
    assert stored["message"]["subject"] == "xylograph parcel"
    assert stored["explanation"] == first["explanation"] != []
    stack.call("DELETE", path, 204)
    problem_of(stack.http.get(path), 404, "not_found")
    problem_of(stack.http.delete(path), 404, "not_found")
    assert stack.call("GET", "/v1/routers/deleted-text/decisions", 200)["items"] == []
    again = stack.call("POST", "/v1/routers/deleted-text/message-parts", 200, json=message)
    assert again["decision_id"] != first["decision_id"]
    stack.call("DELETE", f"/v1/decisions/{again['decision_id']}", 204)
    assert stack.stop() == 0
    # SQLite overwrites deleted rows; at the end it merges its journal into the database file.
    remaining = [
        path for path in stack.data.rglob("*") if path.is_file() and b"xylograph" in path.read_bytes()
    ]
    assert remaining == []
    stack.start()


def test_deleting_a_data_set_deletes_its_files(killable_stack: Stack) -> None:
    stack = killable_stack

    def files() -> set[Path]:
        return {path for path in (stack.data / "storage").rglob("*/*") if path.is_file()}

    before = files()
    examples = [
        {**example, "text": f"{example['text']} xylograph{i}"} for i, example in enumerate(departments(40))
    ]
    dataset = stack.dataset(examples)
    failed = stack.upload(b'{"text": "xylograph", "labels": 7.5}\n')
    assert failed["state"] == "failed"
    assert files() - before
    for deleted in (dataset, failed):
        stack.call("DELETE", f"/v1/datasets/{deleted['id']}", 204)
    assert not files() - before


def test_logs_and_metrics_contain_no_text_of_messages(client: Stack) -> None:
    """Send a distinct word in every input, valid or invalid, then search the debug log and the metrics."""
    words = {
        "text": "quokkatext",
        "subject": "quokkasubject",
        "address": "quokkaaddress",
        "header": "quokkaheader",
        "html": "quokkahtml",
        "attachment": "quokkaattachment",
        "bad": "quokkabad",
        "label": "quokkalabel",
        "feature": "quokkafeature",
    }
    examples = [{**example, "text": f"{example['text']} {words['text']}"} for example in departments(80)]
    dataset = client.dataset(examples)
    assert client.finished(client.train(dataset["id"], model="quiet")["id"])["state"] == "succeeded"
    assert client.upload(b'{"text": "quokkabad", "labels": [7.5]}\n')["state"] == "failed"
    assert client.upload(b"quokkabad\xff\x00 not json\n" * 3)["state"] == "failed"

    router = {"model": "quiet", "fallback": "front@example.org", "explain": True}
    client.call("PUT", "/v1/routers/quiet", 200, json=router)
    raw = (
        f"From: <{words['address']}@example.com>\r\nSubject: {words['subject']} parcel\r\n"
        f"X-Note: {words['header']}\r\nMessage-ID: <[x]@y>\r\nMIME-Version: 1.0\r\n"
        'Content-Type: multipart/mixed; boundary="b"\r\n\r\n'
        f"--b\r\nContent-Type: text/plain; charset=nonsense\r\n\r\n"
        f"late parcel courier delivery tracking warehouse address {words['text']}\r\n"
        f"--b\r\nContent-Type: text/html\r\n\r\n<p>{words['html']}<script>\r\n"
        f'--b\r\nContent-Type: application/pdf; name="{words["attachment"]}.pdf"\r\n'
        "Content-Transfer-Encoding: base64\r\n\r\n!!!\r\n--b--\r\n"
    ).encode()
    decision = client.call(
        "POST", "/v1/routers/quiet/messages", 200, content=raw, headers={"Content-Type": "message/rfc822"}
    )
    assert decision["explanation"], "the request asks for an explanation"
    client.call(
        "POST",
        "/v1/routers/quiet/messages",
        200,
        content=b"\xff\xfe quokkabad",
        headers={"Content-Type": "message/rfc822"},
    )
    request = {
        "instances": [{"text": words["text"]}, {"email": {"subject": words["subject"]}}],
        "explain": True,
    }
    client.call("POST", "/v1/models/quiet/predict", 200, json=request)
    bad: list[tuple[str, Any]] = [
        ("/v1/models/quiet/predict", {"instances": [{"text": 7, "quokkabad": "quokkabad"}]}),
        ("/v1/models/quiet/predict", {"instances": [{"features": {words["feature"]: 1.0}}]}),
        ("/v1/routers/quiet/message-parts", {"email": {"subject": ["quokkabad"]}}),
        ("/v1/routers/quiet/message-parts", {"raw_email": "quokkabad!"}),
        ("/v1/datasets", {"name": "x", "examples": [{"text": 1, "labels": [words["label"]]}]}),
        ("/v1/datasets", {"name": "quokkabad" * 100}),
    ]
    for path, body in bad:
        assert client.http.post(path, json=body).status_code in {413, 415, 422}
    assert client.http.post("/v1/models/quiet/predict", content=b'{"quokkabad').status_code == 415
    feedback = f"/v1/decisions/{decision['decision_id']}/feedback"
    new_label = {"labels": [words["label"]], "allow_new_labels": True}
    client.call("POST", feedback, 200, json=new_label)

    def all_jobs_logged() -> bool | None:
        log = client.log.read_text(errors="replace")
        return log.count('"job.started"') == log.count('"job.finished"') or None

    wait_for(all_jobs_logged, what="the worker's last log lines")

    # By the setting, decisions store no text.
    stored = client.call("GET", f"/v1/decisions/{decision['decision_id']}", 200)
    assert "subject" not in stored["message"]
    assert "explanation" not in stored
    again = client.call(
        "POST", "/v1/routers/quiet/messages", 200, content=raw, headers={"Content-Type": "message/rfc822"}
    )
    assert again == {name: value for name, value in decision.items() if name != "explanation"}
    listed = json.dumps(client.call("GET", "/v1/routers/quiet/decisions", 200))
    assert not [word for name, word in words.items() if name != "label" and word in listed]

    log = client.log.read_text(errors="replace")
    assert '"level": "debug"' in log
    metrics = client.http.get("/metrics").text
    assert [word for word in words.values() if word in log or word in metrics] == []
