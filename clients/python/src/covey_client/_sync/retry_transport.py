# Generated from _async/retry_transport.py by unasync.py. Change that file instead.
"""Sends a request, again if it failed and sending it twice is safe, and raises an exception for an error.

This is a transport of httpx, so it sees the request itself, and everything that uses the client has it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import httpx

from covey_client._retry import RETRY, STREAM, Retry, is_refused, may_repeat, retry_after
from covey_client.errors import ConnectionFailed, CoveyError, NotFound, UnexpectedResponse, problem_error

logger = logging.getLogger("covey_client")


class RetryTransport(httpx.BaseTransport):
    """Sends requests by another transport.

    Args:
        transport: the other transport.
        retry: when to send a request again.
        sleep: waits for a number of seconds.
    """

    def __init__(
        self,
        transport: httpx.BaseTransport,
        retry: Retry,
        sleep: Callable[[float], None],
    ) -> None:
        self._transport = transport
        self._retry = retry
        self._sleep = sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return a successful response.

        Raises:
            CoveyError: there is none.
        """
        retry: Retry = request.extensions.get(RETRY, self._retry)
        attempt = 1
        may_have_arrived = False
        while True:
            try:
                return self._send(request)
            except CoveyError as error:
                if isinstance(error, NotFound) and request.method == "DELETE" and may_have_arrived:
                    return httpx.Response(204, request=request)  # the response to an earlier attempt was lost
                error.attempts = attempt
                attempt += 1
                if not may_repeat(request, error, only_broken=retry.only_broken):
                    raise
                wait = retry.wait_before(attempt, getattr(error, "retry_after", None))
                if wait is None:
                    raise
                may_have_arrived |= not is_refused(error)
                logger.info(
                    "attempt %d of %s %s in %.1f s: %s", attempt, request.method, request.url, wait, error
                )
            self._sleep(wait)

    def _send(self, request: httpx.Request) -> httpx.Response:
        try:
            response = self._transport.handle_request(request)
            if STREAM not in request.extensions or not response.is_success:
                response.read()
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise ConnectionFailed(f"{request.url}: {str(error) or type(error).__name__}") from error
        if response.is_error:
            raise problem_error(
                response.status_code,
                response.content,
                response.reason_phrase,
                retry_after(response.headers.get("Retry-After")),
            )
        if not response.is_success:
            raise UnexpectedResponse(
                f"{request.url} returned {response.status_code}; is it the address of the service?"
            )
        return response

    def close(self) -> None:
        """Close the other transport."""
        self._transport.close()
