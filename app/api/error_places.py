"""Where in a request an error of its validation is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.api.json_body import escape


def pointer(item: Mapping[str, Any], body: Any) -> str:
    """Convert the location of a validation error to a JSON pointer into the request body.

    >>> error = {"type": "greater_than_equal", "loc": ("body", "learner", "mp_boost", "rounds")}
    >>> pointer(error, {"learner": {"algorithm": "mp_boost", "rounds": 0}})
    '/learner/rounds'
    >>> pointer({"type": "missing", "loc": ("query", "limit")}, None)
    '/query/limit'
    """
    head, *location = item["loc"]
    if head == "header":
        return f"/header/{header_name(str(location[0]))}"
    if head != "body":
        return "".join(f"/{escape(part)}" for part in item["loc"])
    return "".join(f"/{escape(part)}" for part in path_in_body(item, body))


def path_in_body(item: Mapping[str, Any], body: Any) -> list[Any]:
    """Return the names of fields and the indices of entries that lead to the place of an error in the body.

    Pydantic's locations also contain the branches of unions, which are not part of the body. Following the
    body distinguishes the two.

    >>> error = {"type": "extra_forbidden", "loc": ("body", "learner", "svm", "c")}
    >>> path_in_body(error, {"learner": {"algorithm": "svm", "c": 1}})
    ['learner', 'c']
    """
    _, *location = item["loc"]
    found: list[Any] = []
    place = body
    for i, part in enumerate(location):
        if (isinstance(place, Mapping) and part in place) or (
            isinstance(place, list) and isinstance(part, int) and part < len(place)
        ):
            place = place[part]
        elif not (item["type"] == "missing" and i == len(location) - 1):
            continue
        found.append(part)
    return found


def header_name(name: str) -> str:
    """Return the name of a header in its usual capitalization.

    >>> header_name("last-event-id"), header_name("if-match")
    ('Last-Event-ID', 'If-Match')
    """
    return "-".join(part.upper() if part == "id" else part.capitalize() for part in name.split("-"))
