"""``HEAD`` where there is ``GET``, ``OPTIONS`` for every path, and errors that web pages can read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import in_process_api
import pytest
from in_process_api import InProcessApi

from app.datasets import service as datasets

ORIGIN = "https://console.test"
VARYING = {"x-request-id", "date"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    """A service that web pages of one origin can call."""
    with (
        pytest.MonkeyPatch.context() as patch,
        in_process_api.api(
            tmp_path_factory.mktemp("head"), migrated_sqlite, patch, cors_origins=ORIGIN
        ) as service,
    ):
        service.train(service.dataset())
        yield service


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/",
            "/health/live",
            "/v2/health/live",
            "/console",
            "/console/models",
            "/console/static/console.css",
        ),
        *("/v1/datasets", "/v1/models/m", "/v1/models/m/versions/1/artifact", "/v1/models/nope", "/v1/nope"),
        *("/openapi.json", "/docs", "/console/nope", "/v1/datasets?limit=0"),
    ],
)
def test_head_has_the_status_and_the_headers_of_get(api: InProcessApi, path: str) -> None:
    get, head = (api.send(method, path) for method in ("GET", "HEAD"))
    assert head.content == b""
    assert head.status_code == get.status_code
    for response in (get, head):
        for name in VARYING:
            response.headers.pop(name, None)
    if get.status_code < 400:  # a problem has the id of the request
        assert head.headers == get.headers
    assert head.headers.keys() == get.headers.keys()


def test_head_of_a_stream_ends(api: InProcessApi) -> None:
    body = {"dataset_id": api.call("GET", "/v1/datasets", 200)["items"][0]["id"], "model": "later"}
    job = api.call("POST", "/v1/training-jobs", 202, json={**body, "learner": {"algorithm": "naive_bayes"}})
    headers = {"Accept": "text/event-stream"}
    for _ in range(3):
        response = api.send("HEAD", f"/v1/training-jobs/{job['id']}/events", headers=headers)
        assert response.headers["Content-Type"].startswith("text/event-stream")
    assert not api.app.state.event_streams._open, "each stream has released its place"
    api.call("POST", f"/v1/training-jobs/{job['id']}/cancel", 202)


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/v1/datasets", "GET, HEAD, OPTIONS, POST"),
        ("/v1/models/m/predict", "OPTIONS, POST"),
        ("/console/static/console.css", "GET, HEAD, OPTIONS"),
        ("*", "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"),
    ],
)
def test_options_returns_the_methods(api: InProcessApi, path: str, methods: str) -> None:
    if path == "*":  # no client of the tests can send it
        sent: list[Any] = []

        async def send(message: Any) -> None:
            await asyncio.sleep(0)
            sent.append(message)

        scope: dict[str, Any] = {"type": "http", "http_version": "1.1", "method": "OPTIONS", "path": "*"}
        scope |= {"query_string": b"", "headers": [(b"host", b"127.0.0.1")]}
        api.run(lambda: api.app(scope, None, send))  # type: ignore[arg-type]
        start = sent[0]
        assert (start["status"], dict(start["headers"])[b"allow"].decode()) == (204, methods)
        return
    for headers in ({"Authorization": ""}, {"Origin": ORIGIN}):
        response = api.send("OPTIONS", path, headers=headers)
        assert (response.status_code, response.headers["Allow"], response.content) == (204, methods, b"")


def test_options_of_an_unknown_path_is_404(api: InProcessApi) -> None:
    assert api.send("OPTIONS", "/v1/nope").status_code == 404


def test_web_pages_can_read_every_error(api: InProcessApi, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(datasets, "page", fail)
    too_long = {"Content-Type": "application/json", "Content-Length": str(10**12)}
    for method, path, headers, status in (
        ("GET", "/v1/datasets", {}, 500),
        ("POST", "/v1/datasets", too_long, 413),
        ("GET", "/v1/models", {"X-Large": "x" * 40_000}, 431),
        ("GET", "/v1/models/nope", {}, 404),
    ):
        response = api.send(method, path, headers={"Origin": ORIGIN, **headers})
        assert response.status_code == status
        assert response.headers["Access-Control-Allow-Origin"] == ORIGIN
        assert response.headers["X-Request-ID"]
