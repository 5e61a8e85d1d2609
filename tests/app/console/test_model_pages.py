"""The pages of models: versions side by side, mistakes, probabilities, promotion, and the model card."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from console_visitors import Visitor, visitor
from in_process_api import InProcessApi
from stack import departments

EXAMPLES = [
    {name: example[name] for name in ("id", "text", "labels", "split")} for example in departments(80)
]
for _example in EXAMPLES[::6]:
    _example["labels"] = ["sales"]  # some labels are wrong, so that versions make mistakes


@pytest.fixture(scope="module")
def trained(api: InProcessApi) -> dict[str, Any]:
    """A model with two versions: of naive Bayes, and of boosting on fewer examples with other parameters."""
    first = api.dataset(EXAMPLES)
    api.train(first, decision={"kind": "auto"})
    second = api.dataset(EXAMPLES[:60])
    api.train(second, learner={"algorithm": "mp_boost", "rounds": 12}, seed=3)
    model: dict[str, Any] = api.call("GET", "/v1/models/m", 200)
    return model


@pytest.fixture(scope="module")
def reader(api: InProcessApi, trained: dict[str, Any]) -> Visitor:
    return visitor(api, "read")


@pytest.fixture(scope="module")
def trainer(api: InProcessApi, trained: dict[str, Any]) -> Visitor:
    return visitor(api, "read", "train")


def test_models_are_listed_with_their_live_version(reader: Visitor) -> None:
    text = reader.see("/console/models")
    assert '<a href="/console/models/m">m</a>' in text
    assert '<a href="/console/models/m/versions/1">1</a>' in text
    assert "Train a model" not in text


def test_a_model_shows_its_versions_and_the_history_of_live(reader: Visitor, trainer: Visitor) -> None:
    text = reader.see("/console/models/m")
    assert re.search(r"MP-Boost</td>\s*<td class=.n.>[01]\.\d{3}</td>", text)
    assert "Put live" not in text
    assert "Compare the selected versions" in text
    assert "No version has been live" not in text
    button = 'data-api="PUT /v1/models/m/aliases/live" data-body=\'{"version": 2}\' data-if-match=\'"1"\''
    assert button in unescape(trainer.see("/console/models/m"))


def test_versions_are_compared_by_measures_parameters_and_data(reader: Visitor) -> None:
    text = reader.see("/console/models/m/compare?version=2&version=1")
    assert "Versions 2 and 1 of m" in text
    assert re.search(
        r"Overall quality \(F1\)</th>(<td[^>]*>.*?</td>){2}\s*<td class=.n.>[+-]0\.\d{4}</td>", text
    )
    assert 'aria-label="best">★' in text
    assert re.search(
        r"learner.algorithm</th><td><code>mp_boost</code></td><td><code>naive_bayes</code>", text
    )
    assert re.search(r"seed</th><td><code>3</code></td><td><code>0</code>", text)
    assert "features.kind" not in text, "equal parameters are not listed"
    assert re.search(r"training examples</th><td class=.n.>\d+</td><td class=.n.>\d+</td>", text)
    assert "trained on different content" in text
    assert "<svg" in text
    assert reader.see("/console/models/m/compare?version=2", status=422)


def test_a_version_shows_labels_mistakes_curves_and_probabilities(reader: Visitor, trainer: Visitor) -> None:
    text = reader.see("/console/models/m/versions/1")
    assert "Held-out examples" in text
    of_training = reader.see("/console/models/m/versions/1?part=train")
    assert "<h3>Mistakes of the same example</h3>" in of_training
    assert '<table class="heat">' in of_training
    assert "Reliability: label sets" in text
    assert "Share handled automatically" in text
    label = EXAMPLES[0]["labels"][0]
    row = re.search(
        rf'<th scope="row">{label}</th>((?:<td class=.n.>[^<]*</td>)+)', text[text.index('id="labels"') :]
    )
    assert row is not None
    assert row[1].count("<td ") == 6, "examples, predicted, precision, recall, F1, threshold"
    assert text.index("Departments, the worst first") < text.index("<dt>Learner</dt>")
    bars = re.findall(r'<td class="n">(0\.\d\d|1\.00)</td><td><svg [^>]*><rect width="', text)
    assert len(bars) > 1
    assert bars == sorted(bars)
    ways = text[text.index("How label sets are chosen") :]
    assert re.search(r'<th scope="row">(★ )?exactly one label</th><td>none, the best label</td>', ways)
    assert re.search(r'<th scope="row">(★ )?at most \d labels</th><td>one for all labels</td>', ways)
    assert "Learning curve" in reader.see("/console/models/m/versions/2")
    found = reader.see(f"/console/models/m/versions/1?labels={label}&part=train")
    assert "1 of 1 found" in found
    assert "Delete this version" not in text
    assert "Evaluate on a data set" in trainer.see("/console/models/m/versions/1")
    assert reader.see("/console/models/m/versions/99", status=404)


def test_the_live_version_leads_to_a_router_and_shows_the_main_measures_first(
    reader: Visitor, trainer: Visitor
) -> None:
    link = 'href="/console/routers/new?model=m"'
    live = trainer.see("/console/models/m/versions/1")
    assert link in live
    assert link not in reader.see("/console/models/m/versions/1")
    assert link not in trainer.see("/console/models/m/versions/2")
    assert (
        live.index("Messages with every department right")
        < live.index("All measures")
        < live.index("Log loss")
    )


def test_texts_of_documents_are_shown_only_with_the_scope_train(reader: Visitor, trainer: Visitor) -> None:
    path = "/console/models/m/versions/2?texts=true&part=train"
    for text, shown in ((reader.see(path), False), (trainer.see(path), True)):
        assert "Documents with the most wrong labels" in text
        assert ('<blockquote class="text">' in text) == shown


def test_a_model_card_is_downloaded_as_markdown(reader: Visitor) -> None:
    response = reader.get("/console/models/m/versions/1/card")
    assert response.headers["content-type"] == "text/markdown; charset=utf-8"
    assert response.headers["content-disposition"] == 'attachment; filename="m-1.md"'
    lines = response.text.splitlines()
    assert lines[0] == "# Model card: m, version 1"
    for heading in ("Training data", "Measures", "Labels", "Parameters", "Limitations", "Software"):
        assert f"## {heading}" in lines
    assert any(re.match("- Label sets: .* labels?; thresholds: ", line) for line in lines)
    assert any(line.startswith("| Overall quality (F1) | ") for line in lines)
    assert any(line.startswith(f"| {EXAMPLES[0]['labels'][0]} | ") for line in lines)


def test_an_imported_version_has_no_evaluation_and_can_get_one(api: InProcessApi, trainer: Visitor) -> None:
    artifact = api.send("GET", "/v1/models/m/versions/1/artifact").content
    headers = {"Content-Type": "application/octet-stream"}
    api.call("POST", "/v1/models/imported/versions", 201, content=artifact, headers=headers)
    text = trainer.see("/console/models/imported/versions/1")
    assert "This version has no evaluation of its training" in text
    assert 'data-api="POST /v1/models/imported/versions/1/evaluations"' in text
    assert "imported" in trainer.get("/console/models/imported/versions/1/card").text
