"""The OpenAPI document, with what generators of clients need and FastAPI does not do by itself.

FastAPI's document is true, but an SDK made from it would be poor: enumerations and unions stand inline and
get invented names, errors are repeated a hundred times, answers look nullable. Each step below mends one
such thing; none may change what a client can send or receive.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel

from app.http.base_route import SCOPES
from app.http.errors import ERRORS
from app.http.problem_handlers import header_name
from app.version import __version__

_DESCRIPTION = """\
Covey trains multilabel classifiers over HTTP and serves the label sets and rankings they predict.

Upload labelled examples as a *data set*, train a *version* of a *model* from it, promote a version by its
*alias*, predict with it, or give it to a *router* that takes raw e-mail.

Every error is a problem document (RFC 9457) with a stable `code`, those of unknown paths (404) and methods
(405) included. Fields that have no value are left out of answers, never null. Every answer bears an
`X-Request-ID`.
"""

TAGS = {
    "datasets": "Labelled examples, uploaded once and immutable once ready.",
    "training_jobs": "Trainings, done by workers: from a data set to a version of a model.",
    "experiments": "Configurations tried on the same splits of a data set, and compared.",
    "models": "Models, their immutable versions, the aliases that name them, and what they predict.",
    "evaluations": "What a version is worth: by label, by score, by document.",
    "routers": "Where messages go: a model's labels as departments with destinations.",
    "decisions": "What was decided about messages, and what would have been right.",
    "learners": "What can be trained, with every parameter.",
    "api_keys": "Who may do what.",
    "health": "Whether the service lives, whether it can work, and how it does.",
}

_SERVERS = [
    {"url": "/", "description": "The service that this document came from."},
    {"url": "http://127.0.0.1:8000", "description": "`covey serve`, as it starts by default."},
]

HEADERS = {
    "X-Request-ID": "The request's id, as in the service's log and in the problem.",
    "Location": "The path of what was made.",
    "ETag": "The revision, to be sent as `If-Match`.",
    "Retry-After": "Seconds to wait before trying again.",
    "WWW-Authenticate": "How to authenticate: `Bearer`.",
}

_ERROR_HEADERS = {"401": "WWW-Authenticate", "429": "Retry-After", "503": "Retry-After"}

_COMPONENTS = "#/components/schemas/"


def install(app: FastAPI, *, manual_bodies: Sequence[type[BaseModel]] = ()) -> None:
    """Make the app serve the finished document.

    Args:
        app: the application.
        manual_bodies: body models of routes that parse their bodies themselves; FastAPI does not know them.
    """

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build(app, manual_bodies)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def to_json(app: FastAPI) -> str:
    """The document as it is kept in ``openapi.json``."""
    return json.dumps(app.openapi(), indent=2, ensure_ascii=False) + "\n"


def _build(app: FastAPI, manual_bodies: Sequence[type[BaseModel]]) -> dict[str, Any]:
    document = get_openapi(
        title="Covey",
        version=__version__,
        summary="Multilabel classifiers over HTTP.",
        description=_DESCRIPTION,
        routes=app.routes,
        tags=[{"name": name, "description": text} for name, text in TAGS.items()],
        servers=_SERVERS,
        separate_input_output_schemas=False,
    )
    schemas: dict[str, Any] = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for model in manual_bodies:
        schemas[model.__name__] = model.model_json_schema(ref_template=_COMPONENTS + "{model}")
        schemas[model.__name__].pop("$defs", None)
    for schema in _walk(document):
        _tidy(schema)
    sent = _sent(document)
    for name, schema in schemas.items():
        _require_literals(schema)
        if name not in sent:
            _leave_out_null(schema)
    for schema in _walk(document):
        _discriminate(schema, schemas)
    _operations(document, app)
    document["components"]["schemas"] = dict(sorted(schemas.items()))
    document["components"]["headers"] = {
        name: {
            "description": text,
            "schema": {"type": "integer" if name == "Retry-After" else "string"},
        }
        for name, text in HEADERS.items()
    }
    # For all operations, and optional: on loopback the service is open until a key has been made.
    document["security"] = [{}, {"ApiKey": []}]
    return document


_MAPS = {"properties", "$defs", "schemas", "paths", "responses", "headers", "content"}
"""What maps names to parts, so that a name is no keyword."""
_DATA = {"default", "examples", "example", "const", "enum", "mapping", "value"}
"""What holds values, and no parts."""


def _walk(part: Any) -> Iterator[dict[str, Any]]:
    """Every object of the document that is a part of it and not a value; a part before its own parts."""
    if isinstance(part, dict):
        yield part
        for key, inner in list(part.items()):  # what is yielded may be changed
            if key in _MAPS and isinstance(inner, dict):
                for named in list(inner.values()):
                    yield from _walk(named)
            elif key not in _DATA:
                yield from _walk(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _walk(inner)


def _tidy(schema: dict[str, Any]) -> None:
    """Without invented titles, with whole numbers written whole, and with bytes as generators know them."""
    for properties in (schema.get("properties"), schema.get("$defs")):
        for name, field in (properties or {}).items():
            if isinstance(field, dict):
                field.pop("title", None)
                if "const" in field and "description" not in field:
                    field["description"] = f"Always `{field['const']}`: tells this {name} from the others."
    if "in" in schema and isinstance(schema.get("schema"), dict):
        schema["schema"].pop("title", None)
        _leave_out_null({"properties": {"": schema["schema"]}})  # a parameter is there or it is not
        schema["schema"].pop("description", None)
        if schema["in"] == "header":
            schema["name"] = header_name(schema["name"])
    if isinstance(schema.get("title"), str) and "type" in schema:
        schema.pop("title")
    for bound in ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"):
        if isinstance(schema.get(bound), float) and schema[bound].is_integer():
            schema[bound] = int(schema[bound])
    if "default" in schema:
        _tidy_default(schema)
    if schema.get("type") == "string" and schema.pop("contentMediaType", None):
        schema["format"] = "binary"


def _tidy_default(schema: dict[str, Any]) -> None:
    """No default of null; and one that is an object in words, since generators fail on it."""
    default = schema["default"]
    if default is None:
        schema.pop("default")
    elif isinstance(default, dict):
        schema.pop("default")
        told = f"By default `{json.dumps(default)}`." if len(default) < 3 else "By default all its defaults."
        schema["description"] = f"{schema.get('description', '')}\n\n{told}".strip()


def _sent(document: dict[str, Any]) -> set[str]:
    """Names of the schemas that stand in requests, directly or inside others."""
    schemas = document["components"]["schemas"]
    waiting = [
        name
        for path in document["paths"].values()
        for operation in path.values()
        for name in _references(operation.get("requestBody"))
    ]
    seen: set[str] = set()
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


def _leave_out_null(schema: dict[str, Any]) -> None:
    """Answers leave out what has no value, so their fields are never null."""
    for name, field in schema.get("properties", {}).items():
        branches = field.get("anyOf")
        if not branches or {"type": "null"} not in branches:
            continue
        rest = [branch for branch in branches if branch != {"type": "null"}]
        field.pop("anyOf")
        field.update(rest[0] if len(rest) == 1 else {"anyOf": rest})
        if name in schema.get("required", ()):
            schema["required"].remove(name)


def _require_literals(schema: dict[str, Any]) -> None:
    """The literal that tells a branch of a union from the others must be sent, so it is required."""
    for name, field in schema.get("properties", {}).items():
        if "const" in field:
            field.pop("default", None)
            if name not in schema.setdefault("required", []):
                schema["required"].append(name)


def _discriminate(schema: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Name the literal of a union whose branches have one, where Pydantic finds it by a function."""
    if "oneOf" not in schema or "discriminator" in schema:
        return
    literals = {
        reference: {
            name: field["const"]
            for name, field in schemas[reference.removeprefix(_COMPONENTS)].get("properties", {}).items()
            if "const" in field
        }
        for branch in schema["oneOf"]
        if (reference := branch.get("$ref", "")).removeprefix(_COMPONENTS) in schemas
    }
    objects = {reference: found for reference, found in literals.items() if found}
    common = set.intersection(*map(set, objects.values())) if objects else set()
    if len(common) != 1:
        return
    name = common.pop()
    union = {
        "oneOf": [{"$ref": reference} for reference in objects],
        "discriminator": {
            "propertyName": name,
            "mapping": {found[name]: reference for reference, found in objects.items()},
        },
    }
    others = [branch for branch in schema.pop("oneOf") if branch.get("$ref") not in objects]
    # A discriminator is for objects only, so what else there is stands outside.
    schema.update({"anyOf": [*others, union]} if others else union)


