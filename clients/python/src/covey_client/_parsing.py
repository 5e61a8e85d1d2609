"""Reads responses as objects of the generated client."""

from __future__ import annotations

import copyreg
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, Protocol, TypeVar

import httpx

from covey_client.errors import UnexpectedResponse
from covey_client.generated.errors import UnexpectedStatus
from covey_client.generated.types import Unset

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_WRONG_CONTENT = (ValueError, LookupError, TypeError, AttributeError)
"""What the generated code raises for JSON of another form."""

# The generated code compares with the only object of the class, also in copies and in other processes.
copyreg.pickle(Unset, lambda _unset: "UNSET")


class HasParsed(Protocol[T_co]):
    """A response of the generated client."""

    @property
    def parsed(self) -> T_co | None:
        """The body."""


async def respond(
    operation: Callable[P, Awaitable[HasParsed[T]]], *args: P.args, **kwargs: P.kwargs
) -> T | None:
    """Call an operation of the generated client, and return the body of the response.

    Raises:
        TypeError: the arguments are not those of the operation.
        UnexpectedResponse: the response is not that of the operation.
    """
    inspect.signature(operation).bind(*args, **kwargs)
    try:
        return (await operation(*args, **kwargs)).parsed
    except UnexpectedStatus as error:
        raise UnexpectedResponse(
            f"the service returned {error.status_code}, which the operation does not return"
        ) from error
    except _WRONG_CONTENT as error:
        raise UnexpectedResponse(
            f"the response is not what this package expects, or the request is not valid: {error!r}"
        ) from error


def parse(kind: type[T], response: httpx.Response, status: int) -> T:
    """Return the body of a response.

    Raises:
        UnexpectedResponse: the response has another status or content.
    """
    if response.status_code != status:
        raise UnexpectedResponse(f"{response.url} returned {response.status_code}, not {kind.__name__}")
    from_dict: Callable[[Any], T] = kind.from_dict  # type: ignore[attr-defined]
    try:
        return from_dict(response.json())
    except _WRONG_CONTENT as error:
        raise UnexpectedResponse(f"{response.url} returned no {kind.__name__}: {error!r}") from error
