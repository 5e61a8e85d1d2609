"""Send many raw messages to a router of the service at the same time."""

from __future__ import annotations

import ssl

import httpx

from app.inbound.http_post import Response
from app.inbound.routed_message import RoutedMessage
from app.inbound.service_client import (
    ATTEMPTS,
    HEADER,
    TIMEOUT_SECONDS,
    check_url,
    decision_of,
    headers_with,
    path_of,
    unavailable,
)


class AsyncRouterClient:
    """Route messages, many at the same time. The arguments and errors are those of ``RouterClient``."""

    def __init__(self, url: str, router: str, key: str | None, timeout: float = TIMEOUT_SECONDS) -> None:
        check_url(url)
        self._url = url
        self._http = httpx.AsyncClient(
            base_url=url,
            headers=headers_with(key),
            timeout=timeout,
            trust_env=False,
            verify=ssl.create_default_context(),  # the certificates that ``covey route`` trusts
        )
        self._path = path_of(router)

    async def route(self, message: bytes, traceparent: str) -> RoutedMessage:
        """Route a raw message (RFC 5322), and return the recorded decision.

        Args:
            message: the message.
            traceparent: names the trace, see ``new_traceparent``.

        Raises:
            NotRoutedError: there is no decision.
        """
        headers = {"traceparent": traceparent}
        response = await self._send(message, headers)
        if response.needs_header:
            response = await self._send(HEADER + message, headers)
        return decision_of(response, self._url)

    async def _send(self, message: bytes, headers: dict[str, str]) -> Response:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                response = await self._http.post(self._path, content=message, headers=headers)
            except httpx.HTTPError as error:
                if attempt == ATTEMPTS or isinstance(error, httpx.TimeoutException | httpx.ConnectError):
                    raise unavailable(error) from error
            else:
                return Response(response.status_code, response.reason_phrase, response.content)
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()
