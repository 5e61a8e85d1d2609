"""Reads responses as objects of the generated client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import httpx

from covey_client.errors import UnexpectedResponse

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

WRONG_CONTENT = (ValueError, LookupError, TypeError, AttributeError)
"""What the generated code raises for JSON of another form."""


class HasParsed(Protocol[T_co]):
    """A response of the generated client."""

    @property
    def parsed(self) -> T_co | None:
        """The body."""


def require_status(response: httpx.Response, status: int) -> None:
    """Check the status of a response.

    Raises:
        UnexpectedResponse: it is another one.
    """
    if response.status_code != status:
        raise UnexpectedResponse(f"{response.url} returned {response.status_code}, not {status}")


def message_of(response: httpx.Response) -> bytes | dict[str, Any]:
    """Return the message of a decision: raw, or an object with `email`.

    Raises:
        UnexpectedResponse: the response is neither.
    """
    require_status(response, httpx.codes.OK)
    if response.headers.get("Content-Type", "").startswith("message/rfc822"):
        return response.content
    try:
        message = response.json()
    except ValueError as error:
        raise UnexpectedResponse(f"{response.url} returned no message: {error!r}") from error
    if not isinstance(message, dict) or "email" not in message:
        raise UnexpectedResponse(f"{response.url} returned no message")
    return message


def parse(kind: type[T], response: httpx.Response, status: int) -> T:
    """Return the body of a response.

    Raises:
        UnexpectedResponse: the response has another status or content.
    """
    require_status(response, status)
    from_dict: Callable[[Any], T] = kind.from_dict  # type: ignore[attr-defined]
    try:
        return from_dict(response.json())
    except WRONG_CONTENT as error:
        raise UnexpectedResponse(f"{response.url} returned no {kind.__name__}: {error!r}") from error
