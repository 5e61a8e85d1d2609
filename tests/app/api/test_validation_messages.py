"""Messages about invalid fields of request bodies."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError

from app.api.validation import BodyValidator
from app.api.validation_errors import pointer
from app.serving.schemas import PredictRequest
from app.training.schemas import TrainingJobCreate

TRAINING = BodyValidator(TrainingJobCreate)


def messages(validator: BodyValidator, given: Any) -> list[tuple[str, str]]:
    with pytest.raises(RequestValidationError) as caught:
        validator.validate(given)
    return [(pointer(item, given), item["msg"]) for item in caught.value.errors()]


def training(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "dataset_id": "d", "learner": {"algorithm": "svm"}, **fields}


@pytest.mark.parametrize(
    ("fields", "place", "message"),
    [
        ({"lerner": 1}, "/lerner", "is unknown; did you mean 'learner'?"),
        (
            {"learner": {"algorithm": "svm", "round": 5}},
            "/learner/round",
            "is unknown; the fields here are C, algorithm, class_weight, precision, prune",
        ),
        (
            {"learner": {"algorithm": "mp_boost", "round": 5}},
            "/learner/round",
            "is unknown; did you mean 'rounds'?",
        ),
        (
            {"features": {"kind": "text", "hashing": {"bits": 10}}},
            "/features/hashing/bits",
            "is unknown; the only field here is n_features",
        ),
        ({"features": {"kind": "text", "hashing": 10}}, "/features/hashing", "Input should be an object"),
        (
            {"decision": {"kind": "auto", "optimize": {"kind": "cost", "labels": {"a": {"missed": 2}}}}},
            "/decision/optimize/labels/a/missed",
            "is unknown; the fields here are false_label, missed_label",
        ),
    ],
)
def test_an_unknown_field_is_named_with_the_fields_of_the_same_object(
    fields: dict[str, Any], place: str, message: str
) -> None:
    assert (place, message) in messages(TRAINING, training(**fields))


def test_an_unknown_field_in_an_entry_of_a_list_is_named() -> None:
    given = {"instances": [{"text": "a"}, {"txt": "a"}]}
    found = dict(messages(BodyValidator(PredictRequest), given))
    assert found["/instances/1/txt"] == "is unknown; did you mean 'text'?"


@pytest.mark.parametrize(
    ("fields", "place", "message"),
    [
        (
            {"split": {"kind": "fold"}},
            "/split/kind",
            "Input should be one of 'given', 'random', 'none'",
        ),
        ({"decision": {"value": 0.9}}, "/decision/kind", "Field required"),
    ],
)
def test_a_wrong_or_missing_kind_is_named(fields: dict[str, Any], place: str, message: str) -> None:
    assert messages(TRAINING, training(**fields)) == [(place, message)]
