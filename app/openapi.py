"""The OpenAPI document, with what generators of clients need and FastAPI does not do by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.version import __version__

_DESCRIPTION = """\
Covey trains multilabel classifiers over HTTP and serves the label sets and rankings they predict.

Upload labelled examples as a *data set*, train a *version* of a *model* from it, promote a version by its
*alias*, predict with it, or give it to a *router* that takes raw e-mail.
Every error is a problem document (RFC 9457) with a stable `code`.
"""


def install(app: FastAPI) -> None:
    """Make the app serve the finished document."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _finished(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _finished(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title="Covey",
        version=__version__,
        description=_DESCRIPTION,
        routes=app.routes,
        separate_input_output_schemas=False,
    )
    schemas: dict[str, Any] = document["components"]["schemas"]
    from app.routing.schemas import MessageJson  # noqa: PLC0415 - its route reads the body itself

    own = MessageJson.model_json_schema(ref_template="#/components/schemas/{model}")
    own.pop("$defs", None)
    schemas["MessageJson"] = own
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    sent = _sent(document)
    for name, schema in schemas.items():
        if name not in sent:
            _leave_out_null(schema)
    for schema in _walk(document):
        _binary(schema)
    _problems_only_as_problems(document)
    return document


def _sent(document: dict[str, Any]) -> set[str]:
    """Names of the schemas that stand in requests, directly or inside others."""
    schemas = document["components"]["schemas"]
    bodies = [
        operation["requestBody"]
        for path in document["paths"].values()
        for operation in path.values()
        if "requestBody" in operation
    ]
    seen: set[str] = set()
    waiting = list(_references(bodies))
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += _references(schemas[name])
    return seen


def _references(part: Any) -> Iterator[str]:
    for node in _walk(part):
        if isinstance(reference := node.get("$ref"), str):
            yield reference.rsplit("/", 1)[-1]


def _walk(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        yield part
        for value in part.values():
            yield from _walk(value)
    elif isinstance(part, list):
        for value in part:
            yield from _walk(value)


def _leave_out_null(schema: dict[str, Any]) -> None:
    """Answers leave out what has no value, so their fields are never null."""
    for name, field in schema.get("properties", {}).items():
        branches = field.get("anyOf")
        if not branches or {"type": "null"} not in branches:
            continue
        rest = [branch for branch in branches if branch != {"type": "null"}]
        field.pop("anyOf")
        if field.get("default", 0) is None:
            field.pop("default")
        field.update(rest[0] if len(rest) == 1 else {"anyOf": rest})
        if name in schema.get("required", ()):
            schema["required"].remove(name)


def _binary(schema: dict[str, Any]) -> None:
    """Generators know ``format: binary``; of ``contentMediaType`` they make text."""
    if schema.get("type") == "string" and schema.pop("contentMediaType", None):
        schema["format"] = "binary"


def _problems_only_as_problems(document: dict[str, Any]) -> None:
    """Errors are ``application/problem+json``, never plain JSON."""
    for path in document["paths"].values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                content = response.get("content", {})
                if status >= "400" and "application/json" in content:
                    content["application/problem+json"] = content.pop("application/json")
