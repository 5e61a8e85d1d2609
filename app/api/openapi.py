"""The OpenAPI document, completed for generators of clients.

FastAPI's document is correct, but an SDK that is generated from it would be poor: every operation repeats its
error responses, response fields look nullable, and discriminators are missing. Each step below repairs one
such defect. None may change what a client can send or receive.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel

from app.api.base_route import ALSO_ACCEPTED, SCOPES
from app.api.errors import BY_STATUS
from app.api.proxies import root_path
from app.api.schema_examples import add_examples
from app.api.validation_errors import header_name
from app.version import __version__

TITLE = "Covey API"
"""Generators derive the name of their package from it, which must not be that of `covey_client`."""

_DESCRIPTION = """\
Covey trains multilabel classifiers over HTTP and serves the label sets and rankings they predict.

Upload labelled examples as a *data set*, train a *version* of a *model* on it, and promote the version with
an *alias*. Then request predictions from the version, or create a *router* that routes raw e-mail with it.

Every error is a problem document (RFC 9457) with a stable `code`, including unknown paths (404) and methods
(405). Response fields without a value are left out. Only objects that list parameters or repeat a request,
such as `learner` of a version, can contain null, which means that a parameter is not set. Every response has
an `X-Request-ID`.
"""

TAGS = {
    "datasets": "Labelled examples, immutable as soon as they are ready.",
    "training_jobs": "Trainings: a worker fits a new version of a model to a data set.",
    "experiments": "Comparisons of several configurations on the same splits of a data set.",
    "models": "Models, their immutable versions, the aliases of versions, and predictions.",
    "evaluations": "Evaluations of versions: measures by label, by score and by document.",
    "batch_predictions": "Predictions of a version for all examples of a data set, as one file.",
    "routers": "Routers, which map the labels of a model to departments with destinations.",
    "decisions": "Recorded decisions about messages, and their corrections.",
    "learners": "The available learners with their parameters.",
    "webhooks": "Webhooks, which tell other systems about events, and their deliveries.",
    "api_keys": "API keys and their scopes.",
    "users": "People who sign in to the console with the OpenID provider, and their roles.",
    "health": "Liveness, readiness and metrics.",
}

_SERVERS = [
    {"url": "/", "description": "The service that returned this document."},
    {"url": "http://127.0.0.1:8000", "description": "`covey serve` with its default address."},
]

HEADERS = {
    "X-Request-ID": "Id of the request, as in the service's log and in problem documents.",
    "Location": "Path of the created resource.",
    "ETag": "Revision of the resource, for `If-Match`.",
    "Retry-After": "Seconds to wait before trying again.",
    "WWW-Authenticate": "How to authenticate: `Bearer`.",
}

_ERROR_HEADERS = {"401": "WWW-Authenticate", "429": "Retry-After", "503": "Retry-After"}

_COMPONENTS = "#/components/schemas/"

_NULL = {"type": "null"}
_MAX_INT32 = 2**31 - 1


def install(app: FastAPI, *, manual_bodies: Sequence[type[BaseModel]] = ()) -> None:
    """Make the application serve the completed document.

    Args:
        app: the application.
        manual_bodies: body models of routes that parse their bodies themselves; FastAPI does not know them.
    """

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build(app, manual_bodies)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]

    @app.get("/openapi.json", include_in_schema=False)
    def openapi_json(request: Request) -> JSONResponse:
        own, *others = document()["servers"]
        servers = [{**own, "url": root_path(request) or own["url"]}, *others]
        return JSONResponse({**document(), "servers": servers})


def to_json(app: FastAPI) -> str:
    """Return the document in the form of ``openapi.json``."""
    return json.dumps(app.openapi(), indent=2, ensure_ascii=False) + "\n"


def _build(app: FastAPI, manual_bodies: Sequence[type[BaseModel]]) -> dict[str, Any]:
    document = get_openapi(
        title=TITLE,
        version=__version__,
        summary="Multilabel classifiers over HTTP.",
        description=_DESCRIPTION,
        routes=app.routes,
        contact={"name": "The maintainers of Covey"},
        license_info={"name": "No licence chosen yet", "identifier": "LicenseRef-None"},
        tags=[{"name": name, "description": text} for name, text in TAGS.items()],
        servers=_SERVERS,
        separate_input_output_schemas=False,
    )
    schemas: dict[str, Any] = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for model in manual_bodies:
        schema = model.model_json_schema(ref_template=_COMPONENTS + "{model}")
        schemas.update({**schema.pop("$defs", {}), **schemas, model.__name__: schema})
    for schema in document_parts(document):
        _tidy(schema)
    in_requests = _request_schemas(document)
    for name, schema in schemas.items():
        _require_literals(schema)
        if name not in in_requests:
            _leave_out_null(schema)
    for schema in document_parts(document):
        _discriminate(schema, schemas)
    for schema in document_parts(document):
        _give_a_format(schema)
        _document_one_form(schema)
        _describe_the_default_of_a_union(schema, schemas)
    add_examples(schemas)
    _operations(document, app)
    document["components"]["schemas"] = dict(sorted(schemas.items()))
    document["components"]["headers"] = {
        name: {
            "description": text,
            "schema": {"type": "integer", "format": "int64"} if name == "Retry-After" else {"type": "string"},
        }
        for name, text in HEADERS.items()
    }
    # Optional for all operations: on loopback, the service accepts anonymous requests until it has a key.
    document["security"] = [{}, {"ApiKey": []}]
    return document


_MAPS = {"properties", "$defs", "schemas", "paths", "responses", "headers", "content"}
"""Keywords whose values map names to parts of the document."""
_DATA = {"default", "examples", "example", "const", "enum", "mapping", "value"}
"""Keywords whose values are data, not parts of the document."""


def document_parts(part: Any) -> Iterator[dict[str, Any]]:
    """Yield every object that is a part of the document, not data. A part comes before its own parts."""
    if isinstance(part, dict):
        yield part
        for key, inner in list(part.items()):  # the caller may change what is yielded
            if key in _MAPS and isinstance(inner, dict):
                for named in list(inner.values()):
                    yield from document_parts(named)
            elif key not in _DATA:
                yield from document_parts(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from document_parts(inner)


def _tidy(schema: dict[str, Any]) -> None:
    """Remove generated titles and null defaults, and describe integers and bytes as generators expect."""
    for properties in (schema.get("properties"), schema.get("$defs")):
        for name, field in (properties or {}).items():
            if isinstance(field, dict):
                field.pop("title", None)
                if "const" in field and "description" not in field:
                    field["description"] = f"Always `{field['const']}`; the discriminator of {name} objects."
    if "in" in schema and isinstance(schema.get("schema"), dict):
        schema["schema"].pop("title", None)
        _leave_out_null({"properties": {"": schema["schema"]}})  # a parameter is left out, never null
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
    """Remove a default of null; describe a default that is an object, because generators fail on it."""
    default = schema["default"]
    if default is None:
        schema.pop("default")
    elif isinstance(default, dict):
        schema.pop("default")
        text = (
            f"Default: `{json.dumps(default)}`."
            if len(default) < 3
            else "Default: all fields have their defaults."
        )
        schema["description"] = f"{schema.get('description', '')}\n\n{text}".strip()


def _request_schemas(document: dict[str, Any]) -> set[str]:
    """Return the names of the schemas that request bodies contain, directly or in other schemas."""
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
    for node in document_parts(part):
        if isinstance(reference := node.get("$ref"), str):
            yield reference.rsplit("/", 1)[-1]


def _leave_out_null(schema: dict[str, Any]) -> None:
    """Remove null from fields: responses leave out fields without a value."""
    for name, field in schema.get("properties", {}).items():
        branches = field.get("anyOf")
        if not branches or _NULL not in branches:
            continue
        rest = [branch for branch in branches if branch != _NULL]
        field.pop("anyOf")
        field.update(rest[0] if len(rest) == 1 else {"anyOf": rest})
        if name in schema.get("required", ()):
            schema["required"].remove(name)


def _require_literals(schema: dict[str, Any]) -> None:
    """Make discriminators required, because clients must send them."""
    for name, field in schema.get("properties", {}).items():
        if "const" in field:
            field.pop("default", None)
            if name not in schema.setdefault("required", []):
                schema["required"].append(name)


def _discriminate(schema: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Add the discriminator of a union for which Pydantic uses a function."""
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
    # Only objects can have a discriminator, so the other members stand outside of the union of objects.
    schema.update({"anyOf": [*others, union]} if others else union)


