"""The e-mail that the project ships: what it is made of, and that it can be learned from."""

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
from models.catalog import FeaturesConfig, LearnerConfig
from models.data.examples import Examples
from models.mail import Email, read_message
from models.pipeline import Pipeline

DEMO = Path(app.demo.__file__).parent
INVENTED = re.compile(r"@(?:[\w-]+\.)?example\.(?:org|com|net)\b")


@pytest.fixture(scope="module")
def shipped() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DEMO / "messages.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def pipeline(shipped: list[dict[str, Any]]) -> Pipeline:
    """The model that the demonstration trains."""
    features: FeaturesConfig = TypeAdapter(FeaturesConfig).validate_python(TRAINING["features"])
    learner: LearnerConfig = TypeAdapter(LearnerConfig).validate_python(TRAINING["learner"])
    return Pipeline.from_parameters(features, learner).fit(part(shipped, "train"))


def part(shipped: list[dict[str, Any]], split: str) -> Examples:
    chosen = [record for record in shipped if record["split"] == split]
    mails = [
        Email(
            subject=record["email"]["subject"],
            from_=record["email"]["from"],
            to=record["email"]["to"],
            text=record["email"]["text"],
        )
        for record in chosen
    ]
    return Examples("email", mails, [tuple(record["labels"]) for record in chosen])


def test_the_file_is_what_the_sentences_give(shipped: list[dict[str, Any]]) -> None:
    sentences = tomllib.loads((DEMO / "sentences.toml").read_text("utf-8"))
    assert records(messages(sentences)) == shipped


def test_what_it_is_made_of(shipped: list[dict[str, Any]]) -> None:
    assert 300 <= len(shipped) <= 500
    assert len({record["id"] for record in shipped}) == len(shipped)
    departments = Counter(label for record in shipped for label in record["labels"])
    assert len(departments) >= 8
    assert min(departments.values()) >= 30
    assert set(departments) == {
        label for record in shipped if record["split"] == "test" for label in record["labels"]
    }
    share = Counter(min(len(record["labels"]), 2) for record in shipped)
    assert 0.14 <= share[2] / len(shipped) <= 0.20
    assert share[0] >= 20
    assert 0.2 <= sum(record["split"] == "test" for record in shipped) / len(shipped) <= 0.3
    for record in shipped:
        assert "{" not in record["email"]["text"] + record["email"]["subject"]


def test_every_address_is_invented(shipped: list[dict[str, Any]]) -> None:
    texts = [json.dumps(record["email"]) for record in shipped]
    texts += [path.read_text("utf-8") for path in DEMO.glob("*.eml")]
    for text in texts:
        assert text.count("@") == len(INVENTED.findall(text))


def test_few_messages_name_their_department(shipped: list[dict[str, Any]]) -> None:
    named = [
        record
        for record in shipped
        for label in record["labels"]
        if re.search(
            rf"\b{label.replace('_', ' ')}\b",
            f"{record['email']['subject']}\n{record['email']['text']}".lower(),
        )
    ]
    assert len(named) < len(shipped) / 20


def test_it_can_be_learned_from(pipeline: Pipeline, shipped: list[dict[str, Any]]) -> None:
    measures = pipeline.evaluate(part(shipped, "test")).measures
    assert measures["f1_micro"] > 0.8
    assert measures["f1_macro"] > 0.8


@pytest.mark.parametrize(
    ("name", "departments"),
    [("single", ["technical_support"]), ("several", ["billing", "shipping"]), ("fallback", [])],
)
def test_the_raw_messages_go_where_a_person_would_send_them(
    pipeline: Pipeline, name: str, departments: list[str]
) -> None:
    mail = read_message((DEMO / f"{name}.eml").read_bytes())
    assert mail.defects == ()
    assert pipeline.predict([mail])[0].labels == departments
