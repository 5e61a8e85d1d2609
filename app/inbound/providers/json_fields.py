"""Read the JSON of providers. It is read leniently, because it contains mail, and mail contains anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.api.json_body import parse_leniently
from app.errors import BadRequest, Invalid


def read_object(text: bytes | str) -> Mapping[str, Any]:
    """Return a JSON object.

    Raises:
        BadRequest: the text is not a JSON object.
        TooLarge: it has more values than any provider sends.
    """
    try:
        value = parse_leniently(text)
    except (ValueError, RecursionError) as error:
        raise malformed(str(error)) from error
    if not isinstance(value, dict):
        raise malformed("it is not an object")
    return value


def required_text(fields: Mapping[str, Any], name: str, hint: str) -> str:
    """Return a field that is a text.

    Raises:
        Invalid: there is no such field, or it is no text.
    """
    value = fields.get(name)
    if not isinstance(value, str):
        raise Invalid(f"the body has no text {name}; {hint}", errors=[(f"/{name}", "is missing or no text")])
    return value


def malformed(reason: str) -> BadRequest:
    """Return the error for a body that is not the JSON of its provider."""
    return BadRequest(f"the body is not JSON of this provider: {reason}", errors=[("", reason)])