def _give_a_format(schema: dict[str, Any]) -> None:
    """Add the size of a number, without which generators choose 32 bits. Items of a pair are alike."""
    if schema.get("type") == "number":
        schema["format"] = "double"
    elif schema.get("type") == "integer":
        values = [*schema.get("enum", ()), schema.get("const"), schema.get("maximum")]
        largest = max((value for value in values if value is not None), default=None)
        schema["format"] = "int32" if largest is not None and largest <= _MAX_INT32 else "int64"
    if prefix := schema.get("prefixItems"):
        if any(item != prefix[0] for item in prefix):
            raise ValueError(f"generators do not support an array whose items differ: {schema}")
        schema["items"] = schema.pop("prefixItems")[0]


def _document_one_form(schema: dict[str, Any]) -> None:
    """Document one form of a value that can be an array or something else.

    Java has no type for such a union, and its generators write code that does not compile. A list of names
    can be given as one name; the document has the list, and `x-also-accepted` the name. Without such a
    common form, the value has no type in the document.
    """
    branches = schema.get("anyOf", [])
    arrays = [branch for branch in branches if branch.get("type") == "array"]
    others = [branch for branch in branches if branch not in arrays and branch != _NULL]
    if not arrays or not others:
        return
    if len(others) == 1 and arrays[0]["items"] == others[0]:
        rest = [branch for branch in branches if branch != others[0]]
        arrays[0][ALSO_ACCEPTED] = others
        if len(rest) == 1:
            schema.pop("anyOf")
            schema.update(arrays[0])
        else:
            schema["anyOf"] = rest
        if isinstance(schema.get("default"), str):
            schema["default"] = [schema["default"]]
    else:
        schema.pop("anyOf")
        if "default" in schema:
            _describe_default(schema)


