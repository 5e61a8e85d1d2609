"""A service without API keys refuses what a foreign web page can send to it."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest
from contract import operations, problem_of, requires_documented_content_types
from stack import Stack

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("stack")]


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


@pytest.mark.parametrize(("method", "path", "content"), [p for p in operations() if p.values[0] != "GET"])
def test_every_operation_requires_its_documented_content_types(
    stack: Stack, method: str, path: str, content: frozenset[str]
) -> None:
    requires_documented_content_types(stack.http.request, method, path, content)
