"""Predictions bypass the router of FastAPI, and behave exactly as if they did not."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from contract import problem_of
from in_process_api import InProcessApi, api
from waiting import LIMIT_SECONDS

from app.api.direct_routes import DirectRoutes
from app.keys import service as keys
from app.keys.schemas import ApiKeyCreate
from app.serving import latency_estimate, prediction
from app.serving.schemas import PredictResponse
from app.threads import PREDICTIONS
from models.pipeline import Pipeline

PREDICT = "/v1/models/m/predict"
JSON = {"Content-Type": "application/json"}
GOOD = {"instances": [{"text": "my invoice is wrong"}], "top": 2}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    """The API with a trained model."""
    with (
        pytest.MonkeyPatch.context() as patch,
        api(tmp_path_factory.mktemp("direct"), migrated_sqlite, patch) as service,
    ):
        service.train(service.dataset())
        yield service


@pytest.fixture
def by_fastapi(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function that sends all further requests through the router of FastAPI."""
    return lambda: monkeypatch.setattr(DirectRoutes, "_match", lambda *_: (None, ""))


@pytest.fixture
def on_both(
    client: InProcessApi, by_fastapi: Callable[[], None]
) -> Callable[..., tuple[httpx.Response, httpx.Response]]:
    """Sends a request on the direct route, and again through FastAPI."""

    def send(**options: Any) -> tuple[httpx.Response, httpx.Response]:
        direct = client.send("POST", PREDICT, **options)
        by_fastapi()
        return direct, client.send("POST", PREDICT, **options)

    return send


def instances(*texts: Any) -> str:
    return json.dumps({"instances": [{"text": text} for text in texts]})


