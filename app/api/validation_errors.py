"""The place of a validation error in a request, and its description.

Pydantic's locations contain the branches of unions, and some of its messages are about Python or name no fix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final

from pydantic import TypeAdapter

from app.api import json_body

_Schema = Mapping[str, Any]

_MAX_LISTED: Final = 20
"""Largest number of names that a message lists."""

_NO_OBJECT: Final = {"dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type"}
_SHORTEST: Final = {"too_short": ("at least", "min_length"), "too_long": ("at most", "max_length")}


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
        return json_body.pointer(item["loc"])
    return json_body.pointer(_path_in_body(item, body))


def _path_in_body(item: Mapping[str, Any], body: Any) -> list[Any]:
    """Return the names of fields and the indices of entries that lead to the place of an error in the body.

    Pydantic's locations also contain the branches of unions, which are not part of the body. Following the
    body distinguishes the two.

    >>> error = {"type": "extra_forbidden", "loc": ("body", "learner", "svm", "c")}
    >>> _path_in_body(error, {"learner": {"algorithm": "svm", "c": 1}})
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


class ErrorMessages:
    """Word the errors of bodies of one type where Pydantic's words are about Python or name no fix.

    >>> from models.text.hashing import HashingParameters
    >>> messages = ErrorMessages(TypeAdapter(dict[str, HashingParameters]))
    >>> error = {"type": "extra_forbidden", "loc": ("body", "hashing", "features")}
    >>> messages.word(error, {"hashing": {"features": 64}})["msg"]
    "is unknown; did you mean 'n_features'?"
    >>> error = {"type": "extra_forbidden", "loc": ("body", "hashing", "bits")}
    >>> messages.word(error, {"hashing": {"bits": 6}})["msg"]
    'is unknown; the only field here is n_features'
    """

    def __init__(self, adapter: TypeAdapter[Any]) -> None:
        self._adapter = adapter

    def word(self, item: dict[str, Any], body: Any) -> dict[str, Any]:
        """Return an error of Pydantic with another message, and if needed with another place.

        Args:
            item: the error, with its context. The location starts with "body".
            body: the body.
        """
        context: dict[str, Any] = item.get("ctx", {})
        kind = item["type"]
        if kind in _NO_OBJECT:
            return {**item, "msg": "Input should be an object"}
        if kind == "extra_forbidden":
            path = _path_in_body(item, body) or item["loc"][1:]
            return {**item, "msg": self._describe_unknown_field(path, body)}
        if kind in _SHORTEST:
            bound, name = _SHORTEST[kind]
            entries = "entry" if context[name] == 1 else "entries"
            return {**item, "msg": f"Input should have {bound} {context[name]:,} {entries}"}
        if kind in ("union_tag_invalid", "union_tag_not_found"):
            return _word_tag(item, context)
        return item

    def _describe_unknown_field(self, path: Sequence[Any], body: Any) -> str:
        """Return the message for an unknown field, whose name is the last part of the path."""
        *parents, name = path
        return describe_unknown(str(name), self._known_fields(parents, body), "field")

    def _known_fields(self, path: Sequence[Any], body: Any) -> list[str]:
        schemas = [*self._branches(self._schema, body)]
        for part in path:
            body = body[part]
            # By identity, so that there are never more than the document has, however deep the path is.
            schemas = list(
                {
                    id(branch): branch
                    for schema in schemas
                    for inner in _inside(schema, part)
                    for branch in self._branches(inner, body)
                }.values()
            )
        return sorted({name for schema in schemas for name in schema.get("properties", {})})

    def _branches(self, schema: _Schema, value: Any) -> Iterator[_Schema]:
        """Yield the schemas of a union without those whose constants, such as `kind`, differ in the value."""
        if "$ref" in schema:
            yield from self._branches(self._schema["$defs"][schema["$ref"].rpartition("/")[2]], value)
        for keyword in ("anyOf", "oneOf", "allOf"):
            for branch in schema.get(keyword, ()):
                yield from self._branches(branch, value)
        fields = schema.get("properties", {}).items()
        constants = ((name, field["const"]) for name, field in fields if "const" in field)
        if all(not isinstance(value, dict) or value.get(name, c) == c for name, c in constants):
            yield schema

    @cached_property
    def _schema(self) -> _Schema:
        return self._adapter.json_schema()


def _word_tag(item: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    # Pydantic quotes the field that tells the branch, and the values that it can have.
    loc = (*item["loc"], context["discriminator"].strip("'"))
    if item["type"] == "union_tag_not_found":
        return {**item, "type": "missing", "loc": loc, "msg": "Field required"}
    return {**item, "loc": loc, "msg": f"Input should be one of {context['expected_tags']}"}


def describe_unknown(name: str, known: Sequence[str], kind: str) -> str:
    """Return the message for an unknown name.

    >>> describe_unknown("limits", ["cursor", "limit"], "parameter")
    "is unknown; did you mean 'limit'?"
    >>> describe_unknown("page", ["cursor", "limit"], "parameter")
    'is unknown; the parameters here are cursor, limit'

    Args:
        name: the unknown name.
        known: the known names.
        kind: what they are names of.
    """
    if close := get_close_matches(name, known, n=1, cutoff=0.75):
        return f"is unknown; did you mean {close[0]!r}?"
    if len(known) == 1:
        return f"is unknown; the only {kind} here is {known[0]}"
    if not known or len(known) > _MAX_LISTED:
        return "is unknown; remove it or correct its name"
    return f"is unknown; the {kind}s here are {', '.join(known)}"


def _inside(schema: _Schema, part: Any) -> Iterator[_Schema]:
    """Yield the schema of a field or of an entry, if the schema tells it."""
    if isinstance(part, int):
        inner = schema.get("items")
    else:
        inner = schema.get("properties", {}).get(part, schema.get("additionalProperties"))
    if isinstance(inner, dict):
        yield inner