def _operations(document: dict[str, Any], app: FastAPI) -> None:
    routes = {
        (context.path, method): context
        for context in iter_route_contexts(app.routes)
        for method in context.methods or ()
    }
    shared: dict[str, Any] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            context = routes[path, method.upper()]
            text: str = operation["description"]
            operation["summary"] = re.split(r"[.:;](?:\s|$)", text, maxsplit=1)[0].replace("`", "")
            operation.pop("security", None)
            scopes = [
                SCOPES[dependency.dependency]
                for dependency in context.dependencies
                if dependency.dependency in SCOPES
            ]
            if scopes:
                operation["description"] = f"{text}\n\nScope: `{scopes[0]}`."
            else:
                operation["security"] = []
            _responses(operation, shared)
    document["components"]["responses"] = dict(sorted(shared.items()))


def _responses(operation: dict[str, Any], shared: dict[str, Any]) -> None:
    """Errors once for all operations, as problems; every answer with its headers."""
    responses: dict[str, Any] = {}
    body = "requestBody" in operation
    for status, response in sorted(operation["responses"].items()):
        if (status in {"400", "413", "415"} and not body) or (
            status == "422" and not body and not operation.get("parameters")
        ):
            continue  # it cannot happen here
        if status < "400":
            names = ["X-Request-ID", *response.get("headers", {})]
            response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
            responses[status] = response
            continue
        name = ERRORS[int(status)].__name__
        responses[status] = {"$ref": f"#/components/responses/{name}"}
        headers = ["X-Request-ID", *([_ERROR_HEADERS[status]] if status in _ERROR_HEADERS else [])]
        shared[name] = {
            "description": ERRORS[int(status)].description,
            "headers": {header: {"$ref": f"#/components/headers/{header}"} for header in headers},
            "content": {"application/problem+json": {"schema": {"$ref": f"{_COMPONENTS}Problem"}}},
        }
    operation["responses"] = responses
