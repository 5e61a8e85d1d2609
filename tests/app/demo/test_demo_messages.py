"""The e-mail of the demonstration has the intended composition, and a model can learn from it."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

import app.demo
from app.demo.generate import messages, records
from app.demo.run import TRAINING
from models import catalog
from models.catalog import LearnerConfig
from models.data.examples import Examples
from models.mail import Email, read_message
from models.pipeline import Pipeline

DEMO = Path(app.demo.__file__).parent
EXAMPLE_DOMAIN = re.compile(r"@(?:[\w-]+\.)?example\.(?:org|com|net)\b")


@pytest.fixture(scope="module")
def examples() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DEMO / "messages.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def pipeline(examples: list[dict[str, Any]]) -> Pipeline:
    """The pipeline that the demonstration trains."""
    learner: LearnerConfig = TypeAdapter(LearnerConfig).validate_python(TRAINING["learner"])
    return Pipeline(learner=catalog.create_learner(learner)).fit(part(examples, "train"))


def part(examples: list[dict[str, Any]], split: str) -> Examples:
    selected = [record for record in examples if record["split"] == split]
    mails = [
        Email(
            subject=record["email"]["subject"],
            from_=record["email"]["from"],
            to=record["email"]["to"],
            text=record["email"]["text"],
        )
        for record in selected
    ]
    return Examples("email", mails, [tuple(record["labels"]) for record in selected])


def test_the_file_is_generated_from_the_sentences(examples: list[dict[str, Any]]) -> None:
    sentences = tomllib.loads((DEMO / "sentences.toml").read_text("utf-8"))
    assert records(messages(sentences)) == examples


def test_the_composition_of_the_messages(examples: list[dict[str, Any]]) -> None:
    assert 300 <= len(examples) <= 500
    assert len({record["id"] for record in examples}) == len(examples)
    departments = Counter(label for record in examples for label in record["labels"])
    assert len(departments) >= 8
    assert min(departments.values()) >= 30
    assert set(departments) == {
        label for record in examples if record["split"] == "test" for label in record["labels"]
    }
    label_set_sizes = Counter(min(len(record["labels"]), 2) for record in examples)
    assert 0.14 <= label_set_sizes[2] / len(examples) <= 0.20
    assert label_set_sizes[0] >= 20
    assert 0.2 <= sum(record["split"] == "test" for record in examples) / len(examples) <= 0.3
    for record in examples:
        assert "{" not in record["email"]["text"] + record["email"]["subject"]


def test_every_address_has_an_example_domain(examples: list[dict[str, Any]]) -> None:
    texts = [json.dumps(record["email"]) for record in examples]
    texts += [path.read_text("utf-8") for path in DEMO.glob("*.eml")]
    for text in texts:
        assert text.count("@") == len(EXAMPLE_DOMAIN.findall(text))


def test_few_messages_name_their_department(examples: list[dict[str, Any]]) -> None:
    naming_department = [
        record
        for record in examples
        for label in record["labels"]
        if re.search(
            rf"\b{label.replace('_', ' ')}\b",
            f"{record['email']['subject']}\n{record['email']['text']}".lower(),
        )
    ]
    assert len(naming_department) < len(examples) / 20


def test_a_model_can_learn_from_the_messages(pipeline: Pipeline, examples: list[dict[str, Any]]) -> None:
    measures = pipeline.evaluate(part(examples, "test")).measures
    assert measures["f1_micro"] > 0.8
    assert measures["f1_macro"] > 0.8


@pytest.mark.parametrize(
    ("name", "departments"),
    [("single", ["technical_support"]), ("several", ["billing", "shipping"]), ("fallback", [])],
)
def test_the_raw_messages_go_to_the_right_departments(
    pipeline: Pipeline, name: str, departments: list[str]
) -> None:
    mail = read_message((DEMO / f"{name}.eml").read_bytes())
    assert mail.defects == ()
    assert pipeline.predictions([mail])[0].labels == departments
