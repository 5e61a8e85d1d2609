"""Send raw messages to a router of the service.

A mail server must keep a message until it is routed. So there is one error for everything that prevents a
decision, also for a wrong key or the wrong name of a router: the message must be sent again later, when the
service is available again or an operator has corrected the configuration. Sending a message again is safe,
because the service returns the first decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from app.inbound.routed_message import RoutedMessage, UnexpectedResponseError

TIMEOUT_SECONDS = 60.0
"""How long to wait for a response, by default."""

ATTEMPTS = 2
"""How often to send a message if the connection breaks: a kept connection can be closed at any time."""

HEADER = b"Received: by covey\r\n\r\n"
"""Header for a message without any, which the service takes for JSON, a form, or nothing, and refuses. What a
mail server has accepted is mail, so all of it then counts as the body, and the message has a decision."""


class NotRoutedError(Exception):
    """A message could not be routed now; the message of the error is the reason. Send the message again.

    Attributes:
        status: HTTP status of the response; None without a response.
    """

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


class RouterClient:
    """Route messages, one at a time.

    Args:
        url: base URL of the service.
        router: name of the router.
        key: an API key with the scope ``predict``, if the service requires one.
        timeout: how long to wait for the service, in seconds.
    """

    def __init__(self, url: str, router: str, key: str | None, timeout: float = TIMEOUT_SECONDS) -> None:
        self._http = httpx.Client(**_options(url, key, timeout))
        self._path = _path(router)

    def route(self, message: bytes) -> RoutedMessage:
        """Route a raw message (RFC 5322), and return the recorded decision.

        Raises:
            NotRoutedError: there is no decision.
        """
        response = self._send(message)
        if _needs_header(response):
            response = self._send(HEADER + message)
        return _read(response)

    def _send(self, message: bytes) -> httpx.Response:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._http.post(self._path, content=message, headers=_HEADERS)
            except httpx.HTTPError as error:
                if attempt == ATTEMPTS or isinstance(error, httpx.TimeoutException | httpx.ConnectError):
                    raise _unavailable(error) from error
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncRouterClient:
    """Route messages, many at the same time. The arguments are those of ``RouterClient``."""

    def __init__(self, url: str, router: str, key: str | None, timeout: float = TIMEOUT_SECONDS) -> None:
        self._http = httpx.AsyncClient(**_options(url, key, timeout))
        self._path = _path(router)

    async def route(self, message: bytes) -> RoutedMessage:
        """Route a raw message (RFC 5322), and return the recorded decision.

        Raises:
            NotRoutedError: there is no decision.
        """
        response = await self._send(message)
        if _needs_header(response):
            response = await self._send(HEADER + message)
        return _read(response)

    async def _send(self, message: bytes) -> httpx.Response:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._http.post(self._path, content=message, headers=_HEADERS)
            except httpx.HTTPError as error:
                if attempt == ATTEMPTS or isinstance(error, httpx.TimeoutException | httpx.ConnectError):
                    raise _unavailable(error) from error
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


_HEADERS = {"Content-Type": "message/rfc822"}


def _options(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    headers: Mapping[str, str] = {"Authorization": f"Bearer {key}"} if key else {}
    return {"base_url": url, "headers": headers, "timeout": timeout, "trust_env": False}


def _path(router: str) -> str:
    return f"/v1/routers/{quote(router, safe='')}/messages"


def _read(response: httpx.Response) -> RoutedMessage:
    if response.status_code != httpx.codes.OK:
        raise NotRoutedError(_reason(response), response.status_code)
    try:
        return RoutedMessage.from_json(response.content)
    except UnexpectedResponseError as error:
        raise NotRoutedError(f"{error}; is {response.url} the address of the service?") from error


def _needs_header(response: httpx.Response) -> bool:
    return response.status_code == httpx.codes.BAD_REQUEST and b'"not_a_message"' in response.content


def _reason(response: httpx.Response) -> str:
    try:
        detail = str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        detail = response.reason_phrase
    return f"the service returned {response.status_code}: {detail}"


def _unavailable(error: httpx.HTTPError) -> NotRoutedError:
    reason = str(error) or type(error).__name__
    return NotRoutedError(f"the service is not available: {reason}")
