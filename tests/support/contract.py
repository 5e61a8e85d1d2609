"""Checks problem documents of the service against its OpenAPI document."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import pytest

DOCUMENT: dict[str, Any] = json.loads((Path(__file__).parents[2] / "openapi.json").read_text())


@lru_cache(maxsize=1)
def _paths() -> list[tuple[re.Pattern[str], dict[str, Any]]]:
    return [
        (re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), operations)
        for path, operations in DOCUMENT["paths"].items()
    ]


def operation(method: str, path: str) -> dict[str, Any] | None:
    """Return the operation of a request, or None if the document does not describe it."""
    for pattern, operations in _paths():
        if pattern.fullmatch(path):
            found: dict[str, Any] | None = operations.get(method.lower())
            return found
    return None


def operations() -> list[Any]:
    """Return method, path and content types of every operation, as parameters of a test."""
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


SIMPLE = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "a/b", None)
"""Content types that a page can send without the consent of the service, an unknown one, and none."""


def requires_documented_content_types(
    send: Callable[..., httpx.Response], method: str, path: str, content: frozenset[str]
) -> None:
    """Check that an operation accepts the content types of the document, and refuses those of web pages.

    Args:
        send: sends a request, like ``httpx.Client.request``.
        method: method of the operation.
        path: its path.
        content: the content types of the document.
    """
    for kind in SIMPLE:
        headers = {} if kind is None else {"Content-Type": kind}
        problem_of(send(method, path, content=b"{}", headers=headers), 415, "unsupported_media_type")
    for kind in content:
        response = send(method, path, content=b"{}", headers={"Content-Type": kind})
        assert response.status_code not in {415, 500}, (kind, response.text)


def problem_of(
    response: httpx.Response, status: int, code: str, pointer: str | None = None
) -> dict[str, Any]:
    """Check every field of a problem response, and return its problem document."""
    description = (
        f"{response.request.method} {response.request.url}: {response.status_code} {response.text[:1000]}"
    )
    assert response.status_code == status, description
    assert response.headers["Content-Type"] == "application/problem+json", description
    problem: dict[str, Any] = response.json()
    assert problem["code"] == code, description
    assert problem["status"] == status, description
    assert problem["type"] == f"urn:covey:problem:{code}", description
    assert problem["title"], description
    assert problem["detail"], description
    assert problem["request_id"] == response.headers["X-Request-ID"], description
    assert "Traceback" not in response.text, description
    if pointer is not None:
        assert pointer in [error["pointer"] for error in problem["errors"]], description
    known = operation(response.request.method, response.request.url.path)
    if known is not None:
        assert str(status) in known["responses"], f"{status} is not documented: {description}"
    return problem
