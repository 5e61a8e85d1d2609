"""Runs the same test with the blocking and the asynchronous client, with responses of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
from covey_client import AsyncCovey, Covey, Retry

Handler = Callable[[httpx.Request], httpx.Response]


class Service:
    """Answers requests in order, and remembers them.

    Args:
        *responses: for each request a response, or an exception of the connection.
    """

    def __init__(self, *responses: httpx.Response | Exception | Handler) -> None:
        self._responses = list(responses)
        self.requests: list[httpx.Request] = []
        self.bodies: list[bytes] = []

    def respond(self, request: httpx.Request) -> httpx.Response:
        """Return the next response; the last one again and again."""
        self.requests.append(request)
        self.bodies.append(request.content)
        response = self._responses.pop(0) if len(self._responses) > 1 else self._responses[0]
        if isinstance(response, Exception):
            raise response
        if callable(response):
            return response(request)
        # A response can only be read once.
        return httpx.Response(response.status_code, headers=response.headers, content=response.content)

    @property
    def calls(self) -> list[str]:
        """Method and path of each request."""
        return [f"{request.method} {request.url.path}" for request in self.requests]


class Blocking:
    """The blocking client."""

    def __init__(self, service: Service, retry: Retry | None = None) -> None:
        self.covey = Covey(transport=httpx.MockTransport(service.respond), retry=retry)

    def __call__(self, method: str, *args: Any, **options: Any) -> Any:
        """Call a method, and return its result; a list for an iterator."""
        result = getattr(self.covey, method)(*args, **options)
        return list(result) if hasattr(result, "__next__") else result


class Asynchronous:
    """The asynchronous client."""

    def __init__(self, service: Service, retry: Retry | None = None) -> None:
        self._service = service
        self._retry = retry

    def __call__(self, method: str, *args: Any, **options: Any) -> Any:
        """Call a method, and return its result; a list for an iterator."""
        return asyncio.run(self._call(method, args, options))

    async def _call(self, method: str, args: Any, options: Any) -> Any:
        transport = httpx.MockTransport(self._service.respond)
        async with AsyncCovey(transport=transport, retry=self._retry) as covey:
            result = getattr(covey, method)(*args, **options)
            if isinstance(result, AsyncIterator):
                return [item async for item in result]
            return await result


Either = type[Blocking] | type[Asynchronous]


def json_response(status: int, body: Any, headers: dict[str, str] | None = None) -> httpx.Response:
    """Return a JSON response."""
    return httpx.Response(status, json=body, headers=headers)


def problem(status: int, code: str, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
    """Return a problem."""
    body = {
        "type": f"urn:covey:problem:{code}",
        "title": "A problem",
        "status": status,
        "detail": "what is wrong",
        "code": code,
        "request_id": "req_1",
        **fields,
    }
    return json_response(status, body, headers)


def dataset(state: str = "ready", **fields: Any) -> dict[str, Any]:
    """Return a data set."""
    return {"id": "ds_1", "name": "d", "state": state, "created_at": "2026-01-05T10:00:00Z", **fields}


def job(state: str, **fields: Any) -> dict[str, Any]:
    """Return a training job."""
    return {
        "id": "job_1",
        "model": "helpdesk",
        "request": {},
        "state": state,
        "priority": 0,
        "attempt": 1,
        "created_at": "2026-01-05T10:00:00Z",
        **fields,
    }


def alias(version: int, revision: int) -> dict[str, Any]:
    """Return the alias ``live``."""
    return {
        "model": "helpdesk",
        "alias": "live",
        "version": version,
        "revision": revision,
        "updated_at": "2026-01-05T10:00:00Z",
    }
