"""Direct routes check and report as all other routes do, although FastAPI does not handle their requests."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from contract import problem_of
from fastapi import HTTPException
from in_process_api import InProcessApi, api
from waiting import LIMIT_SECONDS

from app.api.middleware import SECURITY_HEADERS, BodyBudget, RequestMiddleware
from app.inbound.service_client import HEADER
from app.keys import service as keys
from app.keys.schemas import ApiKeyCreate
from app.registry import service as registry
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


def instances(*texts: Any) -> str:
    return json.dumps({"instances": [{"text": text} for text in texts]})


BAD: dict[str, tuple[tuple[dict[str, str], str | bytes], tuple[int, str, str | None]]] = {
    "no body": (({}, b""), (422, "invalid_request", "")),
    "an empty JSON body": ((JSON, b""), (422, "invalid_request", "")),
    "no media type": (({"Content-Type": ""}, instances("a")), (415, "unsupported_media_type", None)),
    "a form": (
        ({"Content-Type": "application/x-www-form-urlencoded"}, "instances=1"),
        (415, "unsupported_media_type", None),
    ),
    "another media type": (
        ({"Content-Type": "text/plain"}, instances("a")),
        (415, "unsupported_media_type", None),
    ),
    "a compressed body": (
        ({**JSON, "Content-Encoding": "gzip"}, instances("a")),
        (415, "unsupported_media_type", None),
    ),
    "no JSON": ((JSON, "instances=1"), (400, "malformed_request", "")),
    "truncated JSON": ((JSON, '{"instances": [{"text": "a"'), (400, "malformed_request", "")),
    "bytes that are not UTF-8": (
        (JSON, b'{"instances": [{"text": "\xff"}]}'),
        (400, "malformed_request", ""),
    ),
    "null": ((JSON, "null"), (422, "invalid_request", "")),
    "a list": ((JSON, "[]"), (422, "invalid_request", "")),
    "deep brackets": ((JSON, "[" * 100_000), (400, "malformed_request", "")),
    "a repeated field": (
        (JSON, '{"instances": [{"text": "a", "text": "b"}]}'),
        (422, "invalid_request", "/instances/0/text"),
    ),
    "a repeated field with an escape": (
        (JSON, '{"instances": [{"text": "a", "te\\u0078t": "b"}]}'),
        (422, "invalid_request", "/instances/0/text"),
    ),
    "a repeated field with a space": (
        (JSON, '{"top" :1, "top" :2, "instances": [{"text": "\\":"}]}'),
        (422, "invalid_request", "/top"),
    ),
    "an unpaired surrogate": (
        (JSON, '{"instances": [{"text": "\\ud800"}]}'),
        (422, "invalid_request", "/instances/0/text"),
    ),
    "a control character in a name": (
        (JSON, '{"instances": [{"features": {"\\u0000": 1}}]}'),
        (422, "invalid_request", "/instances/0/features/\u0000"),
    ),
    "NaN": (
        (JSON, '{"instances": [{"features": {"a": NaN}}]}'),
        (422, "invalid_request", "/instances/0/features/a"),
    ),
    "a number that overflows": (
        (JSON, '{"instances": [{"features": {"a": 1e999}}]}'),
        (422, "invalid_request", "/instances/0/features/a"),
    ),
    "a number of 5,000 digits": (
        (JSON, '{"instances": [{"text": "a"}], "top": ' + "9" * 5000 + "}"),
        (400, "malformed_request", ""),
    ),
    "an unknown field": (
        (JSON, '{"instances": [{"text": "a"}], "tpo": 1}'),
        (422, "invalid_request", "/tpo"),
    ),
    "an unknown field of an instance": (
        (JSON, '{"instances": [{"txt": "a"}]}'),
        (422, "invalid_request", "/instances/0/txt"),
    ),
    "no text": ((JSON, instances(None)), (422, "invalid_request", "/instances/0")),
    "two kinds of text": (
        (JSON, '{"instances": [{"text": "a", "raw_email": "b"}]}'),
        (422, "invalid_request", "/instances/0"),
    ),
    "no instances": ((JSON, '{"instances": []}'), (422, "invalid_request", "/instances")),
    "too many instances": ((JSON, instances(*["a"] * 1001)), (413, "too_large", "/instances")),
    "a text that is a number": ((JSON, instances(5)), (422, "invalid_request", "/instances/0/text")),
    "top is true": ((JSON, '{"instances": [{"text": "a"}], "top": true}'), (422, "invalid_request", "/top")),
    "top is zero": ((JSON, '{"instances": [{"text": "a"}], "top": 0}'), (422, "invalid_request", "/top")),
    "features for a model of texts": (
        (JSON, '{"instances": [{"features": {"a": 1}}]}'),
        (422, "invalid_request", "/instances/0/features"),
    ),
    "an unknown version": (
        (JSON, '{"instances": [{"text": "a"}], "version": 99}'),
        (404, "not_found", "/version"),
    ),
    "an unknown alias": (
        (JSON, '{"instances": [{"text": "a"}], "version": "other"}'),
        (404, "not_found", "/version"),
    ),
    "many errors in a large body": (
        (JSON, instances(*[1] * 900, "x" * 70_000)),
        (422, "invalid_request", "/instances/0/text"),
    ),
    "a body that is too large": ((JSON, instances("x" * 9_000_000)), (413, "too_large", None)),
    "a wrong key": (
        ({**JSON, "Authorization": "Bearer cov_wrong"}, instances("a")),
        (401, "unauthorized", None),
    ),
    "no key": (({**JSON, "Authorization": "Basic cov_wrong"}, "not even JSON"), (401, "unauthorized", None)),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_request_gets_a_problem_with_the_place_of_the_error(case: str, client: InProcessApi) -> None:
    (headers, body), (status, code, pointer) = BAD[case]
    response = client.send("POST", PREDICT, content=body, headers=headers)
    problem = problem_of(response, status, code)
    assert [error["pointer"] for error in problem.get("errors", ())][:1] == (
        [] if pointer is None else [pointer]
    )
    assert response.headers["Cache-Control"] == "no-store"


def test_a_key_without_the_scope_is_rejected(client: InProcessApi) -> None:
    key = keys.create(client.ctx.db, ApiKeyCreate(name="reader", scopes=["read"]))
    response = client.send("POST", PREDICT, json=GOOD, headers={"Authorization": f"Bearer {key.secret}"})
    problem_of(response, 403, "forbidden")


@pytest.mark.parametrize(
    "options", [{}, {"explain": True}, {"top": 1}, {"top": None}, {"version": 1}], ids=str
)
def test_a_prediction_has_the_documented_schema(client: InProcessApi, options: dict[str, Any]) -> None:
    texts = [{"text": 'an "invoice"'}, {"text": "the network is down"}]
    response = client.send("POST", PREDICT, json={"instances": texts, **options})
    assert response.status_code == 200, response.text
    parsed = PredictResponse.model_validate_json(response.content, strict=True)
    assert len(parsed.predictions) == 2


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


def request_middleware(client: InProcessApi) -> RequestMiddleware:
    layer: Any = client.app.middleware_stack
    while not isinstance(layer, RequestMiddleware):
        layer = layer.app
    return layer


def test_discarded_bytes_of_a_message_take_no_room(
    client: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = BodyBudget(300_000)
    monkeypatch.setattr(request_middleware(client), "_budget", budget)
    client.call("PUT", "/v1/routers/long", 200, json={"model": "m", "fallback": "a@example.org"})
    with monkeypatch.context() as patch:
        patch.setattr(type(client.ctx.settings), "max_message_bytes", 200_000, raising=False)
        patch.delitem(client.ctx.settings.__dict__, "max_message_bytes")

        async def content() -> AsyncIterator[bytes]:
            yield b"Subject: invoice\r\n\r\n"
            for _ in range(30):
                yield b"wrong invoice\r\n" * 3000

        decision = client.call(
            "POST",
            "/v1/routers/long/messages",
            200,
            content=content(),
            headers={"Content-Type": "message/rfc822"},
        )
    assert decision["message"]["truncated"] is True
    budget.reserve("nothing is left of it", 225_000)


def test_one_client_cannot_take_all_of_the_budget() -> None:
    budget = BodyBudget(1000, largest=100)
    budget.reserve("greedy", 750)
    with pytest.raises(HTTPException, match="for this client"):
        budget.reserve("greedy", 1)
    budget.reserve("other", 250)
    with pytest.raises(HTTPException, match="this process holds 1,000 bytes"):
        budget.reserve("third", 1)
    budget.release("greedy", 750)
    budget.reserve("third", 750)


def test_other_methods_are_not_allowed(client: InProcessApi) -> None:
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        response = client.send(method, PREDICT)
        problem_of(response, 405, "method_not_allowed")
        assert response.headers["Allow"] == "OPTIONS, POST"
    assert client.send("HEAD", PREDICT).status_code == 405


def test_a_name_can_be_percent_encoded(client: InProcessApi) -> None:
    assert client.call("POST", "/v1/models/%6D/predict", 200, json=GOOD)["model"] == "m"


@pytest.mark.parametrize("name", ["-m", "m" * 65, "m.1", "%C3%A9", "m%0A"])
def test_an_invalid_name_is_rejected_with_its_place(client: InProcessApi, name: str) -> None:
    response = client.send("POST", f"/v1/models/{name}/predict", json=GOOD)
    problem_of(response, 422, "invalid_request", "/path/name")


def test_a_request_with_a_query_is_served(client: InProcessApi) -> None:
    assert client.send("POST", f"{PREDICT}?", json=GOOD).status_code == 200


@pytest.mark.parametrize("action", ["messages", "message-parts"])
@pytest.mark.parametrize(
    ("query", "explained"),
    [("", False), ("?", False), ("?explain=true", True), ("?explain=yes", True), ("?explain=0", False)],
)
def test_the_query_of_a_message_decides_whether_it_is_explained(
    client: InProcessApi, action: str, query: str, explained: bool
) -> None:
    create_router(client)
    text = f"my invoice is wrong {action}{query}"
    options: dict[str, Any] = (
        {"content": f"\r\n{text}\r\n", "headers": {"Content-Type": "message/rfc822"}}
        if action == "messages"
        else {"json": {"email": {"text": text}}}
    )
    decision = client.call("POST", f"/v1/routers/r/{action}{query}", 200, **options)
    assert ("explanation" in decision) == explained


@pytest.mark.parametrize("action", ["messages", "message-parts"])
@pytest.mark.parametrize("query", ["explain=perhaps", "explain=", "explain=1&explain=1", "explain=%00"])
def test_an_invalid_query_is_rejected_with_its_place(client: InProcessApi, action: str, query: str) -> None:
    kind = "message/rfc822" if action == "messages" else "application/json"
    response = client.send(
        "POST", f"/v1/routers/r/{action}?{query}", content=b"{}", headers={"Content-Type": kind}
    )
    problem_of(response, 422, "invalid_request", "/query/explain")


@pytest.mark.parametrize("action", ["messages", "message-parts"])
@pytest.mark.parametrize(
    ("body", "status", "code", "pointer"),
    [
        ({"json": {"email": {"txt": "my invoice is wrong"}}}, 422, "invalid_request", "/email/txt"),
        ({"json": {"raw_email": "?"}}, 422, "invalid_request", "/raw_email"),
        ({"content": b"{", "headers": JSON}, 400, "malformed_request", ""),
        ({"content": b"", "headers": {"Content-Type": "text/xml"}}, 415, "unsupported_media_type", None),
    ],
)
def test_bad_parts_of_a_message_are_rejected_with_their_place(
    client: InProcessApi, action: str, body: dict[str, Any], status: int, code: str, pointer: str | None
) -> None:
    create_router(client)
    response = client.send("POST", f"/v1/routers/r/{action}", **body)
    problem_of(response, status, code, pointer)


def create_router(client: InProcessApi) -> None:
    router = {"model": "m", "version": "live", "fallback": "desk@example.org", "review_sample": 0}
    client.send("PUT", "/v1/routers/r", json=router).raise_for_status()


def test_the_parts_of_a_message_are_the_same_message_wherever_they_are_sent(client: InProcessApi) -> None:
    create_router(client)
    for body in (
        {"email": {"subject": "Invoice", "text": "my invoice is wrong again"}},
        {"raw_email": base64.b64encode(b"Message-ID: <parts@x>\n\nmy invoice is wrong").decode()},
    ):
        first = client.call("POST", "/v1/routers/r/messages?explain=true", 200, json=body)
        assert {"billing"} == {item["label"] for item in first["explanation"]}
        second = client.call("POST", "/v1/routers/r/message-parts", 200, json=body)
        assert second["decision_id"] == first["decision_id"]


def test_a_message_as_json_has_the_limit_of_json(client: InProcessApi) -> None:
    create_router(client)
    limit = client.ctx.settings.max_body_bytes
    assert limit < client.ctx.settings.max_message_bytes
    body = {"email": {"text": "x" * limit}}
    for action in ("messages", "message-parts"):
        problem_of(client.send("POST", f"/v1/routers/r/{action}", json=body), 413, "too_large")


def test_other_media_types_of_messages_are_refused_with_those_that_are_accepted(client: InProcessApi) -> None:
    body: dict[str, Any] = {"content": b"late", "headers": {"Content-Type": "text/plain"}}
    response = client.send("POST", "/v1/routers/r/messages", **body)
    detail = problem_of(response, 415, "unsupported_media_type")["detail"]
    assert "application/json" in detail
    assert "message/rfc822" in detail


NO_MESSAGES = {
    "an object": (b'{"subject":"parcel","text":"my parcel is late"}', "Content-Type: application/json"),
    "an object on several lines": (
        b'\n {\n"subject": "parcel",\n"text": "my parcel is late"\n}\n',
        "Content-Type: application/json",
    ),
    "no valid object": (b"{subject: 'parcel'}", "Content-Type: application/json"),
    "an object after a byte order mark": (b'\xef\xbb\xbf{"email": {}}', "Content-Type: application/json"),
    "a list": (b'[{"text": "my parcel is late"}]', "Content-Type: application/json"),
    "a string": (b'"Subject: parcel\\n\\nmy parcel is late"', "Content-Type: application/json"),
    "pairs": (b"subject=my+parcel&text=it+is+late&empty=", "a form"),
    "a pair": (b"text=my%20parcel%3A+late", "a form"),
    "a multipart": (b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nlate\r\n--b--\r\n', "a form"),
    "a part with a type": (
        b"--b\r\nContent-Type: text/plain\r\ncontent-disposition: form-data; name=a\r\n\r\nlate\r\n--b--\r\n",
        "a form",
    ),
    "a document": (b"%PDF-1.7\nlate\n", "a PDF document; send the e-mail that contains it"),
    "an Outlook file": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1late", "Outlook file (.xls, .doc, .msg); send"),
    "nothing": (b"", "neither a header field nor a text"),
    "blank lines": (b"\r\n \r\n", "neither a header field nor a text"),
    "no text": (b"<p></p>", "neither a header field nor a text"),
}


@pytest.mark.parametrize(("body", "detail"), NO_MESSAGES.values(), ids=NO_MESSAGES)
def test_what_is_not_a_message_is_refused_however_it_is_labelled(
    client: InProcessApi, body: bytes, detail: str
) -> None:
    create_router(client)
    for kind in ("application/octet-stream", "message/rfc822"):
        options: dict[str, Any] = {"content": body, "headers": {"Content-Type": kind}}
        problem = problem_of(
            client.send("POST", "/v1/routers/r/messages", **options), 400, "not_a_message", ""
        )
        assert detail in problem["detail"]
    # A program of a mail server sends it again with a header: its mail is never refused.
    options["content"] = HEADER + body
    client.call("POST", "/v1/routers/r/messages", 200, **options)


@pytest.mark.parametrize(
    "body",
    [
        b"my invoice is wrong",
        b"[4711] my invoice is wrong",
        b"From ann Mon Nov 30 10:00:00 2026\nSubject: my invoice\n\n",
        b"Hello\n{invoice=wrong}",
        b"--\nSubject: my invoice\n\n",
        b"a=b\nSubject: my invoice\n\n",
    ],
)
def test_mail_with_a_broken_header_is_routed(client: InProcessApi, body: bytes) -> None:
    create_router(client)
    options: dict[str, Any] = {"content": body, "headers": {"Content-Type": "message/rfc822"}}
    first, second = (client.call("POST", "/v1/routers/r/messages", 200, **options) for _ in range(2))
    assert first["disposition"] == "routed"
    assert first["decision_id"] == second["decision_id"]


@pytest.mark.parametrize(
    ("action", "options"),
    [
        (
            "messages",
            {"content": b"From: ann@example.org\n\n \n", "headers": {"Content-Type": "message/rfc822"}},
        ),
        ("messages", {"content": HEADER, "headers": {"Content-Type": "message/rfc822"}}),
        ("message-parts", {"json": {"email": {"from": "ann@example.org", "text": " "}}}),
    ],
)
def test_messages_without_message_id_and_content_share_no_decision(
    client: InProcessApi, action: str, options: dict[str, Any]
) -> None:
    create_router(client)
    first, second = (client.call("POST", f"/v1/routers/r/{action}", 200, **options) for _ in range(2))
    assert first["decision_id"] != second["decision_id"]
    assert (first["disposition"], second["disposition"]) == ("fallback", "fallback")


def test_an_internationalized_message_is_routed(client: InProcessApi) -> None:
    create_router(client)
    message = "Subject: Größe\r\n\r\nmy invoice is wrong\r\n".encode()
    for kind in ("message/global", "message/rfc822"):
        response = client.send(
            "POST", "/v1/routers/r/messages", content=message, headers={"Content-Type": kind}
        )
        assert response.status_code == 200
        assert response.json()["message"]["subject"] == "Größe"


def n_requests(client: InProcessApi, operation: str, status: int) -> float:
    """Return how many requests of an operation had a status."""
    text = client.send("GET", "/metrics").text
    name = f'covey_requests_total{{operation="{operation}",status="{status}"}} '
    return sum(float(line.removeprefix(name)) for line in text.splitlines() if line.startswith(name))


def test_a_request_is_counted_under_its_operation(client: InProcessApi) -> None:
    def counts() -> list[float]:
        return [n_requests(client, "models_predict", status) for status in (200, 400)]

    before = counts()
    client.call("POST", PREDICT, 200, json=GOOD)
    client.call("POST", PREDICT, 400, content="{", headers=JSON)
    assert counts() == [count + 1 for count in before]


def test_a_prediction_does_not_look_for_changes_before_the_next_one(
    client: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only responses that can show a change make the next request look for it, which takes SQL."""
    expired: list[None] = []
    monkeypatch.setattr(client.app.state.catalog, "expire", lambda: expired.append(None))
    client.call("POST", PREDICT, 200, json=GOOD)
    assert not expired
    client.call("GET", "/v1/models", 200)
    assert expired


