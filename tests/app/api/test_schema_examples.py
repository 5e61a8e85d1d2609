"""Every schema of the OpenAPI document has an example, and every example matches its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs

ROOT = Path(__file__).parents[3]
SCHEMAS: dict[str, Any] = json.loads((ROOT / "openapi.json").read_text())["components"]["schemas"]
FILE: dict[str, Any] = json.loads((ROOT / "app" / "api" / "schema_examples.json").read_text())


def test_every_schema_has_an_example() -> None:
    without = [name for name, schema in SCHEMAS.items() if not schema.get("examples")]
    assert without == [], "add an example to the model, or to app/api/schema_examples.json"


def test_every_example_matches_its_schema() -> None:
    registry = jsonschema_rs.Registry([("urn:covey", {"components": {"schemas": SCHEMAS}})])
    for name, schema in SCHEMAS.items():
        reference = {"$ref": f"urn:covey#/components/schemas/{name}"}
        validator = jsonschema_rs.validator_for(reference, registry=registry)
        for example in schema["examples"]:
            problems = [error.message for error in validator.iter_errors(example)]
            assert problems == [], name


def test_the_file_has_only_examples_of_schemas_without_their_own() -> None:
    unknown = FILE.keys() - SCHEMAS.keys()
    assert unknown == set()
    unused = [name for name, example in FILE.items() if SCHEMAS[name]["examples"] != [example]]
    assert unused == []
