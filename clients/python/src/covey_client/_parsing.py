"""Reads responses as objects of the generated client."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import httpx

from covey_client.errors import UnexpectedResponse
from covey_client.generated.types import Unset

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

WRONG_CONTENT = (ValueError, LookupError, TypeError, AttributeError)
"""What the generated code raises for JSON of another form."""

# The generated code compares with the only object of the class, also in copies and in other processes.
copyreg.pickle(Unset, lambda _unset: "UNSET")


class HasParsed(Protocol[T_co]):
    """A response of the generated client."""

    @property
    def parsed(self) -> T_co | None:
        """The body."""


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
    except WRONG_CONTENT as error:
        raise UnexpectedResponse(f"{response.url} returned no {kind.__name__}: {error!r}") from error
