"""Ids, splits and labels follow one rule in all formats."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.data.limits import IngestLimits
from models.data.record import RecordError
from models.data.values.labels import parse_labels
from models.data.values.scalars import parse_id, parse_split, split_words

LIMITS = IngestLimits()


@pytest.mark.parametrize("value", [None, math.nan, np.nan, np.float64("nan"), "", "  "])
def test_a_missing_value_is_no_id_no_split_and_no_label(value: object) -> None:
    assert parse_id(value, "id", LIMITS) is None
    assert parse_split(value, "split") is None
    assert parse_labels(value, "labels", ",", LIMITS) == ([], [])


@pytest.mark.parametrize("value", [5, 5.0, np.int64(5), np.float32(5), "5", np.str_("5")])
def test_whole_numbers_are_ids_and_labels(value: object) -> None:
    assert parse_id(value, "id", LIMITS) == "5"
    assert parse_labels(value, "labels", ",", LIMITS).labels == ["5"]
    assert (
        parse_labels([value], "labels", ",", LIMITS).labels == ["5"]
        if not isinstance(value, np.generic)
        else True
    )


@pytest.mark.parametrize("value", [True, 1.5, math.inf, 2.0**60, b"x"])
def test_other_values_are_no_ids_and_no_labels(value: object) -> None:
    with pytest.raises(RecordError, match="the id must be a string or a whole number") as caught:
        parse_id(value, "/id", LIMITS)
    assert caught.value.field == "/id"
    with pytest.raises(RecordError):
        parse_labels(value, "/labels", ",", LIMITS)


def test_an_id_is_checked_as_a_name() -> None:
    with pytest.raises(RecordError, match="the limit is 512"):
        parse_id("x" * 513, "id", LIMITS)


@pytest.mark.parametrize(
    ("value", "split"),
    [
        ("train", "train"),
        (" Training ", "train"),
        ("VALIDATION", "validation"),
        ("val", "validation"),
        ("dev", "validation"),
        ("Test", "test"),
        ("testing", "test"),
    ],
)
def test_splits_have_common_words_in_any_case(value: str, split: str) -> None:
    assert parse_split(value, "split") == split


def test_the_user_adds_words_for_splits() -> None:
    words = split_words({"train": ["Lernen", "0"], "test": ["Prüfung", "1"]})
    assert [parse_split(value, "split", words) for value in ("lernen", "PRÜFUNG", 0, 1.0, "1", "val")] == [
        "train",
        "test",
        "train",
        "test",
        "test",
        "validation",
    ]
    assert parse_split(True, "split", split_words({"test": ["True"]})) == "test"
    with pytest.raises(ValueError, match="stands for two splits"):
        split_words({"train": ["a"], "test": ["A "]})


@pytest.mark.parametrize("value", ["holdout", 1, True, 0.5])
def test_a_word_that_is_no_split_is_refused_with_the_option_to_set(value: object) -> None:
    with pytest.raises(RecordError, match="set the option split_words"):
        parse_split(value, "split")


def test_lists_arrays_and_objects_are_labels() -> None:
    for value in (["a", "b"], ("a", "b"), np.array(["a", "b"]), np.array(["a", "b"], dtype=object)):
        assert parse_labels(value, "labels", ",", LIMITS).labels == ["a", "b"]
    assert parse_labels(np.array([3, 4]), "labels", ",", LIMITS).labels == ["3", "4"]
    assert parse_labels([], "labels", ",", LIMITS).labels == []
    assert parse_labels([" a,b"], "labels", ",", LIMITS).labels == [" a,b"]


def test_an_object_tells_unknown_labels_apart_from_labels_that_do_not_apply() -> None:
    cats = {"a": 1, "b": 0, "c": None, "d": True, "e": False, "f": -1, "g": 1.0, "h": math.nan}
    assert parse_labels(cats, "cats", ",", LIMITS) == (["a", "d", "g"], ["c", "f", "h"])
    assert parse_labels('{"a": 1, "b": 0, "c": null, "f": -1}', "cats", ",", LIMITS) == (["a"], ["c", "f"])


@pytest.mark.parametrize(
    ("value", "field", "reason"),
    [
        (["a", None], "/labels/1", "not a missing value"),
        (["a", True], "/labels/1", "not a boolean"),
        (["a", 0.5], "/labels/1", "not 0.5"),
        (["a", " "], "/labels/1", "must not be empty"),
        ([["a"]], "/labels/0", "not a list"),
        ([0, 1, 0], "/labels", "0 and 1 instead of names"),
        ({"a": 0.5}, "/labels", "which is a score"),
        ({"a": "perhaps"}, "/labels", "an object must map labels to 1 or 0"),
        ({" ": 1}, "/labels", "must not be empty"),
        ("a,b\x00", "/labels", "control characters"),
        ("x" * 513, "/labels", "the limit is 512"),
        ("a\nb", "/labels", "set the option label_separator"),
    ],
)
def test_a_value_that_is_no_label_is_refused_where_it_is(value: object, field: str, reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        parse_labels(value, "/labels", ",", LIMITS)
    assert (caught.value.field, reason in caught.value.reason) == (field, True), caught.value.reason


def test_the_error_names_a_column_without_a_position() -> None:
    with pytest.raises(RecordError) as caught:
        parse_labels(["a", None], "Team", ",", LIMITS)
    assert caught.value.field == "Team"
