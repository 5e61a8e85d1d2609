"""Checks problem documents of the service against its OpenAPI document."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx

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
