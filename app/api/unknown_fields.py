"""Describes unknown fields of bodies and unknown parameters, with the names that are known there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final

from pydantic import TypeAdapter

_Schema = Mapping[str, Any]

_MAX_LISTED: Final = 20
"""Largest number of fields that a message lists."""


class UnknownFields:
    """Describes unknown fields in bodies of one type.

    >>> from models.text.hashing import HashingParameters
    >>> unknown = UnknownFields(TypeAdapter(dict[str, HashingParameters]))
    >>> unknown.describe(["hashing", "features"], {"hashing": {"features": 64}})
    "is unknown; did you mean 'n_features'?"
    >>> unknown.describe(["hashing", "bits"], {"hashing": {"bits": 6}})
    'is unknown; the only field here is n_features'
    """

    def __init__(self, adapter: TypeAdapter[Any]) -> None:
        self._adapter = adapter

    def describe(self, path: Sequence[Any], body: Any) -> str:
        """Return the message for an unknown field.

        Args:
            path: the names of fields and the indices of entries that lead to the field, and its name.
            body: the body.
        """
        *parents, name = path
        return describe_unknown(str(name), self._fields(parents, body), "field")

    def _fields(self, path: Sequence[Any], body: Any) -> list[str]:
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
        constants = ((name, field["const"]) for name, field in _properties(schema) if "const" in field)
        if all(not isinstance(value, dict) or value.get(name, c) == c for name, c in constants):
            yield schema

    @cached_property
    def _schema(self) -> _Schema:
        return self._adapter.json_schema()


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


def _properties(schema: _Schema) -> Iterator[tuple[str, _Schema]]:
    yield from schema.get("properties", {}).items()


def _inside(schema: _Schema, part: Any) -> Iterator[_Schema]:
    """Yield the schema of a field or of an entry, if the schema tells it."""
    if isinstance(part, int):
        inner = schema.get("items")
    else:
        inner = schema.get("properties", {}).get(part, schema.get("additionalProperties"))
    if isinstance(inner, dict):
        yield inner
