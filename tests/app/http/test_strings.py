"""No string of any request causes an internal error, or a resource that cannot be read again."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from api_process import Client, client_of
from commands import covey
from contract import DOCUMENT

from app.context import AppContext
from app.http.errors import Invalid
from app.http.json_body import parse

BAD = ("\\ud800", "\\u0000", "\\u001b")
"""JSON escapes of characters that no name, label or id may contain."""

MARK = "@bad@"


def examples_of(schema: dict[str, Any]) -> list[Any]:
    """Return the examples of a request's schema."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
    examples: list[Any] = schema.get("examples", [{}])
    return examples


def marked(value: Any) -> Iterator[Any]:
    """Yield copies of a JSON value, each with a mark in one string or in one name of a field."""
    if isinstance(value, str):
        yield value + MARK
    elif isinstance(value, dict):
        yield {**value, MARK: "x"}
        for name, inner in value.items():
            yield {key + MARK if key == name else key: part for key, part in value.items()}
            for changed in marked(inner):
                yield {**value, name: changed}
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            for changed in marked(inner):
                result = copy.copy(value)
                result[i] = changed
                yield result


def requests() -> Iterator[tuple[str, str, str | None, dict[str, str]]]:
    """Yield method, path, body and headers of requests with a mark in each place of each operation."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            plain = path.replace("{version}", "1").replace("{", "").replace("}", "")
            content = operation.get("requestBody", {}).get("content", {})
            headers = {"Content-Type": next(iter(content))} if content else {}
            body = None
            if "application/json" in content:
                headers = {"Content-Type": "application/json"}
                examples = examples_of(content["application/json"]["schema"])
                body = json.dumps(examples[0])
                for example in examples:
                    for changed in marked(example):
                        yield method, plain, json.dumps(changed), headers
            for parameter in operation.get("parameters", ()):
                name = parameter.get("name", "")
                if parameter.get("in") == "path" and name != "version":
                    yield (
                        method,
                        path.replace(f"{{{name}}}", f"x{MARK}")
                        .replace("{version}", "1")
                        .replace("{", "")
                        .replace("}", ""),
                        body,
                        headers,
                    )
                elif parameter.get("in") == "query":
                    yield method, f"{plain}?{name}=x{MARK}", body, headers


@pytest.mark.parametrize("kind_of_database", ["postgresql"])  # SQLite stores every character
def test_no_string_of_any_request_causes_an_internal_error(ctx: AppContext) -> None:
    with client_of(ctx) as client:
        sent = created = 0
        for method, path, body, headers in requests():
            for escape in BAD:
                character = json.loads(f'"{escape}"')
                encoded = "%ED%A0%80" if escape == "\\ud800" else f"%{ord(character):02x}"
                response = client.request(
                    method,
                    path.replace(MARK, encoded),
                    content=None if body is None else body.replace(MARK, escape).encode(),
                    headers=headers,
                )
                sent += 1
                what = (method, path, body, escape, response.text)
                assert response.status_code < 500, what
                if response.status_code >= 400:
                    assert response.headers["Content-Type"] == "application/problem+json", what
                    assert response.json()["detail"], what
                else:
                    created += method != "get"
        expect_readable(client)
    assert sent > 500
    assert created > 0, "texts of examples may contain control characters"


def expect_readable(client: Client) -> None:
    for path in ("datasets", "training-jobs", "experiments", "models", "routers", "api-keys"):
        page = client.get(f"/v1/{path}?limit=500")
        assert page.status_code == 200, page.text
        for item in page.json()["items"]:
            one = client.get(f"/v1/{path}/{item.get('id', item.get('name'))}")
            assert one.status_code in {200, 405}, one.text


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (rb'{"a": "\ud800"}', "/a"),
        (rb'{"a": ["b", "\udfff\ud800"]}', "/a/1"),
        (rb'{"\u0000": 1}', "/\0"),
        (rb'{"a": {"b": "\b"}}', "/a/b"),
        (b'{"a": "\x7f"}', "/a"),
        (rb'{"doc": {"text": "\ud800"}}', "/doc/text"),
        (rb'{"doc": {"id": "\u0000"}}', "/doc/id"),
        (rb'{"other": {"text": "\u0000"}}', "/other/text"),
    ],
)
def test_a_body_with_other_characters_than_text_is_rejected(body: bytes, pointer: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse(body, documents=frozenset({"doc"}))
    assert [place for place, _ in refused.value.errors] == [pointer]


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (rb'{"doc": {"text": "\u0000\u001b"}}', {"doc": {"text": "\0\x1b"}}),
        (rb'["\ud83d\ude00", "\t\n\r", "\\ud800", "\\u0000"]', ["😀", "\t\n\r", "\\ud800", "\\u0000"]),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
    ],
)
def test_text_and_documents_are_accepted(body: bytes, value: Any) -> None:
    assert parse(body, documents=frozenset({"doc"})) == value


@pytest.mark.parametrize(
    "body", [b'"\xed\xa0\x80"', '"\\u0000"'.encode("utf-16"), b'{"a": "\xff"}', '{"a": 1}'.encode("utf-32")]
)
def test_only_utf_8_is_json(body: bytes) -> None:
    with pytest.raises(Exception, match=r"not UTF-8|not JSON"):
        parse(body)


def test_surrogates_are_replaced_at_any_depth() -> None:
    text = r'"\ud800 \\ud800 \ud83d\ude00 \ud800\ud800"'
    assert parse(text.encode(), replace_surrogates=True) == "� \\ud800 😀 ��"
    deep = b"[" * 400 + rb'"\ud800"' + b"]" * 400
    parse(deep, replace_surrogates=True)
    with pytest.raises(Invalid):
        parse(deep)


def test_the_command_line_rejects_such_names(ctx: AppContext) -> None:
    environment = {"COVEY_DATABASE_URL": ctx.settings.database_url}
    for name in ("a\nb", "a\x1b[31m", "\udcff"):
        completed = covey("keys", "create", "--name", name, "--scope", "read", environment=environment)
        assert completed.returncode == 1, completed
        assert completed.stdout == ""
        assert "Traceback" not in completed.stderr
        assert "\x1b[31m" not in completed.stderr
