"""Time and memory for a JSON body grow in proportion to its size, for every operation."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any

import pytest
from adversarial import ALPHABETS, check_memory, check_time, factors, repeat
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from app.api.json_body import parse
from app.api.validation import BodyValidator
from app.errors import ServiceError
from app.main import create_app
from app.routing.schemas import MessageParts
from app.settings import Settings

SIZE = 10_000
"""Bytes of the smallest body. The measured ones have this number and 8 times as many."""

VALUES: dict[str, Callable[[int], str]] = {
    "numbers": lambda n: f"[{','.join('1' * (n // 2))}]",
    "a long number": lambda n: "1." + "1" * n,
    "objects": lambda n: f"[{','.join(['{}'] * (n // 3))}]",
    "lists": lambda n: f"[{','.join(['[]'] * (n // 3))}]",
    "fields": lambda n: "{" + ",".join(f'"{i:x}":1' for i in range(n // 8)) + "}",
    "texts by field": lambda n: "{" + ",".join(f'"{i:x}":""' for i in range(n // 8)) + "}",
    "a chain": lambda n: "{" + ",".join(f'"{i:x}":"{i + 1:x}"' for i in range(n // 12)) + "}",
    "nested lists": lambda n: "[" * 400 + ",".join(["[]"] * (n // 3)) + "]" * 400,
    "repeated fields": lambda n: f"[{','.join(['{}'] * (n // 6))}," + '{"a":1,"a":1},' * (n // 28) + "1]",
    "unpaired surrogates": lambda n: "[" + '"\\ud800",' * (n // 9) + "1]",
    "escapes": lambda n: '"' + "\\u0301" * (n // 6) + '"',
}


def text_of(alphabet: str, size: int) -> str:
    return json.dumps(repeat(alphabet, size // 4), ensure_ascii=False)


TEXTS: dict[str, Callable[[int], str]] = {
    f"text of {name}": partial(text_of, alphabet) for name, alphabet in ALPHABETS.items()
}


@cache
def operations() -> dict[str, tuple[Any, BodyValidator]]:
    """Return schema and validator of the body of each operation that reads JSON."""
    types: dict[str, Any] = {"routers_route_message_parts": MessageParts}
    for route in create_app(Settings()).routes:
        if isinstance(route, APIRoute) and route.body_field is not None:
            types[route.unique_id] = route.body_field.field_info.annotation
    assert len(types) > 10
    return {operation: (body_type, BodyValidator(body_type)) for operation, body_type in types.items()}


def handle(validator: BodyValidator, body: bytes) -> None:
    with suppress(ServiceError, RequestValidationError):
        validator.validate(parse(body))


def handle_built(validator: BodyValidator, build: Callable[[int], bytes], size: int) -> None:
    handle(validator, build(size))


def body_with(before: str, value: Callable[[int], str], after: str, size: int) -> bytes:
    return f"{before}{value(size)}{after}".encode()


def bodies(body_type: Any, name: str) -> dict[str, Callable[[int], bytes]]:
    """Return functions that put a value of any size into each field, and make it the body."""
    value = {**VALUES, **TEXTS}[name]
    built: dict[str, Callable[[int], bytes]] = {"": lambda n: value(n).encode()}
    for key, field in getattr(body_type, "model_fields", {}).items():
        place = field.alias or key
        built[place] = partial(body_with, f'{{"{place}":', value, "}")
        if "list[" in str(field.annotation):
            built[f"{place}, in a list"] = partial(body_with, f'{{"{place}":[{{"text":', value, "}]}")
    return built


@factors
@pytest.mark.parametrize("name", [*VALUES, *TEXTS])
def test_time_grows_with_the_size_of_a_body(name: str, factor: int) -> None:
    for operation, (body_type, validator) in operations().items():
        for place, build in bodies(body_type, name).items():
            check_time(f"{operation}/{place}: {name}", partial(handle_built, validator, build), SIZE * factor)


@pytest.mark.parametrize("name", VALUES)
def test_memory_grows_with_the_size_of_a_body(name: str) -> None:
    body = f'{{"instances":{VALUES[name](4 * SIZE)}}}'.encode()
    for _, validator in operations().values():
        check_memory(name, partial(handle_built, validator, lambda _: body), 0, len(body))
