"""Answers of the service held to its OpenAPI document."""

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
    """The operation of a request, None where the document knows none."""
    for pattern, operations in _paths():
        if pattern.fullmatch(path):
            found: dict[str, Any] | None = operations.get(method.lower())
            return found
    return None


def problem_of(answer: httpx.Response, status: int, code: str, pointer: str | None = None) -> dict[str, Any]:
    """The problem document that an answer is, checked in every respect."""
    told = f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text[:1000]}"
    assert answer.status_code == status, told
    assert answer.headers["Content-Type"] == "application/problem+json", told
    problem: dict[str, Any] = answer.json()
    assert problem["code"] == code, told
    assert problem["status"] == status, told
    assert problem["type"] == f"urn:covey:problem:{code}", told
    assert problem["title"], told
    assert problem["detail"], told
    assert problem["request_id"] == answer.headers["X-Request-ID"], told
    assert "Traceback" not in answer.text, told
    if pointer is not None:
        assert pointer in [error["pointer"] for error in problem["errors"]], told
    known = operation(answer.request.method, answer.request.url.path)
    if known is not None:
        assert str(status) in known["responses"], f"{status} is not documented: {told}"
    return problem
