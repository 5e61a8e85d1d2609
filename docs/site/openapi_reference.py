"""A Sphinx extension that renders the reference of the HTTP API from ``openapi.json``.

A page names what it shows in a comment that a code host hides:

    <!-- openapi: datasets -->    operations of a tag, and the schemas that only they use
    <!-- openapi: shared -->      schemas that operations of several tags use

Before MyST reads the page, the comment is replaced by Markdown. Nothing is written into ``docs``, so the
reference cannot be older than the document. A tag without a page, and a page of an unknown tag, are warnings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.typing import ExtensionMetadata

log = logging.getLogger(__name__)

Json = dict[str, Any]

MARKER = re.compile(r"^<!-- openapi: (\w+) -->$", re.MULTILINE)
SHARED = "shared"
LIMITS = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} fields",
    "maxProperties": "at most {} fields",
    "pattern": "matches `{}`",
}


class Reference:
    """The reference of one OpenAPI document, as Markdown."""

    def __init__(self, document: Json) -> None:
        self.document = document
        self.schemas: dict[str, Json] = document["components"]["schemas"]
        self.tags = {tag["name"] for tag in document["tags"]}
        uses: dict[str, set[str]] = {}
        for tag in self.tags:
            for name in self._reachable([operation for _, _, operation in self._operations(tag)]):
                uses.setdefault(name, set()).add(tag)
        self.place = {name: tags.pop() if len(tags) == 1 else SHARED for name, tags in uses.items()}

    def section(self, name: str) -> str:
        """Return the operations and schemas of a tag, or the shared schemas."""
        parts = [
            self._operation(method, path, operation) for method, path, operation in self._operations(name)
        ]
        schemas = sorted(schema for schema, place in self.place.items() if place == name)
        if schemas and name != SHARED:
            parts.append("## Schemas\n")
        level = "##" if name == SHARED else "###"
        parts += [self._schema(level, schema) for schema in schemas]
        return "\n".join(parts)

    def _operations(self, tag: str) -> Iterator[tuple[str, str, Json]]:
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                if isinstance(operation, dict) and tag in operation.get("tags", []):
                    yield method.upper(), path, operation

    def _reachable(self, start: Any) -> set[str]:
        found: set[str] = set()
        waiting: list[Any] = [start]
        while waiting:
            value = waiting.pop()
            if isinstance(value, list):
                waiting += value
            elif isinstance(value, dict):
                kind, name = _target(value)
                if kind == "schemas" and name not in found:
                    found.add(name)
                    waiting.append(self.schemas[name])
                elif kind == "responses":
                    waiting.append(self.document["components"]["responses"][name])
                waiting += value.values()
        return found

    def _operation(self, method: str, path: str, operation: Json) -> str:
        parts = [
            f"(operation-{operation['operationId']})=",
            f"## {operation['summary']}\n",
            f"```text\n{method} {path}\n```\n",
            f"`{operation['operationId']}`\n",
        ]
        parts.append(operation.get("description", "").removeprefix(f"{operation['summary']}.") + "\n")
        if parameters := operation.get("parameters"):
            rows = [
                (
                    f"`{item['name']}`",
                    item["in"] + (", required" if item.get("required") else ""),
                    self._type(item["schema"]),
                    _sentences(item.get("description", ""), self._notes(item["schema"])),
                )
                for item in parameters
            ]
            parts.append(_table(("parameter", "in", "type", "description"), rows))
        if body := operation.get("requestBody"):
            bodies = [(f"`{media}`", self._content(content)) for media, content in body["content"].items()]
            optional = "" if body.get("required") else " (optional)"
            parts.append(_table((f"request body{optional}", "schema"), bodies))
        parts.append(self._responses(operation["responses"]))
        return "\n".join(parts)

    def _responses(self, responses: Json) -> str:
        rows, problems = [], []
        for status, response in responses.items():
            if "$ref" in response:
                problems.append(status)
                continue
            contents = [
                f"`{media}`: {self._content(content)}"
                for media, content in response.get("content", {}).items()
            ]
            rows.append((status, "<br>".join(contents) or "—", _sentences(response["description"])))
        table = _table(("status", "response", "description"), rows)
        if problems:
            table += f"Problems: {', '.join(problems)}. See [error codes](../errors.md).\n"
        return table

    def _content(self, content: Json) -> str:
        schema = content.get("schema", {})
        return self._type(schema) if schema else "bytes"

    def _schema(self, level: str, name: str) -> str:
        schema = self.schemas[name]
        parts = [f"(schema-{name.lower()})=", f"{level} {name}\n"]
        if description := schema.get("description"):
            parts.append(f"{description}\n")
        if properties := schema.get("properties"):
            required = set(schema.get("required", []))
            rows = [
                (
                    f"`{field}`" + (" (required)" if field in required else ""),
                    self._type(value),
                    _sentences(value.get("description", ""), self._notes(value)),
                )
                for field, value in properties.items()
            ]
            parts.append(_table(("field", "type", "description"), rows))
        else:
            parts.append(f"{self._type({**schema, 'title': name})}. {self._notes(schema)}\n")
        if examples := schema.get("examples"):
            parts.append(f"```json\n{json.dumps(examples[0], indent=2, ensure_ascii=False)}\n```\n")
        return "\n".join(parts)

    def _type(self, schema: Json) -> str:
        kind, name = _target(schema)
        if kind == "schemas":
            return f"[{name}](#schema-{name.lower()})"
        for word in ("anyOf", "oneOf"):
            if word in schema:
                variants = [self._type(variant) for variant in schema[word] if variant != {"type": "null"}]
                return " or ".join(dict.fromkeys(variants))
        if "allOf" in schema:
            return " and ".join(self._type(part) for part in schema["allOf"])
        if "const" in schema:
            return f"`{json.dumps(schema['const'])}`"
        if "enum" in schema:
            return " or ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
        type_ = schema.get("type", "any")
        if type_ == "array":
            return f"array of {self._type(schema.get('items', {}))}"
        if type_ == "object" and isinstance(values := schema.get("additionalProperties"), dict):
            return f"object of {self._type(values)}"
        types = [name for name in ([type_] if isinstance(type_, str) else type_) if name != "null"]
        return " or ".join(types) + (f" ({schema['format']})" if "format" in schema else "")

    def _notes(self, schema: Json) -> str:
        """Return the limits and the default of a value."""
        variants = [schema, *schema.get("anyOf", [])]
        notes = [
            text.format(f"{variant[key]:,}" if isinstance(variant[key], int) else variant[key])
            for variant in variants
            if "$ref" not in variant
            for key, text in LIMITS.items()
            if key in variant
        ]
        if schema.get("default") is not None:
            notes.append(f"default `{json.dumps(schema['default'], ensure_ascii=False)}`")
        return f"{'; '.join(dict.fromkeys(notes)).capitalize()}." if notes else ""


def _target(value: Json) -> tuple[str, str]:
    reference = value.get("$ref")
    if not isinstance(reference, str):
        return "", ""
    _, _, kind, name = reference.split("/")
    return kind, name


def _sentences(*texts: str) -> str:
    return " ".join(" ".join(texts).split())


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    lines = [head, tuple("---" for _ in head), *rows]
    return (
        "".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |\n" for line in lines) + "\n"
    )


@cache
def read(path: Path) -> Reference:
    """Read an OpenAPI document."""
    return Reference(json.loads(path.read_text(encoding="utf-8")))


def renew(_app: Sphinx, env: BuildEnvironment, *_changed: set[str]) -> list[str]:
    """Let the pages of the reference be read in every build: the document can be newer than they are."""
    return [name for name in env.found_docs if name.startswith("reference/")]


def replace_markers(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace the markers of a page by Markdown."""
    reference = read(app.config.openapi_document)

    def section(match: re.Match[str]) -> str:
        name = match[1]
        if name not in reference.tags | {SHARED}:
            log.warning("the OpenAPI document has no tag %s", name, location=docname)
        return reference.section(name)

    source[0] = MARKER.sub(section, source[0])


def check_pages(app: Sphinx, _env: object) -> None:
    """Warn about each tag that no page shows."""
    text = "".join(path.read_text(encoding="utf-8") for path in (app.srcdir / "reference").glob("*.md"))
    reference = read(app.config.openapi_document)
    for name in sorted((reference.tags | {SHARED}) - set(MARKER.findall(text))):
        log.warning("no page in docs/reference has the marker <!-- openapi: %s -->", name)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension."""
    app.add_config_value("openapi_document", None, "env")
    app.connect("env-get-outdated", renew)
    app.connect("source-read", replace_markers)
    app.connect("env-updated", check_pages)
    return {"parallel_read_safe": True}
