"""The Python client sends failed requests again, only where that is safe, and always as the same request."""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from certificates import write_certificate
from covey_client import (
    AsyncCovey,
    ConnectionFailed,
    Covey,
    CoveyError,
    NotFound,
    PreconditionFailed,
    Retry,
    ServiceUnavailable,
    TooManyRequests,
    models,
)
from covey_client._retry import REPEATABLE_POSTS
from covey_client.generated.api.webhooks import webhooks_delete, webhooks_test
from either_client import Blocking, Either, Service, alias, dataset, job, json_response, problem

ROOT = Path(__file__).parents[2]

TRAINING = {"model": "helpdesk", "dataset_id": "ds_1", "learner": {"algorithm": "mp_boost"}}
UNAVAILABLE = problem(503, "not_ready")
BROKEN = httpx.ReadError("reset")
CREATED = json_response(202, job("queued"))


def test_each_attempt_to_create_has_the_same_key_and_another_call_another_one(
    either: Either, waits: list[float]
) -> None:
    service = Service(BROKEN, UNAVAILABLE, CREATED)
    client = either(service)
    client("train", TRAINING, wait=False)
    client("train", TRAINING, wait=False)
    keys = [request.headers["Idempotency-Key"] for request in service.requests]
    assert len(set(keys[:3])) == 1
    assert keys[3] != keys[0]
    assert [json.loads(body) for body in service.bodies] == [TRAINING] * 4
    assert len(waits) == 2


def test_a_key_of_the_caller_is_sent(either: Either) -> None:
    service = Service(CREATED)
    either(service)("train", TRAINING, wait=False, idempotency_key="mine")
    assert service.requests[0].headers["Idempotency-Key"] == "mine"


def test_the_client_waits_as_long_as_the_response_says(either: Either, waits: list[float]) -> None:
    busy = problem(429, "too_many_requests", {"Retry-After": "7"})
    either(Service(busy, problem(503, "not_ready", {"Retry-After": "2"}), CREATED))(
        "train", TRAINING, wait=False
    )
    assert waits == [7, 2]


def test_waits_without_retry_after_grow(either: Either, waits: list[float]) -> None:
    with pytest.raises(ServiceUnavailable) as raised:
        either(Service(UNAVAILABLE))("get_dataset", "ds_1")
    assert raised.value.attempts == 5
    for wait, longest in zip(waits, (0.5, 1, 2, 4), strict=True):
        assert longest / 2 <= wait <= longest


def test_a_wait_that_is_too_long_is_left_to_the_caller(either: Either, waits: list[float]) -> None:
    with pytest.raises(TooManyRequests) as raised:
        either(Service(problem(429, "too_many_requests", {"Retry-After": "61"})))("get_dataset", "ds_1")
    assert raised.value.retry_after == 61
    assert waits == []


@pytest.mark.parametrize("code", ["artifact_unavailable", "file_damaged"])
def test_a_problem_that_lasts_until_an_administrator_acts_is_raised_at_once(
    either: Either, waits: list[float], code: str
) -> None:
    with pytest.raises(ServiceUnavailable) as raised:
        either(Service(problem(503, code, {"Retry-After": "1"})))("get_dataset", "ds_1")
    assert (raised.value.code, raised.value.attempts, waits) == (code, 1, [])


def test_a_request_with_an_effect_of_its_own_is_repeated_only_if_nothing_was_done(waits: list[float]) -> None:
    def attempts(first: httpx.Response | Exception) -> int:
        service = Service(first, problem(404, "not_found"))
        client = Blocking(service)
        with pytest.raises(CoveyError):
            client.covey.call(webhooks_test.sync_detailed, "wh_1", client=client.covey.api)
        return len(service.requests)

    assert attempts(httpx.ConnectError("refused")) == 2
    assert attempts(problem(429, "too_many_requests")) == 2
    assert attempts(BROKEN) == 1
    assert attempts(httpx.ReadTimeout("slow")) == 1
    assert attempts(UNAVAILABLE) == 1