BAD: dict[str, tuple[dict[str, str], str | bytes]] = {
    "no body": ({}, b""),
    "an empty JSON body": (JSON, b""),
    "no media type": ({"Content-Type": ""}, instances("a")),
    "a form": ({"Content-Type": "application/x-www-form-urlencoded"}, "instances=1"),
    "another media type": ({"Content-Type": "text/plain"}, instances("a")),
    "a compressed body": ({**JSON, "Content-Encoding": "gzip"}, instances("a")),
    "no JSON": (JSON, "instances=1"),
    "truncated JSON": (JSON, '{"instances": [{"text": "a"'),
    "bytes that are not UTF-8": (JSON, b'{"instances": [{"text": "\xff"}]}'),
    "null": (JSON, "null"),
    "a list": (JSON, "[]"),
    "deep brackets": (JSON, "[" * 100_000),
    "a repeated field": (JSON, '{"instances": [{"text": "a", "text": "b"}]}'),
    "a repeated field with an escape": (JSON, '{"instances": [{"text": "a", "te\\u0078t": "b"}]}'),
    "a repeated field with a space": (JSON, '{"top" :1, "top" :2, "instances": [{"text": "\\":"}]}'),
    "an unpaired surrogate": (JSON, '{"instances": [{"text": "\\ud800"}]}'),
    "a control character in a name": (JSON, '{"instances": [{"features": {"\\u0000": 1}}]}'),
    "NaN": (JSON, '{"instances": [{"features": {"a": NaN}}]}'),
    "a number that overflows": (JSON, '{"instances": [{"features": {"a": 1e999}}]}'),
    "a number of 5,000 digits": (JSON, '{"instances": [{"text": "a"}], "top": ' + "9" * 5000 + "}"),
    "an unknown field": (JSON, '{"instances": [{"text": "a"}], "tpo": 1}'),
    "an unknown field of an instance": (JSON, '{"instances": [{"txt": "a"}]}'),
    "no text": (JSON, instances(None)),
    "two kinds of text": (JSON, '{"instances": [{"text": "a", "raw_email": "b"}]}'),
    "no instances": (JSON, '{"instances": []}'),
    "too many instances": (JSON, instances(*["a"] * 1001)),
    "a text that is a number": (JSON, instances(5)),
    "top is true": (JSON, '{"instances": [{"text": "a"}], "top": true}'),
    "top is zero": (JSON, '{"instances": [{"text": "a"}], "top": 0}'),
    "features for a model of texts": (JSON, '{"instances": [{"features": {"a": 1}}]}'),
    "quick voting without support": (JSON, '{"instances": [{"text": "a"}], "top": 1, "quick": true}'),
    "an unknown version": (JSON, '{"instances": [{"text": "a"}], "version": 99}'),
    "an unknown alias": (JSON, '{"instances": [{"text": "a"}], "version": "other"}'),
    "many errors in a large body": (JSON, instances(*[1] * 900, "x" * 70_000)),
    "a body that is too large": (JSON, instances("x" * 9_000_000)),
    "a wrong key": ({**JSON, "Authorization": "Bearer cov_wrong"}, instances("a")),
    "no key": ({**JSON, "Authorization": "Basic cov_wrong"}, "not even JSON"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_request_gets_the_same_problem_from_both_routes(case: str, on_both: Any) -> None:
    headers, body = BAD[case]
    direct, fastapi = on_both(content=body, headers=headers)
    assert direct.status_code >= 400
    problem = problem_of(direct, direct.status_code, direct.json()["code"])
    expected = problem_of(fastapi, fastapi.status_code, fastapi.json()["code"])
    assert {**problem, "request_id": ""} == {**expected, "request_id": ""}
    assert headers_of(direct) == headers_of(fastapi)


def headers_of(response: httpx.Response) -> dict[str, str]:
    varying = {"x-request-id", "content-length"}
    return {name: value for name, value in response.headers.items() if name not in varying}


def test_a_key_without_the_scope_is_rejected_by_both_routes(client: InProcessApi, on_both: Any) -> None:
    key = keys.create(client.ctx.db, ApiKeyCreate(name="reader", scopes=["read"]))
    for response in on_both(json=GOOD, headers={"Authorization": f"Bearer {key.secret}"}):
        problem_of(response, 403, "forbidden")


@pytest.mark.parametrize(
    "options", [{}, {"explain": True}, {"top": 1}, {"top": None}, {"version": 1}], ids=str
)
def test_a_prediction_is_the_same_from_both_routes(options: dict[str, Any], on_both: Any) -> None:
    texts = [{"text": 'an "invoice"'}, {"text": "the network is down"}]
    direct, fastapi = on_both(json={"instances": texts, **options})
    assert direct.status_code == fastapi.status_code == 200, direct.text
    assert direct.content == fastapi.content
    assert headers_of(direct) == headers_of(fastapi)
    response = PredictResponse.model_validate_json(direct.content, strict=True)
    assert len(response.predictions) == 2


@pytest.mark.parametrize(
    "instance", [{}, {"text": None}, {"text": None, "features": None}, {"features": None}]
)
def test_an_instance_without_a_document_is_rejected_at_its_place(
    client: InProcessApi, instance: dict[str, Any]
) -> None:
    response = client.send("POST", PREDICT, json={"instances": [{"text": "a"}, instance]})
    (error,) = problem_of(response, 422, "invalid_request")["errors"]
    assert error["pointer"] == "/instances/1"
    assert "set exactly one of text, features, email and raw_email" in error["message"]


def test_null_is_the_same_as_an_omitted_document(client: InProcessApi) -> None:
    with_null = {"instances": [{"text": "my invoice", "features": None, "email": None, "raw_email": None}]}
    without = {"instances": [{"text": "my invoice"}]}
    assert client.call("POST", PREDICT, 200, json=with_null) == client.call(
        "POST", PREDICT, 200, json=without
    )


def test_a_body_can_arrive_in_chunks(client: InProcessApi) -> None:
    body = json.dumps(GOOD).encode()

    async def chunks() -> AsyncIterator[bytes]:
        for i in range(0, len(body), 7):
            yield body[i : i + 7]

    whole = client.send("POST", PREDICT, content=body, headers=JSON)
    response = client.send("POST", PREDICT, content=chunks(), headers=JSON)
    assert response.status_code == 200, response.text
    assert response.json() == whole.json()


def test_a_chunked_body_is_limited_too(client: InProcessApi) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 1_000_000

    problem_of(client.send("POST", PREDICT, content=chunks(), headers=JSON), 413, "too_large")


def test_other_methods_are_not_allowed(client: InProcessApi) -> None:
    for method in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS"):
        response = client.send(method, PREDICT)
        problem_of(response, 405, "method_not_allowed")
        assert response.headers["Allow"] == "POST"
    assert client.send("HEAD", PREDICT).status_code == 405


def test_a_name_can_be_percent_encoded(client: InProcessApi) -> None:
    assert client.call("POST", "/v1/models/%6D/predict", 200, json=GOOD)["model"] == "m"


@pytest.mark.parametrize("name", ["-m", "m" * 65, "m.1", "%C3%A9", "m%0A"])
def test_an_invalid_name_is_rejected_with_its_place(client: InProcessApi, name: str) -> None:
    response = client.send("POST", f"/v1/models/{name}/predict", json=GOOD)
    problem_of(response, 422, "invalid_request", "/path/name")


def test_a_request_with_a_query_is_served(client: InProcessApi) -> None:
    assert client.send("POST", f"{PREDICT}?", json=GOOD).status_code == 200


@pytest.mark.parametrize("query", ["", "?explain=true", "?explain=false", "?explain=yes", "?explain=perhaps"])
def test_a_message_gets_the_same_response_from_both_routes(
    client: InProcessApi, by_fastapi: Callable[[], None], query: str
) -> None:
    router = {"model": "m", "version": "live", "fallback": "desk@example.org", "review_sample": 0}
    client.send("PUT", "/v1/routers/r", json=router).raise_for_status()

    def send(n: int) -> httpx.Response:
        message = f"Message-ID: <{n}{query}@example.org>\r\n\r\nmy invoice is wrong\r\n"
        headers = {"Content-Type": "message/rfc822"}
        return client.send("POST", f"/v1/routers/r/messages{query}", content=message, headers=headers)

    direct = send(1)
    by_fastapi()
    fastapi = send(2)
    assert direct.status_code == fastapi.status_code == (422 if query.endswith("perhaps") else 200)
    decision, expected = direct.json(), fastapi.json()
    for varying in ("decision_id", "message", "request_id"):
        decision.pop(varying, None)
        expected.pop(varying, None)
    assert decision == expected
    assert ("explanation" in decision) == (query in {"?explain=true", "?explain=yes"})


@pytest.mark.parametrize("query", ["", "?explain=true", "?explain=yes"])
def test_parts_of_a_message_get_the_same_response_from_both_routes(
    client: InProcessApi, by_fastapi: Callable[[], None], query: str
) -> None:
    router = {"model": "m", "version": "live", "fallback": "desk@example.org"}
    client.send("PUT", "/v1/routers/r", json=router).raise_for_status()

    def send(**body: Any) -> httpx.Response:
        return client.send("POST", f"/v1/routers/r/message-parts{query}", **body)

    bodies = (
        {"json": {"email": {"subject": query, "text": "my invoice is wrong"}}},
        {"json": {"email": {"txt": "my invoice is wrong"}}},
        {"json": {"raw_email": "?"}},
        {"content": b"{", "headers": {"Content-Type": "application/json"}},
        {"content": b"Subject: x", "headers": {"Content-Type": "message/rfc822"}},
    )
    direct = [send(**body) for body in bodies]
    by_fastapi()
    fastapi = [send(**body) for body in bodies]
    assert [response.status_code for response in direct] == [200, 422, 422, 400, 415]
    for one, other in zip(direct, fastapi, strict=True):
        first, second = one.json(), other.json()
        first.pop("request_id", None)
        second.pop("request_id", None)
        assert first == second


def test_json_is_refused_where_raw_messages_are_expected(client: InProcessApi) -> None:
    response = client.send("POST", "/v1/routers/r/messages", json={"email": {"text": "my invoice"}})
    assert response.status_code == 415
    assert "JSON to the operation message-parts" in response.json()["detail"]


def test_an_internationalized_message_is_routed(client: InProcessApi) -> None:
    router = {"model": "m", "version": "live", "fallback": "desk@example.org"}
    client.send("PUT", "/v1/routers/r", json=router).raise_for_status()
    message = "Subject: Größe\r\n\r\nmy invoice is wrong\r\n".encode()
    for kind in ("message/global", "message/rfc822"):
        response = client.send(
            "POST", "/v1/routers/r/messages", content=message, headers={"Content-Type": kind}
        )
        assert response.status_code == 200
        assert response.json()["message"]["subject"] == "Größe"


def test_requests_of_both_routes_have_the_same_operation_in_metrics(
    client: InProcessApi, by_fastapi: Callable[[], None]
) -> None:
    def count() -> float:
        text = client.send("GET", "/metrics").text
        name = 'covey_requests_total{operation="models_predict",status="200"} '
        return sum(float(line.removeprefix(name)) for line in text.splitlines() if line.startswith(name))

    client.call("POST", PREDICT, 200, json=GOOD)
    before = count()
    client.call("POST", PREDICT, 200, json=GOOD)
    assert count() == before + 1
    by_fastapi()
    client.call("POST", PREDICT, 200, json=GOOD)
    assert count() == before + 2


def test_an_unexpected_error_is_reported_as_an_internal_error(
    client: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: Any) -> bytes:
        raise ZeroDivisionError("text of a message")

    monkeypatch.setattr(prediction, "_predict", fail)
    response = client.send("POST", PREDICT, json=GOOD)
    assert response.status_code == 500
    assert response.json()["code"] == "internal_error"
    assert "text of a message" not in response.text


def test_a_client_that_disconnects_is_no_error(
    client: InProcessApi, capfd: pytest.CaptureFixture[str]
) -> None:
    """The protocol announces a closed connection instead of the rest of the body."""

    async def post() -> list[Any]:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = {
            "host": "localhost",
            "content-type": "application/json",
            "authorization": client.authorization,
        }
        scope = {
            "type": "http",
            "method": "POST",
            "path": PREDICT,
            "raw_path": PREDICT.encode(),
            "query_string": b"",
            "http_version": "1.1",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        await client.app(scope, receive, send)
        return sent

    assert client.run(post)[0]["status"] == 400
    assert "internal_error" not in capfd.readouterr().err


def test_a_draining_process_closes_the_connection(client: InProcessApi) -> None:
    assert "Connection" not in client.send("POST", PREDICT, json=GOOD).headers
    client.app.state.draining = True
    try:
        assert client.send("POST", PREDICT, json=GOOD).headers["Connection"] == "close"
    finally:
        client.app.state.draining = False


def test_large_requests_do_not_delay_a_small_one(
    client: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Semaphore(0)
    release = threading.Event()
    rank = Pipeline.rank

    def rank_or_wait(self: Pipeline, documents: Any, **options: Any) -> Any:
        if len(documents) > 1:
            held.release()
            assert release.wait(LIMIT_SECONDS)
        return rank(self, documents, **options)

    monkeypatch.setattr(Pipeline, "rank", rank_or_wait)
    monkeypatch.setattr(
        latency_estimate.CostEstimate, "is_small", lambda _self, n_instances, _n_bytes: n_instances == 1
    )
    large = {"instances": [{"text": "my invoice is wrong"}] * 50}
    waiting = [client.start("POST", PREDICT, json=large) for _ in range(PREDICTIONS.size + 50)]
    for _ in range(PREDICTIONS.size):
        assert held.acquire(timeout=LIMIT_SECONDS)

    small = client.call("POST", PREDICT, 200, json=GOOD)
    unrelated = client.call("GET", "/v1/models", 200)

    assert not any(future.done() for future in waiting)
    release.set()
    assert small["predictions"]
    assert unrelated["items"]
    assert {future.result(LIMIT_SECONDS).status_code for future in waiting} == {200}


def test_a_prediction_that_takes_long_leaves_the_event_loop(
    client: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    predict = prediction._predict

    def note_thread(*arguments: Any) -> bytes:
        threads.append(threading.current_thread())
        return predict(*arguments)

    monkeypatch.setattr(prediction, "_predict", note_thread)
    for seconds in (0.0, LIMIT_SECONDS):
        monkeypatch.setattr(latency_estimate, "LOOP_SECONDS", seconds)
        client.call("POST", PREDICT, 200, json=GOOD)

    async def loop_thread() -> threading.Thread:
        await asyncio.sleep(0)
        return threading.current_thread()

    first, second = threads
    assert first is not second is client.run(loop_thread)


@pytest.mark.parametrize(("forwarded", "scheme"), [({}, "http"), ({"X-Forwarded-Proto": "https"}, "https")])
def test_a_redirect_keeps_the_scheme_that_a_proxy_on_this_machine_names(
    client: InProcessApi, forwarded: dict[str, str], scheme: str
) -> None:
    response = client.send("GET", "/v1/models/", headers=forwarded)
    assert response.status_code == 307
    assert response.headers["location"].startswith(f"{scheme}://")
    assert response.headers["location"].endswith("/v1/models")
