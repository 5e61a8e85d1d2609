"""Calls operations of the generated client."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from covey_client._parsing import WRONG_CONTENT, HasParsed
from covey_client.errors import UnexpectedResponse
from covey_client.generated.errors import UnexpectedStatus

P = ParamSpec("P")
T = TypeVar("T")


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
    except WRONG_CONTENT as error:
        raise UnexpectedResponse(
            f"the response is not what this package expects, or the request is not valid: {error!r}"
        ) from error
