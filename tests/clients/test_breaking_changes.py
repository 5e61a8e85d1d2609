"""Changes of the OpenAPI document that break clients are found, and others are not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import breaking_changes
import pytest

DOCUMENT: dict[str, Any] = {
    "info": {"version": "1.0.0"},
    "paths": {
        "/cats": {
            "post": {
                "operationId": "cats_create",
                "parameters": [
                    {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 500}},
                    {"name": "cursor", "in": "query", "schema": {"type": "string"}},
                ],
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/CatCreate"}}}
                },
                "responses": {
                    "201": {
                        "headers": {"ETag": {}},
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Cat"}}},
                    },
                    "404": {"content": {}},
                },
            }
        }
    },
    "components": {
        "schemas": {
            "CatCreate": {
                "type": "object",
                "required": ["name"],
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string", "maxLength": 10},
                    "colour": {"type": "string", "enum": ["black", "white"]},
                    "food": {"anyOf": [{"$ref": "#/components/schemas/Fish"}, {"type": "null"}]},
                    "toys": {"type": "array", "items": {"type": "string"}},
                },
            },
            "Cat": {
                "type": "object",
                "required": ["name", "state"],
                "properties": {
                    "name": {"type": "string"},
                    "state": {"$ref": "#/components/schemas/State"},
                    "weights": {
                        "type": "object",
                        "additionalProperties": {"type": "number", "format": "double"},
                    },
                },
            },
            "Fish": {
                "type": "object",
                "required": ["kind"],
                "properties": {"kind": {"type": "string", "const": "fish"}},
            },
            "State": {"type": "string", "enum": ["asleep", "awake"]},
        }
    },
}

Change = Callable[[Any, Any], Any]
"""Changes the only operation and the schemas of a document."""


def changed(change: Change) -> list[str]:
    document = copy.deepcopy(DOCUMENT)
    change(document["paths"]["/cats"]["post"], document["components"]["schemas"])
    return breaking_changes.find_breaks(DOCUMENT, document)


BREAKS: dict[str, Change] = {
    "POST /cats: the operationId has changed": lambda o, _: o.update(operationId="create_cat"),
    "POST /cats: parameter cursor is gone": lambda o, _: o["parameters"].pop(),
    "POST /cats: parameter limit is now required": lambda o, _: o["parameters"][0].update(required=True),
    "POST /cats: parameter x is new and required": lambda o, _: o["parameters"].append(
        {"name": "x", "in": "query", "required": True, "schema": {}}
    ),
    "POST /cats: parameter limit: maximum is now 100": lambda o, _: o["parameters"][0]["schema"].update(
        maximum=100
    ),
    "POST /cats: request body is now required": lambda o, _: o["requestBody"].update(required=True),
    "POST /cats: request body: media type application/json is gone": lambda o, _: o["requestBody"].update(
        content={}
    ),
    "POST /cats: response 201 is gone": lambda o, _: o["responses"].pop("201"),
    "POST /cats: response 201: header ETag is gone": lambda o, _: o["responses"]["201"].pop("headers"),
    "POST /cats: response 201: media type application/json is gone": lambda o, _: o["responses"][
        "201"
    ].update(content={}),
    "CatCreate.toys: the field is gone": lambda _, s: s["CatCreate"]["properties"].pop("toys"),
    "CatCreate.toys: the field is now required": lambda _, s: s["CatCreate"]["required"].append("toys"),
    "CatCreate.name: maxLength is now 5": lambda _, s: s["CatCreate"]["properties"]["name"].update(
        maxLength=5
    ),
    "CatCreate.name: minLength is now 1": lambda _, s: s["CatCreate"]["properties"]["name"].update(
        minLength=1
    ),
    "CatCreate.name: the pattern is now ^a": lambda _, s: s["CatCreate"]["properties"]["name"].update(
        pattern="^a"
    ),
    "CatCreate.name: no longer accepts string": lambda _, s: s["CatCreate"]["properties"]["name"].update(
        type="integer"
    ),
    "CatCreate.toys[]: no longer accepts string": lambda _, s: s["CatCreate"]["properties"]["toys"].update(
        items={"type": "integer"}
    ),
    "CatCreate.colour: no longer accepts black": lambda _, s: s["CatCreate"]["properties"]["colour"][
        "enum"
    ].remove("black"),
    "CatCreate.name: accepts only Tom": lambda _, s: s["CatCreate"]["properties"]["name"].update(
        enum=["Tom"]
    ),
    "CatCreate.food: no longer accepts null": lambda _, s: s["CatCreate"]["properties"]["food"][
        "anyOf"
    ].pop(),
    "CatCreate.food: no longer accepts Fish": lambda _, s: s["CatCreate"]["properties"]["food"].update(
        anyOf=[{"type": "null"}, {"type": "string"}]
    ),
    "Cat.weights: the field is gone": lambda _, s: s["Cat"]["properties"].pop("weights"),
    "Cat.name: the field is now optional": lambda _, s: s["Cat"]["required"].remove("name"),
    "Cat.name: can now be null": lambda _, s: s["Cat"]["properties"].update(
        name={"anyOf": [{"type": "string"}, {"type": "null"}]}
    ),
    "Cat.weights.*: the format is now float": lambda _, s: s["Cat"]["properties"]["weights"][
        "additionalProperties"
    ].update(format="float"),
    "State: can now be dreaming": lambda _, s: s["State"]["enum"].append("dreaming"),
    "State: can now have any value": lambda _, s: s["State"].pop("enum"),
    "Fish: the schema is gone": lambda _, s: (
        s.update(Herring=s.pop("Fish")),
        s["CatCreate"]["properties"]["food"].update(anyOf=[{"$ref": "#/components/schemas/Herring"}]),
    ),
}


@pytest.mark.parametrize("message", BREAKS)
def test_a_change_that_breaks_clients_is_found(message: str) -> None:
    assert message in changed(BREAKS[message])


def test_an_operation_that_is_gone_is_found() -> None:
    assert breaking_changes.find_breaks(DOCUMENT, {**DOCUMENT, "paths": {}}) == [
        "POST /cats: the operation is gone"
    ]


HARMLESS: dict[str, Change] = {
    "new parameter": lambda o, _: o["parameters"].append({"name": "x", "in": "query", "schema": {}}),
    "greater limit": lambda o, _: o["parameters"][0]["schema"].update(maximum=1000),
    "new media types": lambda o, _: (
        o["requestBody"]["content"].update({"text/csv": {}}),
        o["responses"]["201"]["content"].update({"text/csv": {}}),
    ),
    "new header": lambda o, _: o["responses"]["201"]["headers"].update(Location={}),
    "error that is gone": lambda o, _: o["responses"].pop("404"),
    "new fields": lambda _, s: (
        s["CatCreate"]["properties"].update(age={"type": "integer"}),
        s["Cat"]["properties"].update(age={"type": "integer"}),
    ),
    "new required field of a response": lambda _, s: (
        s["Cat"]["properties"].update(age={"type": "integer"}),
        s["Cat"]["required"].append("age"),
    ),
    "field of a request that is no longer required": lambda _, s: s["CatCreate"].pop("required"),
    "new value of a request": lambda _, s: s["CatCreate"]["properties"]["colour"]["enum"].append("red"),
    "value that is no longer returned": lambda _, s: s["State"]["enum"].pop(),
    "new member of a union of a request": lambda _, s: (
        s.update(Bird={"type": "object", "properties": {}}),
        s["CatCreate"]["properties"]["food"]["anyOf"].append({"$ref": "#/components/schemas/Bird"}),
    ),
    "descriptions": lambda o, s: (o.update(description="x"), s["Cat"].update(description="x")),
}


@pytest.mark.parametrize("change", HARMLESS)
def test_a_change_that_clients_need_not_know_is_accepted(change: str) -> None:
    assert changed(HARMLESS[change]) == []


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A released document in files, and the present one with one field less."""
    for name, file in (("RELEASED", "released.json"), ("ACCEPTED", "accepted.txt"), ("DOCUMENT", "new.json")):
        monkeypatch.setattr(breaking_changes, name, tmp_path / file)
    (tmp_path / "new.json").write_text(json.dumps(DOCUMENT))
    assert breaking_changes.main(["--release"]) == 0
    assert breaking_changes.main([]) == 0
    document = copy.deepcopy(DOCUMENT)
    document["components"]["schemas"]["CatCreate"]["properties"].pop("toys")
    (tmp_path / "new.json").write_text(json.dumps(document))
    return tmp_path


def test_a_break_fails_until_it_is_accepted(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert breaking_changes.main([]) == 1
    assert "CatCreate.toys: the field is gone\n" in capsys.readouterr().out
    with (files / "accepted.txt").open("a") as file:
        file.write("CatCreate.toys: the field is gone\n")
    assert breaking_changes.main([]) == 0


def test_an_accepted_line_that_is_no_break_fails(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "accepted.txt").write_text("CatCreate.toys: the field is gone\nCat: the schema is gone\n")
    assert breaking_changes.main([]) == 1
    assert "no break: Cat: the schema is gone\n" in capsys.readouterr().out


def test_a_release_accepts_the_present_document(files: Path) -> None:
    assert breaking_changes.main(["--release"]) == 0
    assert breaking_changes.main([]) == 0
    assert breaking_changes.accepted_breaks() == []


def test_the_released_document_has_no_texts() -> None:
    fields = {"properties": {"title": {"type": "string", "description": "x"}}, "description": "x"}
    assert breaking_changes.without_texts(fields) == {"properties": {"title": {"type": "string"}}}
