"""Responses of the hot path are written as their models would be, with exactly the same numbers and texts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from app.api.schemas import ResponseModel
from app.api.structs import to_builtins, to_json, unvalidated


class Item(ResponseModel):
    name: str | None = None
    number: float


class Response(ResponseModel):
    items: list[Item]
    first: Item | None = None
    exact: bool = False
    texts: dict[str, str] = Field(default_factory=dict)
    last: int | None = None


new_item, new_response = unvalidated(Item), unvalidated(Response)

NUMBERS = st.floats(-1e15, 1e15)  # larger ones are spelled differently: 1e16 and 1e+16
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
ITEMS = st.fixed_dictionaries({"number": NUMBERS}, optional={"name": st.none() | TEXTS})
FIELDS = st.fixed_dictionaries(
    {"items": st.lists(ITEMS)},
    optional={
        "first": st.none() | ITEMS,
        "exact": st.booleans(),
        "texts": st.dictionaries(TEXTS, TEXTS),
        "last": st.none() | st.integers(-(2**53), 2**53),
    },
)


@given(FIELDS)
def test_a_response_has_the_json_of_its_model(fields: dict[str, Any]) -> None:
    nested: dict[str, Any] = {"items": [new_item(**item) for item in fields["items"]]}
    if fields.get("first") is not None:
        nested["first"] = new_item(**fields["first"])
    response, model = new_response(**fields | nested), Response.model_validate(fields)

    assert to_json(response) == model.model_dump_json(exclude_none=True).encode()
    assert to_builtins(response) == model.model_dump(exclude_none=True)


def test_the_fields_have_the_order_of_the_model() -> None:
    response = new_response(last=3, items=[])
    response.first = new_item(number=1.0)
    assert to_json(response) == b'{"items":[],"first":{"number":1.0},"exact":false,"texts":{},"last":3}'


def test_a_field_without_a_default_is_required() -> None:
    with pytest.raises(TypeError, match="items"):
        new_response()  # type: ignore[call-arg] # mypy finds it too


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_read_back_as_the_same_bits(values: list[float]) -> None:
    read_back = json.loads(to_json(values))
    assert np.array(read_back, dtype=np.float64).tobytes() == np.array(values).tobytes()


@pytest.mark.parametrize("value", [np.float64(0.1), np.int64(3), np.bool_(True)])
def test_numbers_of_numpy_are_plain_numbers(value: np.generic) -> None:
    assert to_json(value) == to_json(value.item())
    assert to_builtins([value]) == [value.item()]


@given(TEXTS)
def test_texts_read_back_as_the_same_text(text: str) -> None:
    assert json.loads(to_json(text)) == text


def test_other_values_are_errors() -> None:
    with pytest.raises(TypeError, match="Item"):
        to_json(Item(number=1.0))
