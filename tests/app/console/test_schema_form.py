"""Forms that are made from JSON Schemas: what they send is the request that they show."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from app.console.reading_again import FORM_FIELDS
from app.console.schema_form import Field, SchemaForm
from app.console.training import ADVANCED, BASIC
from app.console.words import words_for
from app.datasets.schemas import DatasetCreate
from app.experiments.schemas import ExperimentCreate
from app.pages.measures import MEASURES
from app.training.schemas import TrainingJobCreate
from models import catalog
from models.data.readers.registry import FORMATS

TRAINING = SchemaForm(TrainingJobCreate.model_json_schema())
LEARNERS = [item.algorithm for item in catalog.describe()]
NAMES = list(TrainingJobCreate.model_fields)


def sent(fields: Sequence[Field]) -> dict[str, Any]:
    """Return the body that the script of the console reads from the fields."""
    body: dict[str, Any] = {}
    for name, value in _values(fields):
        *path, last = name.split("/")
        place = body
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return body


def _values(fields: Sequence[Field]) -> Iterator[tuple[str, Any]]:
    for field in fields:
        if field.control == "union":
            chosen = next(variant for variant in field.variants if variant.selected)
            if chosen.sent:
                yield field.name, chosen.sent
            yield from _values(chosen.fields)
        elif field.control == "object":
            yield from _values(field.fields)
        elif field.value == "":
            continue
        elif field.control == "json":
            yield field.name, json.loads(field.value)
        elif field.control == "lines":
            yield field.name, field.value.splitlines()
        else:
            yield field.name, field.value


def validated(values: Mapping[str, Any]) -> TrainingJobCreate:
    """Return the request of a form that shows some values, and the learner that the page shows."""
    shown = {
        "model": "helpdesk",
        "dataset_id": "ds_1",
        "learner": {"algorithm": catalog.RECOMMENDED},
        **values,
    }
    return TrainingJobCreate.model_validate(sent(TRAINING.fields(NAMES, shown)))


@pytest.mark.parametrize("algorithm", [item.algorithm for item in catalog.describe()])
def test_the_form_of_a_learner_sends_its_defaults(algorithm: str) -> None:
    learner = {"algorithm": algorithm}
    filled = validated({"learner": learner}).learner
    assert filled == catalog.LEARNER_PARAMETERS.validate_python(learner)


@pytest.mark.parametrize(
    "example",
    [
        *TrainingJobCreate.model_json_schema()["examples"],
        {
            "learner": {"algorithm": "mp_boost", "early_stopping": {"patience": 3, "metric": "hamming_loss"}},
            "split": {"kind": "random", "test_fraction": 0.3},
            "decision": {"kind": "auto", "optimize": {"kind": "cost", "labels": {"a": {"false_label": 2}}}},
            "features": {"kind": "text", "min_df": 0.5, "analyzer": {"stop_words": {"words": ["the", "of"]}}},
            "promote": "never",
            "seed": 7,
        },
        {
            "learner": {"algorithm": "h_m3", "kernel": {"kind": "polynomial", "degree": 3}},
            "features": {"kind": "numeric", "interactions": 2},
            "covering": {"kind": "groups", "groups": [{"labels": ["a", "b"]}]},
        },
        {
            "learner": {"algorithm": "adaboost_lc", "template": "sequential"},
            "decision": {"kind": "top_k", "k": 2},
        },
        {"learner": {"algorithm": "h_m3", "kernel": "rbf"}, "decision": {"kind": "sign"}},
    ],
)
def test_the_form_sends_the_request_that_it_shows(example: dict[str, Any]) -> None:
    expected = TrainingJobCreate.model_validate({"model": "helpdesk", "dataset_id": "ds_1", **example})
    assert validated(example) == expected
    again = expected.model_dump(mode="json", exclude_none=True)
    assert validated(again) == expected, "a job is shown with all its defaults"


def test_every_parameter_has_a_sentence_of_help_and_its_limits() -> None:
    (learner,) = TRAINING.fields(["learner"], {"learner": {"algorithm": "svm"}})
    assert {variant.key for variant in learner.variants} == {item.algorithm for item in catalog.describe()}
    assert [variant.key for variant in learner.variants if variant.selected] == ["svm"]
    for variant in learner.variants:
        for field in variant.fields:
            assert field.help, f"{variant.key}: {field.name}"
    boosting = next(variant for variant in learner.variants if variant.key == "mp_boost")
    rounds = next(field for field in boosting.fields if field.part == "rounds")
    assert (rounds.control, rounds.default, dict(rounds.attributes)) == (
        "integer",
        "200",
        {"min": "1", "max": "100000"},
    )


def test_ids_are_unique_although_variants_share_names() -> None:
    def ids(fields: Sequence[Field]) -> Iterator[str]:
        for field in fields:
            yield field.id
            yield from ids(field.fields)
            for variant in field.variants:
                yield from ids(variant.fields)

    found = list(ids(TRAINING.fields(NAMES, {})))
    assert len(found) == len(set(found)) > 100


def test_a_description_is_escaped() -> None:
    schema = {"properties": {"x": {"type": "integer", "description": "Below `y` & <b>."}}}
    (field,) = SchemaForm(schema).fields(["x"], {})
    assert field.help == "Below <code>y</code> &amp; &lt;b&gt;."


def test_the_format_of_an_upload_is_detected_unless_a_person_chooses_it() -> None:
    form = SchemaForm(DatasetCreate.model_json_schema())
    (options,) = form.fields(["options"], {})
    assert sent([options]) == {}
    assert {variant.key for variant in options.variants} == {"default", *FORMATS}
    (options,) = form.fields(
        ["options"], {"options": {"format": "csv", "text": "body", "labels": ["a", "b"]}}
    )
    body = DatasetCreate.model_validate({"name": "x", **sent([options])})
    assert body == DatasetCreate.model_validate(
        {"name": "x", "options": {"format": "csv", "text": "body", "labels": ["a", "b"]}}
    )


FORMS = (
    (TrainingJobCreate, [*BASIC, *ADVANCED]),
    (ExperimentCreate, ["name", "split", "seed"]),
    (DatasetCreate, FORM_FIELDS),
)


def texts(fields: Sequence[Field]) -> Iterator[tuple[str, str, str]]:
    """Yield each name of the API in fields, the words that the form shows for it, and the help."""
    for field in (field for field in fields if field.control != "constant"):
        name = field.name.removesuffix("/kind").rpartition("/")[2]
        yield name, field.label, str(field.help)
        for choice, words in field.options:
            yield str(choice), words, ""
        yield from texts(field.fields)
        for variant in field.variants:
            yield variant.key, variant.label, str(variant.help)
            yield from texts(variant.fields)


@pytest.mark.parametrize(("schema", "names"), FORMS, ids=lambda value: getattr(value, "__name__", ""))
def test_forms_use_no_names_of_the_api(schema: type[BaseModel], names: list[str]) -> None:
    shown = set(texts(SchemaForm(schema.model_json_schema()).fields(names, {})))
    assert len(shown) > 5
    missing = {name for name, words, _ in shown if "_" in name and words.lower() == name.replace("_", " ")}
    assert [name for name in missing if not words_for(name)] == [], "add words to app/console/words.py"
    for _, _, help_ in shown:
        assert "/v1/" not in help_
        assert not re.search(rf"<code>({'|'.join(MEASURES)}|{'|'.join(LEARNERS)})</code>", help_), help_


def test_a_single_value_that_can_be_absent_is_a_choice() -> None:
    form = SchemaForm(DatasetCreate.model_json_schema())
    for value, shown in ((None, ""), ("similar", "similar")):
        (field,) = form.fields(["merge_labels"], {"merge_labels": value})
        assert (field.control, field.value, field.choices) == ("choice", shown, ["similar"])


def test_a_name_has_a_pattern_that_browsers_accept_and_explain() -> None:
    (field,) = TRAINING.fields(["model"], {})
    # With the flag `v`, browsers reject a hyphen without a backslash in a class.
    assert field.attributes["pattern"] == r"[A-Za-z0-9][A-Za-z0-9_\-]{0,63}"
    assert field.attributes["title"].startswith("Letters, digits, - and _")
