"""A service without API keys refuses what a foreign web page can send to it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from commands import covey
from contract import DOCUMENT, problem_of
from stack import Stack
from waiting import wait_for

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("stack")]


def operations() -> list[Any]:
    return [
        pytest.param(
            method.upper(),
            path.replace("{version}", "1").replace("{", "").replace("}", ""),
            frozenset(operation.get("requestBody", {}).get("content", ())),
            id=operation["operationId"],
        )
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
    ]


def send_raw(url: str, request: bytes) -> bytes:
    """Send bytes as a browser does, and return the whole response. The request must close the connection."""
    address = urlsplit(url)
    assert address.port is not None
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_dns_rebinding_cannot_create_an_admin_key(stack: Stack) -> None:
    """The page's own name resolves to 127.0.0.1, so its script may send and read everything."""
    host = f"rebind.attacker.example:{urlsplit(stack.url).port}"
    body = b'{"name": "mine", "scopes": ["admin"]}'
    head = (
        f"POST /v1/api-keys HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nReferer: http://{host}/\r\n"
        "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    response = send_raw(stack.url, head.encode() + body)
    assert response.startswith(b"HTTP/1.1 403"), response
    assert b'"untrusted_host"' in response
    assert stack.call("GET", "/v1/api-keys", 200)["items"] == []


@pytest.mark.parametrize(("method", "path", "_content"), operations())
def test_every_operation_refuses_foreign_hosts_and_origins(
    stack: Stack, method: str, path: str, _content: frozenset[str]
) -> None:
    for headers, code in (
        ({"Host": "attacker.example"}, "untrusted_host"),
        ({"Host": "127.0.0.1.attacker.example:80"}, "untrusted_host"),
        ({"Host": ""}, "untrusted_host"),
        ({"Origin": "https://attacker.example"}, "foreign_origin"),
        ({"Origin": "null"}, "foreign_origin"),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, "foreign_origin"),
        ({"Sec-Fetch-Site": "same-site"}, "foreign_origin"),
    ):
        problem_of(stack.http.request(method, path, headers=headers), 403, code)


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/nowhere", "/docs/parts/swagger-ui.css"])
def test_other_paths_refuse_foreign_hosts(stack: Stack, path: str) -> None:
    assert stack.http.get(path, headers={"Host": "attacker.example"}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Host": "localhost:1"}, id="localhost"),
        pytest.param({"Host": "LOCALHOST"}, id="capital letters"),
        pytest.param({"Host": "127.1.2.3"}, id="another loopback address"),
        pytest.param({"Host": "[::1]:8000"}, id="IPv6"),
        pytest.param({"Origin": "http://localhost:8000", "Sec-Fetch-Site": "same-origin"}, id="own page"),
        pytest.param({"Sec-Fetch-Site": "none"}, id="address bar"),
        pytest.param(
            {
                "Sec-Fetch-Site": "cross-site",
                "Sec-Fetch-Mode": "navigate",
                "Sec-Fetch-Dest": "document",
            },
            id="a link of another page",
        ),
    ],
)
def test_own_requests_are_accepted(stack: Stack, headers: dict[str, str]) -> None:
    assert stack.http.get("/v1/models", headers=headers).status_code == 200


def test_a_page_cannot_submit_a_form_by_navigation(stack: Stack) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    response = stack.http.post("/v1/training-jobs/job_x/cancel", headers=headers)
    problem_of(response, 403, "foreign_origin")