@pytest.mark.parametrize("is_direct", [True, False])
def test_an_unexpected_error_is_reported_and_counted_as_an_internal_error(
    client: InProcessApi, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_direct: bool
) -> None:
    def fail(*_arguments: Any) -> Any:
        raise ZeroDivisionError("text of a message")

    monkeypatch.setattr(prediction, "_predict", fail)
    monkeypatch.setattr(registry, "get_model", fail)
    operation = "models_predict" if is_direct else "models_get"
    before = n_requests(client, operation, 500)
    method, path = ("POST", PREDICT) if is_direct else ("GET", "/v1/models/m")
    response = client.send(method, path, json=GOOD, headers={"X-Request-ID": "ticket-1"})
    assert response.status_code == 500
    assert (response.json()["code"], response.json()["request_id"]) == ("internal_error", "ticket-1")
    assert "text of a message" not in response.text
    assert response.headers["X-Request-ID"] == "ticket-1"
    assert {name: response.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS
    lines: list[Any] = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    (line,) = [line for line in lines if line["event"] == "request.internal_error"]
    assert line["request_id"] == "ticket-1"
    assert n_requests(client, operation, 500) == before + 1


def test_an_error_after_the_beginning_of_a_response_counts_as_an_internal_error(
    client: InProcessApi, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def begin_and_fail(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    before = n_requests(client, "none", 500)
    with monkeypatch.context() as patch:
        patch.setattr(request_middleware(client), "_app", begin_and_fail)
        client.send("GET", "/v1/models", headers={"X-Request-ID": "ticket-2"})
    lines: list[Any] = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    (line,) = [line for line in lines if line["event"] == "request.internal_error"]
    assert line["request_id"] == "ticket-2"
    assert n_requests(client, "none", 500) == before + 1


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
