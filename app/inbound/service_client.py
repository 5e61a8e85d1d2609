"""Send raw messages to a router of the service.

A mail server must keep a message until it is routed. So there is one error for everything that prevents a
decision, also for a wrong key or the wrong name of a router: the message must be sent again later, when the
service is available again or an operator has corrected the configuration. Sending a message again is safe,
because the service returns the first decision.

The standard library sends it: ``covey route`` starts for each message.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, urlsplit

from app.inbound.http_post import Response, post
from app.inbound.routed_message import RoutedMessage, UnexpectedResponseError

LOCAL_URL = "http://127.0.0.1:8000"
"""Address of a service with the default settings."""

URL_VARIABLE, KEY_VARIABLE = "COVEY_URL", "COVEY_API_KEY"
"""Variables for the address of the service, and for the API key."""

TIMEOUT_SECONDS = 60.0
"""How long to wait for a response, by default."""

ATTEMPTS = 2
"""How often to send a message if the connection breaks."""

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

    Raises:
        ValueError: the URL or the key cannot be one.
    """

    def __init__(self, url: str, router: str, key: str | None, timeout: float = TIMEOUT_SECONDS) -> None:
        check_url(url)
        self._url, self._timeout = url, timeout
        self._target = url.rstrip("/") + path_of(router)
        self._headers = headers_with(key)

    def route(self, message: bytes) -> RoutedMessage:
        """Route a raw message (RFC 5322), and return the recorded decision.

        Raises:
            NotRoutedError: there is no decision.
        """
        headers = {**self._headers, "traceparent": new_traceparent()}
        response = self._send(message, headers)
        if response.needs_header:
            response = self._send(HEADER + message, headers)
        return decision_of(response, self._url)

    def _send(self, message: bytes, headers: dict[str, str]) -> Response:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return post(self._target, headers, message, self._timeout)
            except OSError as error:
                if attempt == ATTEMPTS or isinstance(error, ConnectionRefusedError | TimeoutError):
                    raise unavailable(error) from error
        raise AssertionError("unreachable")


def check_url(url: str) -> None:
    """Refuse a URL that cannot be that of the service.

    Raises:
        ValueError: it is no URL of HTTP.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"the URL {url!r} does not begin with http:// or https://")
    parts = urlsplit(url)
    if not parts.hostname or parts.username is not None or parts.query or parts.fragment:
        raise ValueError(f"the URL {url!r} must have the form http://host:port/path")
    try:
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"Invalid port in the URL {url!r}: {error}") from error


def read_key(file: Path | None) -> str | None:
    """Return the API key of a file, or of the variable; None if there is none.

    Raises:
        ValueError: the file cannot be read, or contains no key.
    """
    if file is None:
        return os.environ.get(KEY_VARIABLE) or None
    try:
        key = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the API key cannot be read: {error}") from error
    if not key:
        raise ValueError(f"the API key cannot be read: {file} is empty")
    return key


def path_of(router: str) -> str:
    """Return the path to which the messages of a router are sent."""
    return f"/v1/routers/{quote(router, safe='')}/messages"


def headers_with(key: str | None) -> dict[str, str]:
    """Return the headers of a request.

    Raises:
        ValueError: a header cannot contain the key.
    """
    headers = {"Content-Type": "message/rfc822"}
    if key:
        if not (key.isascii() and key.isprintable()):
            raise ValueError("the API key contains characters that no key has")
        headers["Authorization"] = f"Bearer {key}"
    return headers


def new_traceparent() -> str:
    """Return the header ``traceparent`` of a new trace (W3C Trace Context), which the service logs."""
    return f"00-{os.urandom(16).hex()}-{os.urandom(8).hex()}-01"


def decision_of(response: Response, url: str) -> RoutedMessage:
    """Read a response of the service.

    Raises:
        NotRoutedError: it is no decision.
    """
    if response.status != 200:
        reason = response.reason
        with suppress(ValueError, LookupError, TypeError, RecursionError):  # it is of another server
            reason = str(json.loads(response.content)["detail"])
        raise NotRoutedError(f"the service returned {response.status}: {reason}", response.status)
    try:
        return RoutedMessage.from_json(response.content)
    except UnexpectedResponseError as error:
        raise NotRoutedError(f"{error}; is {url} the address of the service?") from error


def unavailable(error: Exception) -> NotRoutedError:
    """Return the error for a service that does not respond."""
    return NotRoutedError(f"the service is not available: {str(error) or type(error).__name__}")
