"""Parsing and validating JSON bodies: pieces, at most 50 errors, and limits on the number of values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError
from hypothesis import example, given
from hypothesis import strategies as st

from app.api import json_body
from app.api.errors import MAX_ERRORS
from app.api.json_body import parse, parse_leniently
from app.api.validation import MAX_VALUES, BodyValidator
from app.api.validation_errors import pointer
from app.datasets.schemas import DatasetCreate
from app.errors import BadRequest, Invalid, ServiceError, TooLarge
from app.routing.schemas import RouterPut
from app.serving.schemas import PredictRequest
from app.settings import Settings

PREDICT = BodyValidator(PredictRequest)
DATASET = BodyValidator(DatasetCreate)


def errors_of(validator: BodyValidator, given: Any, **options: Any) -> list[tuple[str, str]]:
    with pytest.raises(RequestValidationError) as caught:
        validator.validate(given, **options)
    return [(pointer(item, given), item["type"]) for item in caught.value.errors()]


def examples(n: int, **fields: Any) -> dict[str, Any]:
    return {"name": "x", "examples": [{"text": f"a{i}", "labels": ["b"], **fields} for i in range(n)]}


def test_a_large_body_gives_the_same_value_as_a_small_one() -> None:
    given = {**examples(7_000), "label_tree": {f"b{i}": "b" for i in range(5_000)}, "max_bad_records": 5.0}
    validated = DATASET.validate(given)
    assert validated == DatasetCreate.model_validate(given)
    assert validated == DATASET.validate(given, json.dumps(given).encode())
    assert validated.examples[6_999].text == "a6999"


def test_errors_in_a_large_body_have_their_places() -> None:
    given = examples(7_000)
    given["examples"][6_500]["text"] = 1
    given["examples"][3]["labels"] = [""]
    assert errors_of(DATASET, given) == [
        ("/examples/3/labels/0", "string_too_short"),
        ("/examples/6500/text", "string_type"),
    ]
    router = {"model": "m", "fallback": "a@b.c", "destinations": {f"l{i}": "a@b.c" for i in range(5_000)}}
    router["destinations"]["l4000"] = 1  # type: ignore[index]
    places = [place for place, _ in errors_of(BodyValidator(RouterPut), router)]
    assert places
    assert set(places) == {"/destinations/l4000"}


@pytest.mark.parametrize("value", [{"top": "5"}, {"explain": 0}, {"instances": [{"features": {"a": "1"}}]}])
def test_values_of_a_similar_type_are_rejected_in_bodies_of_every_size(value: dict[str, Any]) -> None:
    given = {"instances": [{"text": "a"}], **value}
    small = errors_of(PREDICT, given, body=json.dumps(given).encode())
    assert small == errors_of(PREDICT, given)
    assert len(small) == 1
    PREDICT.validate({"instances": [{"text": "a"}], "top": 5.0})


def test_validation_stops_at_the_fiftieth_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[int] = []
    check = DATASET._large["examples"].validate_json

    def spy(text: str, **options: Any) -> Any:
        pieces.append(len(text))
        return check(text, **options)

    monkeypatch.setattr(DATASET._large["examples"], "validate_json", spy)
    assert len(errors_of(DATASET, {"name": "x", "examples": [{}] * 100_000})) == MAX_ERRORS
    assert len(pieces) == 1


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({**examples(1), **{f"f{i}": 1 for i in range(MAX_VALUES)}}, ""),
        (examples(2, metadata={"a": [1] * MAX_VALUES}), "/examples/0"),
        (examples(2, features={f"f{i}": 1.5 for i in range(MAX_VALUES)}), "/examples/0"),
    ],
)
def test_too_many_values_are_rejected_with_their_place(given: Any, place: str) -> None:
    with pytest.raises(TooLarge, match="50,000 values") as caught:
        DATASET.validate(given)
    assert caught.value.errors[0][0] == place


@pytest.mark.parametrize("start", ['{"instances":[', '{"instances":[{"features":[', '{"x":['])
def test_a_list_that_is_too_long_is_not_read_to_its_end(start: str) -> None:
    """The rest is not even JSON."""
    body = start.encode() + b"1," * 200_000 + b"}"
    with pytest.raises(TooLarge, match="a list with more than 50,000 entries"):
        PREDICT.read_now(body, Settings())


@pytest.mark.parametrize("part", [b"[],", b"1,", b'"",', b'{"a":1},'])
def test_the_json_of_another_service_is_not_read_to_its_end(part: bytes) -> None:
    with pytest.raises(TooLarge):
        parse_leniently(b'{"a":1,"x":[' + part * 200_001 + b"}")


def test_the_json_of_another_service_can_contain_any_text() -> None:
    given = {"text": "a, [{" * 50_000 + "\0\ud800", "list": [1, {"a": None}]}
    body = json.dumps(given)
    assert parse_leniently(body) == parse_leniently(body.encode()) == given
    assert parse_leniently(b'{"a": 1, "a": 2}') == {"a": 2}


def test_thousands_of_errors_of_one_value_are_not_described() -> None:
    ((place, _),) = errors_of(DATASET, {"name": "x", **{f"f{i}": 1 for i in range(40_000)}})
    assert not place


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, 2.5, -1e3, "x\\n\\u00e9", null, true, {"b": []}], "c": {}}',
        '[NaN, 1, ""]',
        '{"a": 1',
        '{"a" 1}',
        "[1,]",
        '["\\x"]',
        "[1] 2",
        "01",
        "[" * 5_000,
        f"[{'1' * 5_000}]",
        '{"a": [{"b": 1, "b": 2}]}',
        '["a", {"b\\ud800": 1}]',
        '["\\ud83d\\ude00"]',
        '{"a": 1, "\\u0061": 2}',
        '{"a" :1, "a" :2, "b": "\\":"}',
        '{"a": {"b": 1}, "c": {"b": "\\": "}}',
        '{"a": {"a": [{"a": 1}, {"a": 2}]}}',
        '{"": 1, "": 2}',
        '{"a": {"b": 1, "b": 2}, "a": 3}',
        "[1e999, -1e999, 1e-999, 0.1, 123456789.123456789, -0, -0.0, 9007199254740993]",
        f"[{'1' * 100}, 1{'0' * 400}.0]",
        '\ufeff{"a": 1}',
        '["\x00"]',
        '"\\u007f"',
        "",
        " ",
        "nul",
        "[-NaN]",
        "[Infinity, -Infinity]",
        "[1_0]",
        "[" * 300 + "]" * 300,
    ],
)
def test_both_decoders_agree(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome() -> object:
        try:
            return repr(parse(text.encode()))
        except ServiceError as error:
            return type(error), error.detail, error.errors

    fast = outcome()
    monkeypatch.setattr(json_body, "_FAST_VALUES", -1)
    assert outcome() == fast


def test_a_repeated_field_that_hides_another_one_is_named() -> None:
    with pytest.raises(Invalid, match=r"^/a occurs twice"):
        parse(b'{"a": {"b": 1, "b": 2}, "a": 3}')


_PARTS = ['"a"', '"b"', '"\\u0061"', '"a:"', '"\\":"', *":,{}[]1", " :", " ", "-0", "NaN"]


@given(st.lists(st.sampled_from(_PARTS), max_size=12).map("".join))
@example('{"a":1,"a" :1}')
def test_no_object_with_a_repeated_field_is_accepted(text: str) -> None:
    pairs: list[list[tuple[str, Any]]] = []
    try:
        json.loads(text, object_pairs_hook=pairs.append)
    except ValueError:
        with pytest.raises(BadRequest):
            parse(text.encode())
        return
    if any(len({name for name, _ in own}) < len(own) for own in pairs):
        with pytest.raises(Invalid, match="occurs twice"):
            parse(text.encode())
    else:
        assert repr(parse(text.encode())) == repr(json.loads(text))


def test_too_many_objects_and_lists_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_body, "_FAST_VALUES", 10)
    monkeypatch.setattr(json_body, "MAX_CONTAINERS", 100)
    parse(b"[" + b",".join([b"[]"] * 99) + b"]")
    for part in (b"[]", b"{}"):
        with pytest.raises(TooLarge, match="more than 100 objects and lists"):
            parse(b"[" + b",".join([part] * 100) + b"]")


def test_an_object_with_too_many_fields_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_body, "_FAST_VALUES", 10)
    monkeypatch.setattr(json_body, "MAX_FIELDS", 100)
    parse(json.dumps({f"f{i}": 1 for i in range(100)}).encode())
    with pytest.raises(TooLarge, match="more than 100 fields"):
        parse(json.dumps({f"f{i}": 1 for i in range(101)}).encode())


def test_the_first_repeated_name_is_found_among_many() -> None:
    """The search takes linear time: it compares each object with one object."""
    objects = ['{"a": 1}'] * 20_000 + ['{"b": 1, "b": 1}'] * 20_000
    with pytest.raises(Invalid, match="/20000/b occurs twice"):
        parse(f"[{', '.join(objects)}]".encode())


def test_a_control_character_is_allowed_in_a_document_but_not_in_the_name_of_a_field() -> None:
    options: dict[str, Any] = {"documents": frozenset({"d"}), "parts": None}
    assert parse(b'{"d": ["\\u0001"]}', **options) == {"d": ["\x01"]}
    for text in (b'{"d": [{"\\u0001": "\\u0001"}]}', b'{"d": [{"\\u0001": 1}]}'):
        with pytest.raises(Invalid, match=r"^/d/0/\x01 contains the control character U\+0001"):
            parse(text, **options)
    for text in (b'{"d": "\\u0001"}', b'{"e": ["\\u0001"]}', b'"\\u0001"'):
        with pytest.raises(Invalid, match=r"contains the control character U\+0001"):
            parse(text, **options)


def test_surrogates_deep_inside_a_body_are_found() -> None:
    with pytest.raises(Invalid, match=r"(/0){900}/1 contains an unpaired surrogate"):
        parse(b"[" * 900 + b'["", "\\ud800"]' + b"]" * 900)
    with pytest.raises(BadRequest, match="nested too deeply"):
        parse(b"[" * 990 + b'"\\ud800"' + b"]" * 990, replace_surrogates=True)