@pytest.mark.parametrize(
    "hosts",
    [pytest.param(b"", id="no host"), pytest.param(b"Host: 127.0.0.1\r\nHost: evil\r\n", id="two hosts")],
)
def test_a_request_names_exactly_one_host(stack: Stack, hosts: bytes) -> None:
    response = send_raw(stack.url, b"GET /v1/models HTTP/1.1\r\n" + hosts + b"Connection: close\r\n\r\n")
    assert response.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in response


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, httpx.Headers]]:
    """A service with a key, trusted names and trusted origins, and the headers with its key."""
    settings = {
        "COVEY_ALLOWED_HOSTS": "covey.test, Other.test",
        "COVEY_CORS_ORIGINS": "https://console.test",
        "COVEY_WORKER_CONCURRENCY": "1",
    }
    stack = Stack(tmp_path_factory.mktemp("keyed") / "data", settings).start()
    for headers in (
        {"Host": "covey.test:8000"},
        {"Host": "other.test"},
        {"Origin": "https://console.test", "Sec-Fetch-Site": "cross-site"},
    ):
        assert stack.http.get("/v1/models", headers=headers).status_code == 200
    problem_of(
        stack.http.get("/v1/models", headers={"Origin": "https://console.test.evil"}), 403, "foreign_origin"
    )
    created = covey("keys", "create", "--name", "first", "--scope", "admin", "--data", str(stack.data))
    # Another process sees the new key when it looks for changes.
    wait_for(lambda: stack.http.get("/v1/models").status_code == 401, what="the first key")
    yield stack, httpx.Headers({"Authorization": f"Bearer {created.stdout.strip()}"})
    stack.stop()


def test_with_keys_every_host_is_accepted(keyed: tuple[Stack, httpx.Headers]) -> None:
    stack, headers = keyed
    foreign = {"Host": "public.example", "Origin": "https://public.example", "Sec-Fetch-Site": "cross-site"}
    assert stack.http.get("/v1/models", headers={**foreign, **headers}).status_code == 200
    assert stack.http.get("/health/live", headers=foreign).status_code == 200
    problem_of(stack.http.get("/v1/models", headers=foreign), 401, "unauthorized")


SIMPLE = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "a/b", None)
"""Content types that a page can send without the consent of the service, an unknown one, and none."""


@pytest.mark.parametrize(("method", "path", "content"), [p for p in operations() if p.values[0] != "GET"])
def test_every_operation_requires_its_documented_content_types(
    stack: Stack,
    keyed: tuple[Stack, httpx.Headers],
    method: str,
    path: str,
    content: frozenset[str],
) -> None:
    for service, headers in ((stack, httpx.Headers()), keyed):
        for kind in SIMPLE:
            sent = {**headers, **({} if kind is None else {"Content-Type": kind})}
            response = service.http.request(method, path, content=b"{}", headers=sent)
            problem_of(response, 415, "unsupported_media_type")
        for kind in content:
            response = service.http.request(
                method, path, content=b"{}", headers={**headers, "Content-Type": kind}
            )
            assert response.status_code not in {415, 500}, (kind, response.text)


def test_the_content_type_is_checked_after_the_key(keyed: tuple[Stack, httpx.Headers]) -> None:
    problem_of(keyed[0].http.post("/v1/datasets", content=b"{}"), 401, "unauthorized")


def test_the_last_admin_key_cannot_be_deleted_over_http(keyed: tuple[Stack, httpx.Headers]) -> None:
    stack, headers = keyed
    (key,) = stack.call("GET", "/v1/api-keys", 200, headers=headers)["items"]
    response = stack.http.delete(f"/v1/api-keys/{key['id']}", headers=headers)
    problem_of(response, 409, "last_admin_key")
    assert stack.http.get("/v1/models").status_code == 401


def test_a_service_without_valid_keys_is_reopened_by_a_command_only(tmp_path: Path) -> None:
    data = tmp_path / "data"
    stack = Stack(data).start()
    assert covey("keys", "create", "--name", "a", "--scope", "read", "--data", str(data)).returncode == 0
    stack.stop()
    stack = Stack(data).start()
    assert stack.http.get("/v1/models").status_code == 401
    assert covey("keys", "allow-anonymous", "--data", str(data)).returncode == 0
    stack.stop()
    stack = Stack(data).start()
    assert stack.http.get("/v1/models").status_code == 200
    stack.stop()
