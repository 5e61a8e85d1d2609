"""Finds changes of ``openapi.json`` that break clients of the released document.

    python clients/breaking_changes.py            # compare; exit status 1 if a change is not accepted
    python clients/breaking_changes.py --release  # openapi.json becomes the released document

``contract/released.json`` is the document of the last release, without texts and examples. A deliberate
change is accepted with its line in ``contract/accepted_breaks.txt``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, TypeAlias

from generate_clients import CLIENTS, DOCUMENT

Json: TypeAlias = dict[str, Any]

RELEASED = CLIENTS / "contract" / "released.json"
ACCEPTED = CLIENTS / "contract" / "accepted_breaks.txt"

_HEADER = """\
# Changes since the last release that break clients on purpose, one line each, as clients/breaking_changes.py
# prints them. Describe each in CHANGELOG.md, too.
"""
_TEXTS = {"description", "summary", "examples", "example", "title"}
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_NULL = {"type": "null"}
_ANYTHING = "anything"


def find_breaks(old: Json, new: Json) -> list[str]:
    """Return the changes that break a client of the old document, each once, in the order of the document.

    A client breaks if something that it sends is no longer accepted, or if it receives something that it
    does not know. Schemas have names in generated clients, so a schema must keep its name.
    """
    return list(dict.fromkeys(_Comparison(old, new).breaks()))


class _Comparison:
    def __init__(self, old: Json, new: Json) -> None:
        self._old, self._new = old, new
        self._seen: set[tuple[str, str, bool]] = set()

    def breaks(self) -> Iterator[str]:
        for path, methods in self._old["paths"].items():
            for method, operation in methods.items():
                place = f"{method.upper()} {path}"
                other = self._new["paths"].get(path, {}).get(method)
                if other is None:
                    yield f"{place}: the operation is gone"
                    continue
                if other.get("operationId") != operation.get("operationId"):
                    yield f"{place}: the operationId has changed"
                yield from self._parameters(operation, other, place)
                yield from self._request(operation, other, place)
                yield from self._responses(operation, other, place)
        new_schemas = self._new.get("components", {}).get("schemas", {})
        for name in self._old.get("components", {}).get("schemas", {}):
            if name not in new_schemas:
                yield f"{name}: the schema is gone"

    def _parameters(self, old: Json, new: Json, place: str) -> Iterator[str]:
        olds = {(p["in"], p["name"]): p for p in old.get("parameters", ())}
        news = {(p["in"], p["name"]): p for p in new.get("parameters", ())}
        for key, parameter in olds.items():
            where = f"{place}: parameter {key[1]}"
            if key not in news:
                yield f"{where} is gone"
                continue
            if news[key].get("required") and not parameter.get("required"):
                yield f"{where} is now required"
            yield from self._schema(parameter["schema"], news[key]["schema"], where, sent=True)
        for key in news.keys() - olds.keys():
            if news[key].get("required"):
                yield f"{place}: parameter {key[1]} is new and required"

    def _request(self, old: Json, new: Json, place: str) -> Iterator[str]:
        before, after = old.get("requestBody", {}), new.get("requestBody", {})
        where = f"{place}: request body"
        if after.get("required") and not before.get("required"):
            yield f"{where} is now required"
        yield from self._contents(before, after, where, sent=True)

    def _responses(self, old: Json, new: Json, place: str) -> Iterator[str]:
        for status, response in old["responses"].items():
            if status >= "400":
                continue  # all errors have one schema, and clients must expect any of them
            where = f"{place}: response {status}"
            if status not in new["responses"]:
                yield f"{where} is gone"
                continue
            other = new["responses"][status]
            for header in response.get("headers", {}).keys() - other.get("headers", {}).keys():
                yield f"{where}: header {header} is gone"
            yield from self._contents(response, other, where, sent=False)

    def _contents(self, old: Json, new: Json, place: str, *, sent: bool) -> Iterator[str]:
        for kind, content in old.get("content", {}).items():
            other = new.get("content", {}).get(kind)
            if other is None:
                yield f"{place}: media type {kind} is gone"
            else:
                yield from self._schema(content.get("schema", {}), other.get("schema", {}), place, sent=sent)

    def _schema(self, old: Json, new: Json, place: str, *, sent: bool) -> Iterator[str]:
        """Compare two schemas of a value that clients send or receive."""
        name, other_name = _name(old), _name(new)
        if name and other_name:
            if (name, other_name, sent) in self._seen:
                return
            self._seen.add((name, other_name, sent))
        if name or other_name:
            place = name or place
            old, new = self._resolved(old, self._old), self._resolved(new, self._new)
            yield from self._schema(old, new, place, sent=sent)
            return
        olds, news = self._branches(old, self._old), self._branches(new, self._new)
        wide, narrow = (news, olds) if sent else (olds, news)
        for kind in narrow:
            if kind not in wide and not (wide.keys() & {_ANYTHING, *_WIDER.get(kind, ())}):
                yield f"{place}: {'no longer accepts' if sent else 'can now be'} {kind}"
        for kind in olds.keys() & news.keys():
            yield from self._branch(olds[kind], news[kind], place, sent=sent)

    def _branch(self, old: Json, new: Json, place: str, *, sent: bool) -> Iterator[str]:
        if _name(old) or _name(new):
            yield from self._schema(old, new, place, sent=sent)
            return
        yield from _values(old, new, place, sent=sent)
        if sent:
            yield from _bounds(old, new, place)
        if old.get("format") != new.get("format"):
            yield f"{place}: the format is now {new.get('format')}"
        yield from self._object(old, new, place, sent=sent)
        if "items" in old and "items" in new:
            yield from self._schema(old["items"], new["items"], f"{place}[]", sent=sent)

    def _object(self, old: Json, new: Json, place: str, *, sent: bool) -> Iterator[str]:
        properties, others = old.get("properties", {}), new.get("properties", {})
        for field, schema in properties.items():
            if field in others:
                yield from self._schema(schema, others[field], f"{place}.{field}", sent=sent)
            else:
                yield f"{place}.{field}: the field is gone"
        required, other_required = set(old.get("required", ())), set(new.get("required", ()))
        for field in sorted(
            other_required - required if sent else (required - other_required) & others.keys()
        ):
            yield f"{place}.{field}: the field is now {'required' if sent else 'optional'}"
        values, other_values = old.get("additionalProperties"), new.get("additionalProperties")
        if isinstance(values, dict) and isinstance(other_values, dict):
            yield from self._schema(values, other_values, f"{place}.*", sent=sent)
        elif sent and values is not False and other_values is False and old.get("type") == "object":
            yield f"{place}: no longer accepts other fields"

    def _branches(self, schema: Json, document: Json) -> dict[str, Json]:
        """The members of a union by what tells them apart; a schema that is no union is its only member."""
        members = schema.get("anyOf") or schema.get("oneOf")
        if members is None:
            return {_kind(schema): schema}
        found: dict[str, Json] = {}
        for member in members:
            resolved = self._resolved(member, document)
            if "anyOf" in resolved or "oneOf" in resolved:
                found.update(self._branches(resolved, document))
            elif resolved.get("type") == "object" and (name := _name(member)):
                found[name] = member
            else:
                found[_kind(resolved)] = resolved
        return found

    @staticmethod
    def _resolved(schema: Json, document: Json) -> Json:
        name = _name(schema)
        return document["components"]["schemas"][name] if name else schema


_WIDER = {"integer": ("number",)}


def _name(schema: Json) -> str:
    reference: str = schema.get("$ref", "")
    return reference.removeprefix("#/components/schemas/")


def _kind(schema: Json) -> str:
    kind: str = schema.get("type", _ANYTHING)
    return kind


def _values(old: Json, new: Json, place: str, *, sent: bool) -> Iterator[str]:
    before, after = _listed(old), _listed(new)
    if before is None and after is None:
        return
    if sent and after is not None:
        if before is None:
            yield f"{place}: accepts only {', '.join(map(str, after))}"
        else:
            yield from (f"{place}: no longer accepts {value}" for value in before if value not in after)
    if not sent and before is not None:
        if after is None:
            yield f"{place}: can now have any value"
        else:
            yield from (f"{place}: can now be {value}" for value in after if value not in before)


def _listed(schema: Json) -> list[Any] | None:
    values: list[Any] | None = [schema["const"]] if "const" in schema else schema.get("enum")
    return values


def _bounds(old: Json, new: Json, place: str) -> Iterator[str]:
    for key in (*_UPPER, *_LOWER):
        before, after = old.get(key), new.get(key)
        if after is None or before == after:
            continue
        if before is None or (after < before if key in _UPPER else after > before):
            yield f"{place}: {key} is now {after}"
    if "pattern" in new and new["pattern"] != old.get("pattern"):
        yield f"{place}: the pattern is now {new['pattern']}"


def without_texts(part: Any) -> Any:
    """Return a part of a document without what no client breaks on; names of fields are no keywords."""
    if isinstance(part, list):
        return [without_texts(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    return {
        key: {name: without_texts(inner) for name, inner in value.items()}
        if key in {"properties", "schemas"}
        else without_texts(value)
        for key, value in part.items()
        if key not in _TEXTS
    }


def accepted_breaks() -> list[str]:
    """Return the breaks that are accepted until the next release."""
    lines = ACCEPTED.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def release() -> None:
    """Make ``openapi.json`` the released document, and accept no break of it."""
    document = without_texts(json.loads(DOCUMENT.read_text(encoding="utf-8")))
    RELEASED.write_text(json.dumps(document, indent=0, separators=(",", ":")) + "\n", encoding="utf-8")
    ACCEPTED.write_text(_HEADER, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Compare the documents, or release; return the exit status."""
    if arguments == ["--release"]:
        release()
        return 0
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (RELEASED, DOCUMENT))
    breaks, accepted = find_breaks(old, new), accepted_breaks()
    for line in breaks:
        if line not in accepted:
            print(line)
    for line in accepted:
        if line not in breaks:
            print(f"{ACCEPTED.name} has a line that is no break: {line}")
    if set(breaks) == set(accepted):
        print(f"openapi.json keeps what clients of {old['info']['version']} rely on.")
        return 0
    print(f"These changes break clients. Undo them, or add deliberate ones to {ACCEPTED}.")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
