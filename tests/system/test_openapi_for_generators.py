"""Generators of clients in five languages understand every schema of the OpenAPI document.

Each rule stands for code that a generator wrote and that did not compile, or that lost a value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.api.openapi import document_parts

DOCUMENT: dict[str, Any] = json.loads((Path(__file__).parents[2] / "openapi.json").read_text())
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]

RUNTIME_NAMES = {
    *("apiclient", "apierror", "apiexception", "apikey_", "apiresponse", "apicallback", "authentication"),
    *("client", "configuration", "error", "file", "list", "map", "mappedfile", "model_", "null", "object"),
    *("optional", "pair", "request", "requestoptions", "response", "serverconfiguration", "servervariable"),
    *("string", "type", "unset", "void"),
}
"""Names of classes that the generators write into every client, in lower case."""


def fields() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, schema in SCHEMAS.items():
        for field, inner in schema.get("properties", {}).items():
            yield f"{name}.{field}", inner


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if not schema.get("$ref", "").startswith("#/components/schemas/"):
        return schema
    found: dict[str, Any] = SCHEMAS[schema["$ref"].rsplit("/", 1)[-1]]
    return found


def branches(schema: dict[str, Any]) -> list[dict[str, Any]]:
    union = resolved(schema)
    found = [resolved(branch) for branch in (*union.get("anyOf", ()), *union.get("oneOf", ()))]
    return [branch for branch in found if branch != {"type": "null"}]


def test_every_number_has_the_format_of_its_size() -> None:
    for part in document_parts(DOCUMENT):
        if part.get("type") == "number":
            assert part.get("format") == "double", part
        if part.get("type") == "integer":
            bounded = "enum" in part or part.get("maximum", 2**31) < 2**31
            assert part.get("format") == ("int32" if bounded else "int64"), part


def test_every_array_has_items_of_one_schema() -> None:
    for part in document_parts(DOCUMENT):
        assert "prefixItems" not in part, part
        if part.get("type") == "array":
            assert "items" in part, part


def test_no_union_has_a_default() -> None:
    for part in document_parts(DOCUMENT):
        if "default" in part:
            assert len(branches(part)) < 2, part
            assert not isinstance(part["default"], dict), part


def test_the_default_of_a_union_is_described() -> None:
    described = dict(fields())
    for place, default in {
        "PredictRequest.version": "live",
        "TrainingJobCreate.promote": "if_first",
        "HM3Parameters.kernel": "linear",
        "AdaBoostLCParameters.template": "parallel",
        "TextFeaturesParameters.min_df": "1",
    }.items():
        assert described[place]["description"].endswith(f"\n\nDefault: `{default}`.")


def test_no_union_has_an_array() -> None:
    for part in document_parts(DOCUMENT):
        kinds = [branch.get("type") for branch in branches(part)]
        assert len(kinds) < 2 or "array" not in kinds, part


def test_no_schema_has_the_name_of_a_class_of_the_generators() -> None:
    assert not {name for name in SCHEMAS if name.lower() in RUNTIME_NAMES}
    assert len({name.lower() for name in SCHEMAS}) == len(SCHEMAS), "file systems ignore case"


def test_no_field_has_the_name_of_an_accessor_of_another_field() -> None:
    for name, schema in SCHEMAS.items():
        names = set(schema.get("properties", ()))
        accessors = {f"{prefix}_{field}" for field in names for prefix in ("get", "set", "has", "unset")}
        accessors |= {f"get_{field}_ok" for field in names}
        assert not names & accessors, name


def test_no_operation_accepts_both_json_and_raw_bodies() -> None:
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            kinds = set(operation.get("requestBody", {}).get("content", {}))
            assert kinds == {"application/json"} or "application/json" not in kinds, f"{method} {path}"


def test_the_operations_of_raw_bodies_have_no_other_schema_than_bytes() -> None:
    for operations in DOCUMENT["paths"].values():
        for operation in operations.values():
            for kind, content in operation.get("requestBody", {}).get("content", {}).items():
                if kind != "application/json":
                    assert content == {"schema": {"type": "string", "format": "binary"}}, operation


def test_enumerated_values_differ_as_names_of_constants() -> None:
    for part in document_parts(DOCUMENT):
        names = part.get("x-enum-varnames", part.get("enum", ()))
        assert len(names) == len(part.get("enum", ())), part
        constants = {re.sub(r"\W+", "_", str(name)).upper() for name in names}
        assert len(constants) == len(names), part
