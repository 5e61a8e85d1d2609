"""Runs the examples of the README."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from models import catalog
from models.data.examples import Examples
from models.mail.email import Email
from models.pipeline import Pipeline

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def test_the_library_example_returns_the_stated_labels() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    *statements, call = example.rstrip().splitlines()
    expression, stated = call.split("  # ")
    names: dict[str, object] = {}
    exec("\n".join(statements), names)  # noqa: S102 - the example itself
    assert eval(expression, names) == eval(stated)  # noqa: S307


def email(parts: dict[str, str]) -> Email:
    return Email(subject=parts["subject"], text=parts["text"])


def test_the_response_at_the_top_is_that_of_the_first_model() -> None:
    text = README.read_text("utf-8")
    request, response = (
        json.loads(block)
        for block in re.findall(r"^(\{\"email.*?|\{\n  \"disp.*?)\n```", text, re.MULTILINE | re.DOTALL)
    )
    tour = (ROOT / "docs/tour.md").read_text("utf-8")
    first_training = re.findall(r"training-jobs -H \"\$JSON\" -d '(\{.*?\})'", tour, re.DOTALL)[0]
    training = json.loads(first_training.replace("'$DATASET'", ""))
    lines = (ROOT / "app/demo/messages.jsonl").read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["split"] == "train"]
    learner = catalog.LEARNER_PARAMETERS.validate_python(training["learner"])
    pipeline = Pipeline(learner=catalog.create_learner(learner)).fit(
        Examples("email", [email(row["email"]) for row in rows], [tuple(row["labels"]) for row in rows])
    )

    (prediction,) = pipeline.predictions([email(request["email"])], explain=True)

    assert prediction.set_probability is not None
    assert prediction.probabilities is not None
    scores, probabilities = dict(prediction.ranking), prediction.probabilities
    ranked = [label for label, _ in prediction.ranking]
    departments: list[dict[str, Any]] = response["departments"]
    assert [item["label"] for item in departments] == [
        label for label in ranked if label in prediction.labels
    ]
    for item in departments:
        assert item["score"] == round(scores[item["label"]], 2)
        assert item["probability"] == round(probabilities[ranked.index(item["label"])], 2)
    assert response["set_probability"] == round(prediction.set_probability, 2)
    for stated, explanation in zip(response["explanation"], prediction.explanation, strict=True):
        assert stated["label"] == explanation.label
        assert [(term["term"], term["weight"]) for term in stated["terms"]] == [
            (term.term, round(term.weight, 2)) for term in explanation.terms[:2]
        ]