def _describe_the_default_of_a_union(schema: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Move the default of a union to its description, because generators write a string for an object."""
    if "default" not in schema:
        return
    union = schemas[schema["$ref"].removeprefix(_COMPONENTS)] if "$ref" in schema else schema
    branches = [branch for branch in union.get("anyOf") or union.get("oneOf") or () if branch != _NULL]
    if len(branches) > 1:
        _describe_default(schema)


def _describe_default(schema: dict[str, Any]) -> None:
    default = schema.pop("default")
    text = default if isinstance(default, str) else json.dumps(default)
    schema["description"] = f"{schema.get('description', '')}\n\nDefault: `{text}`.".strip()


def _operations(document: dict[str, Any], app: FastAPI) -> None:
    routes = {
        (route.path, method): route
        for route in app.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    shared: dict[str, Any] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            route = routes[path, method.upper()]
            text: str = operation["description"]
            operation["summary"] = re.split(r"[.:;](?:\s|$)", text, maxsplit=1)[0].replace("`", "")
            operation.pop("security", None)
            scopes = [
                SCOPES[dependency.dependency]
                for dependency in route.dependencies
                if dependency.dependency in SCOPES
            ]
            if scopes:
                operation["description"] = f"{text}\n\nScope: `{'` or `'.join(scopes[0])}`."
            else:
                operation["security"] = []
            _responses(method, operation, shared)
    document["components"]["responses"] = dict(sorted(shared.items()))


def _responses(method: str, operation: dict[str, Any], shared: dict[str, Any]) -> None:
    """Replace error responses by shared components, and add headers to every response."""
    responses: dict[str, Any] = {}
    body = "requestBody" in operation
    for status, response in sorted(operation["responses"].items()):
        if (status in {"400", "408", "413"} and not body) or (status == "415" and method == "get"):
            continue  # this operation cannot return it
        if status < "400":
            names = ["X-Request-ID", *response.get("headers", {})]
            response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
            responses[status] = response
            continue
        name = BY_STATUS[int(status)].error.__name__
        responses[status] = {"$ref": f"#/components/responses/{name}"}
        headers = ["X-Request-ID", *([_ERROR_HEADERS[status]] if status in _ERROR_HEADERS else [])]
        shared[name] = {
            "description": BY_STATUS[int(status)].description,
            "headers": {header: {"$ref": f"#/components/headers/{header}"} for header in headers},
            "content": {"application/problem+json": {"schema": {"$ref": f"{_COMPONENTS}Problem"}}},
        }
    operation["responses"] = responses
