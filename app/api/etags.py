"""Compare the `ETag` of a resource with the condition of a request."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header

IfMatch = Annotated[
    str | None,
    Header(
        description="The `ETag` that the resource must have; if it has another one, the response is 412.",
        max_length=200,
    ),
]


def accepts(if_match: str, current: str | None) -> bool:
    """Whether ``If-Match`` or ``If-None-Match`` lists an ``ETag``.

    Args:
        if_match: value of the header.
        current: the current ``ETag``; None if the resource does not exist.

    >>> accepts('"1", "2"', '"2"'), accepts("*", '"2"'), accepts('"1"', '"2"'), accepts("*", None)
    (True, True, False, False)
    """
    accepted = [tag.strip() for tag in if_match.split(",")]
    return current is not None and ("*" in accepted or current in accepted)
