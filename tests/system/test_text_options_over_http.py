"""Models with each option of text features are trained, serve and explain over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from stack import BYTES, Stack

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("stack")]

LINES = {
    "billing": "The Rechnungsbetrag of 12.50 is wrong, FATURA İADE, e-mail to ann@example.org",
    "shipping": "Where is my parcel #42? Kargo IŞIK, the Paketverfolgung shows nothing",
    "support": "The printer prints C++ errors, Yazıcı, Druckerproblem after the update",
}
EXAMPLES = [
    {"text": f"{text} n{i}", "labels": [label], "split": "test" if i == 3 else "train"}
    for label, text in LINES.items()
    for i in range(4)
]
ANALYZER: dict[str, Any] = {
    "character_ngrams": [3, 4],
    "token_characters": {"inside": "-.@", "anywhere": "#+"},
    "stop_words": {"words": ["Acme"], "include": "smart"},
    "fold_turkic_i": True,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "limits": {
        "weighting": "pivoted",
        "scaling": "unit",
        "smooth_idf": True,
        "min_df": 2,
        "max_df": 0.9,
        "max_features": 200,
        "analyzer": ANALYZER,
    },
    "hashing": {"weighting": "tf", "sublinear_tf": True, "hashing": {"n_features": 4096}},
    "spectrum": {
        "weighting": "tfidf",
        "sublinear_tf": True,
        "smooth_idf": True,
        "analyzer": {"unit": "spectrum", "ngrams": [4, 4], "stop_words": "auto", "stemmer": "auto"},
    },
}


def test_models_with_each_option_are_trained_and_explain(stack: Stack) -> None:
    dataset = stack.dataset(EXAMPLES)["id"]
    jobs = {
        name: stack.train(
            dataset,
            model=f"text-{name}",
            learner={"algorithm": "svm"},
            features={"kind": "text", **features},
            decision={"kind": "single_label"},
        )["id"]
        for name, features in OPTIONS.items()
    }
    for name, job_id in jobs.items():
        job = stack.finished(job_id)
        assert job["state"] == "succeeded", job.get("error")
        version = stack.call("GET", f"/v1/models/text-{name}/versions/1", 200)
        assert version["features"].items() >= {"kind": "text"}.items()
        request = {"instances": [{"text": "Iade Rechnung ANN@example.org"}], "explain": True}
        path = f"/v1/models/text-{name}"
        (prediction,) = stack.call("POST", f"{path}/predict", 200, json=request)["predictions"]
        assert prediction["labels"] == ["billing"]
        (explanation,) = prediction["explanation"]
        words = {word for term in explanation["terms"] for word in term["words"]}
        assert {word.casefold() for word in words} & {"iade", "rechnung", "ann@example.org", "ann"}
        artifact = stack.http.get(f"{path}/versions/1/artifact").content
        stack.call("POST", f"{path}-imported/versions", 201, content=artifact, headers=BYTES)
        imported = stack.call("POST", f"{path}-imported/predict", 200, json=request)["predictions"]
        assert imported == [prediction]


@pytest.mark.parametrize(
    ("features", "pointer"),
    [
        ({"max_df": 1.0}, "/features/text/max_df"),
        ({"weighting": "binary", "sublinear_tf": True}, "/features/text"),
        ({"hashing": {"n_features": 1}}, "/features/text/hashing/n_features"),
        (
            {"analyzer": {"token_characters": {"inside": "a"}}},
            "/features/text/analyzer/token_characters/inside",
        ),
        ({"analyzer": {"unit": "spectrum"}}, "/features/text/analyzer"),
    ],
)
def test_options_without_meaning_are_rejected(stack: Stack, features: dict[str, Any], pointer: str) -> None:
    body = {
        "model": "text-bad",
        "dataset_id": "ds_00000000000000000000000000",
        "learner": {"algorithm": "svm"},
        "features": {"kind": "text", **features},
    }
    problem = stack.call("POST", "/v1/training-jobs", 422, json=body)
    pointers = {error["pointer"].replace("/features/text", "/features") for error in problem["errors"]}
    expected = pointer.replace("/features/text", "/features")
    assert any(found.startswith(expected) for found in pointers), problem
