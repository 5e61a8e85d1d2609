"""Examples of the schemas in the OpenAPI document.

``schema_examples.json`` has the example of every object that a resource's ``schemas.py`` gives none. The
examples of enumerations, unions and pages follow from their parts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("schema_examples.json")


def add_examples(schemas: dict[str, dict[str, Any]]) -> None:
    """Give each schema at least one example, if the schema or its parts have one.

    Args:
        schemas: the schemas by name; changed in place.
    """
    examples: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    for name, schema in schemas.items():
        if "examples" not in schema and (found := _example(name, schemas, examples)) is not None:
            schema["examples"] = [found]


def _example(name: str, schemas: dict[str, dict[str, Any]], examples: dict[str, Any]) -> Any:
    schema = schemas[name]
    if name in examples:
        return examples[name]
    if "examples" in schema:
        return schema["examples"][0]
    if "enum" in schema:
        return schema["enum"][0]
    if branches := schema.get("oneOf") or schema.get("anyOf"):
        return _example(_referenced(branches[0]), schemas, examples)
    if "next_cursor" in schema.get("properties", {}):
        item = _referenced(schema["properties"]["items"]["items"])
        return {"items": [_example(item, schemas, examples)], "next_cursor": "eyJhZnRlciI6NTB9"}
    return None


def _referenced(schema: dict[str, Any]) -> str:
    reference: str = schema["$ref"]
    return reference.rsplit("/", 1)[-1]