def test_every_post_is_repeatable_has_a_key_or_a_condition_or_is_known_not_to_be() -> None:
    document = json.loads((ROOT / "openapi.json").read_text())
    posts: dict[str, set[str]] = {"path": set(), "header": set(), "never": set()}
    for path, operations in document["paths"].items():
        if (operation := operations.get("post")) is None:
            continue
        headers = {parameter["name"] for parameter in operation.get("parameters", [])}
        by_path = REPEATABLE_POSTS.fullmatch(re.sub(r"\{.*?\}", "x", path)) is not None
        by_header = bool(headers & {"Idempotency-Key", "If-Match"})
        assert not (by_path and by_header), path
        posts["path" if by_path else "header" if by_header else "never"].add(operation["operationId"])
    assert posts["path"] >= {"models_predict", "routers_route_message", "decisions_give_feedback"}
    assert posts["never"] == {"webhooks_test", "webhooks_redeliver"}


def test_an_upload_is_sent_again_as_a_whole(either: Either, waits: list[float], tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(b"x" * 300_000)
    for source in (path, str(path), b"x" * 300_000, [b"x" * 150_000, b"x" * 150_000]):
        created = json_response(201, dataset("awaiting_content"))
        service = Service(created, BROKEN, UNAVAILABLE, json_response(202, dataset("ingesting")))
        either(service)("upload", source, wait=False)
        assert service.calls == ["POST /v1/datasets", *(["PUT /v1/datasets/ds_1/content"] * 3)]
        assert service.bodies[1:] == [b"x" * 300_000] * 3


def test_a_generator_is_not_sent_again_and_the_empty_data_set_is_deleted(
    either: Either, waits: list[float]
) -> None:
    service = Service(json_response(201, dataset("awaiting_content")), BROKEN, httpx.Response(204))
    with pytest.raises(ConnectionFailed):
        either(service)("upload", (b"x" for _ in range(3)))
    assert service.calls == ["POST /v1/datasets", "PUT /v1/datasets/ds_1/content", "DELETE /v1/datasets/ds_1"]


def test_an_error_of_the_callers_generator_reaches_the_caller(either: Either) -> None:
    def examples() -> Any:
        yield {"text": "a", "labels": []}
        raise LookupError("mine")

    service = Service(json_response(201, dataset("awaiting_content")), httpx.Response(204))
    with pytest.raises(LookupError, match="mine"):
        either(service)("upload", examples())
    assert service.calls[-1] == "DELETE /v1/datasets/ds_1"


def test_an_upload_whose_response_was_lost_has_succeeded(either: Either, waits: list[float]) -> None:
    service = Service(
        json_response(201, dataset("awaiting_content")),
        BROKEN,
        problem(409, "dataset_has_content"),
        json_response(200, dataset("ready")),
    )
    assert either(service)("upload", b"{}").state == "ready"


def test_a_promotion_whose_response_was_lost_has_succeeded(either: Either, waits: list[float]) -> None:
    known = models.Alias.from_dict(alias(1, 4))
    service = Service(BROKEN, problem(412, "precondition_failed"), json_response(200, alias(2, 5)))
    moved = either(service)("promote", "helpdesk", 2, if_unchanged=known)
    assert (moved.version, moved.revision) == (2, 5)
    assert service.requests[0].headers["If-Match"] == '"4"'


@pytest.mark.parametrize("now", [alias(3, 5), alias(2, 6)])
def test_a_promotion_fails_if_somebody_else_has_changed_the_alias(
    either: Either, waits: list[float], now: dict[str, Any]
) -> None:
    known = models.Alias.from_dict(alias(1, 4))
    refused = problem(412, "precondition_failed")
    for responses in ([refused], [BROKEN, refused, json_response(200, now)]):
        with pytest.raises(PreconditionFailed):
            either(Service(*responses))("promote", "helpdesk", 2, if_unchanged=known)


def test_a_rollback_depends_on_the_alias_as_it_is_now(either: Either, waits: list[float]) -> None:
    service = Service(json_response(200, alias(2, 5)), BROKEN, json_response(200, alias(1, 6)))
    either(service)("roll_back", "helpdesk")
    assert [request.headers.get("If-Match") for request in service.requests] == [None, '"5"', '"5"']


def test_a_wrong_certificate_is_an_error_at_once(tmp_path: Path) -> None:
    """With a real server, because the exceptions come from below httpx."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(write_certificate(tmp_path, "covey.invalid"))
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # prints the failed handshake
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"https://127.0.0.1:{server.server_port}"
        try:
            with Covey(url) as covey, pytest.raises(ConnectionFailed, match="CERTIFICATE_VERIFY") as raised:
                covey.get_dataset("ds_1")

            async def get() -> None:
                async with AsyncCovey(url) as client:
                    await client.get_dataset("ds_1")

            with pytest.raises(ConnectionFailed, match="CERTIFICATE_VERIFY") as raised_too:
                anyio.run(get)
        finally:
            server.shutdown()
            thread.join()
    assert (raised.value.attempts, raised_too.value.attempts) == (1, 1)


@pytest.mark.parametrize(
    ("first", "deleted"),
    [(BROKEN, True), (UNAVAILABLE, True), (httpx.ConnectError("refused"), False), (None, False)],
)
def test_a_deletion_whose_response_was_lost_has_succeeded(
    waits: list[float], first: httpx.Response | Exception | None, deleted: bool
) -> None:
    missing = problem(404, "not_found")
    covey = Blocking(Service(missing) if first is None else Service(first, missing)).covey

    def delete() -> None:
        covey.call(webhooks_delete.sync_detailed, "wh_1", client=covey.api)

    if deleted:
        delete()
        return
    with pytest.raises(NotFound):
        delete()


def test_a_repeated_request_is_logged_without_the_key(
    either: Either, waits: list[float], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COVEY_API_KEY", "cov_secret")
    with caplog.at_level("INFO", "covey_client"):
        either(Service(UNAVAILABLE, json_response(200, dataset())))("get_dataset", "ds_1")
    (record,) = (record for record in caplog.records if record.name == "covey_client")
    assert record.getMessage().startswith("attempt 2 of GET http://127.0.0.1:8000/v1/datasets/ds_1 in 0.")
    assert "503 not_ready" in record.getMessage()
    assert "cov_secret" not in caplog.text


def test_a_failed_upload_does_not_wait_for_a_service_that_is_away(either: Either, waits: list[float]) -> None:
    service = Service(
        json_response(201, dataset("awaiting_content")), *[httpx.ConnectError("refused")] * 6, BROKEN
    )
    with pytest.raises(ConnectionFailed, match="refused"):
        either(service)("upload", b"x")
    assert service.calls[-1] == "DELETE /v1/datasets/ds_1"
    assert service.calls.count("DELETE /v1/datasets/ds_1") == 1
    assert service.requests[-1].extensions["timeout"]["read"] == 5.0


def test_a_cancelled_upload_deletes_its_data_set() -> None:
    service = Service(json_response(201, dataset("awaiting_content")), httpx.Response(204))

    async def parts() -> AsyncIterator[bytes]:
        yield b"x"
        await anyio.sleep_forever()

    async def upload() -> None:
        transport = httpx.MockTransport(service.respond)
        async with AsyncCovey(transport=transport) as covey:
            with anyio.move_on_after(0.05):
                await covey.upload(parts(), {"name": "mine"})

    anyio.run(upload)
    assert service.calls[-1] == "DELETE /v1/datasets/ds_1"


def test_retries_can_be_switched_off(either: Either, waits: list[float]) -> None:
    service = Service(UNAVAILABLE)
    with pytest.raises(ServiceUnavailable):
        either(service, Retry(attempts=1))("get_dataset", "ds_1")
    assert len(service.requests) == 1
