"""The pivots of every round and label, and the accuracy of every round, over HTTP."""

from __future__ import annotations

import math
from typing import Any

import in_process
import pytest
from contract import problem_of
from in_process_api import InProcessApi

TRAIN = [
    ("red round", ["apple"]),
    ("red round sweet", ["apple"]),
    ("green round sweet", ["apple", "pear"]),
    ("green long", ["pear"]),
    ("green sweet", ["pear"]),
    ("yellow long sweet", []),
]
TEST = [("red", ["apple"]), ("green round", ["pear"]), ("yellow", []), ("long round red", ["apple"])]
WORDS = ["green", "long", "red", "round", "sweet", "yellow"]
LABELS = ["apple", "pear"]
ROUNDS = 7
EXAMPLES = [
    {"text": text, "labels": labels, "split": split}
    for split, documents in (("train", TRAIN), ("test", TEST))
    for text, labels in documents
]
Hypothesis = list[tuple[str, float, float]]
"""The pivot of each label with its two predictions."""


def literal_rounds(*, shared: bool) -> list[Hypothesis]:
    """AdaBoost.MH (shared pivots) or MP-Boost on the training part, written out in loops."""
    documents = [set(text.split()) for text, _ in TRAIN]
    phi = [[1 if label in labels else -1 for label in LABELS] for _, labels in TRAIN]
    g, k = len(documents), len(LABELS)
    D = [[1 / (g * k) if shared else 1 / g for _ in LABELS] for _ in documents]
    epsilon = 1 / (g * k)

    def W(word: str, present: bool, j: int, sign: int) -> float:  # noqa: N802
        inside = [i for i in range(g) if (word in documents[i]) == present and phi[i][j] == sign]
        return sum(D[i][j] for i in inside)

    def Z(word: str, j: int) -> float:  # noqa: N802
        return sum(2 * math.sqrt(W(word, x, j, 1) * W(word, x, j, -1)) for x in (False, True))

    def best(labels: list[int]) -> str:
        losses = {word: sum(Z(word, j) for j in labels) for word in WORDS}
        return next(word for word in WORDS if losses[word] <= min(losses.values()) + 1e-12)

    rounds = []
    for _ in range(ROUNDS):
        pivots = [best([0, 1] if shared else [j]) for j in range(k)]
        hypothesis = []
        for j, word in enumerate(pivots):
            absent, present = (
                0.5 * math.log((W(word, x, j, 1) + epsilon) / (W(word, x, j, -1) + epsilon))
                for x in (False, True)
            )
            hypothesis.append((word, absent, present))
        rounds.append(hypothesis)
        for i, document in enumerate(documents):
            for j, (word, absent, present) in enumerate(hypothesis):
                D[i][j] *= math.exp(-phi[i][j] * (present if word in document else absent))
        for j in range(k):
            total = sum(map(sum, D)) if shared else sum(row[j] for row in D)
            if not shared or j == 0:
                for row in D:
                    for column in range(k) if shared else [j]:
                        row[column] /= total
    return rounds


def literal_accuracies(rounds: list[Hypothesis], documents: list[tuple[str, list[str]]]) -> list[float]:
    """After each round, the share of documents whose predicted label set is right."""
    scores = [[0.0] * len(LABELS) for _ in documents]
    accuracies = []
    for hypothesis in rounds:
        right = 0
        for own, (text, labels) in zip(scores, documents, strict=True):
            for j, (word, absent, present) in enumerate(hypothesis):
                own[j] += present if word in text.split() else absent
            right += [label for label, score in zip(LABELS, own, strict=True) if score > 0] == labels
        accuracies.append(right / len(documents))
    return accuracies


def configuration(algorithm: str, **parameters: Any) -> dict[str, Any]:
    return {
        "learner": {"algorithm": algorithm, "rounds": ROUNDS, **parameters},
        "features": {"kind": "text", "analyzer": {"stop_words": "none", "stemmer": "none"}},
        "decision": {"kind": "sign"},
    }


def dataset_of(service: InProcessApi, examples: list[dict[str, Any]]) -> str:
    created: str = service.call("POST", "/v1/datasets", 201, json={"name": "d", "examples": examples})["id"]
    in_process.work(service.ctx)
    return created


def train(service: InProcessApi, examples: list[dict[str, Any]], **body: Any) -> dict[str, Any]:
    """Train version 1 of model ``m`` of a new data set, and return the job."""
    request = {"model": "m", "dataset_id": dataset_of(service, examples), "split": {"kind": "given"}, **body}
    job = service.call("POST", "/v1/training-jobs", 202, json=request)
    in_process.work(service.ctx)
    finished: dict[str, Any] = service.call("GET", f"/v1/training-jobs/{job['id']}", 200)
    return finished


def pivots_of(service: InProcessApi, **query: Any) -> list[dict[str, Any]]:
    """Read all pages of the pivots of version 1."""
    items: list[dict[str, Any]] = []
    while True:
        page = service.call("GET", "/v1/models/m/versions/1/pivots", 200, params=query)
        items += page["items"]
        if "next_cursor" not in page:
            return items
        query["cursor"] = page["next_cursor"]


@pytest.mark.parametrize("algorithm", ["adaboost_mh", "mp_boost"])
def test_the_pivots_of_every_round_and_label_are_those_of_the_paper(
    service: InProcessApi, algorithm: str
) -> None:
    assert train(service, EXAMPLES, **configuration(algorithm))["state"] == "succeeded"
    expected = [
        {
            "round": number,
            "label": label,
            "feature": word,
            "absent": pytest.approx(absent, rel=1e-6, abs=1e-7),
            "present": pytest.approx(present, rel=1e-6, abs=1e-7),
        }
        for number, hypothesis in enumerate(literal_rounds(shared=algorithm == "adaboost_mh"), start=1)
        for label, (word, absent, present) in zip(LABELS, hypothesis, strict=True)
    ]
    assert pivots_of(service) == expected
    assert pivots_of(service, limit=3) == expected
    of_pear = [pivot for pivot in expected if pivot["label"] == "pear"]
    assert pivots_of(service, label="pear") == of_pear
    assert pivots_of(service, label="pear", limit=2) == of_pear

    path = "/v1/models/m/versions/1/pivots"
    problem = problem_of(service.send("GET", path, params={"label": "fig"}), 422, "invalid_request")
    assert [error["pointer"] for error in problem["errors"]] == ["/query/label"]
    problem_of(service.send("GET", path, params={"cursor": "eHl6"}), 422, "invalid_cursor")


@pytest.mark.parametrize("algorithm", ["adaboost_mh", "mp_boost"])
def test_the_accuracy_of_every_round_within_and_out_of_the_training_part(
    service: InProcessApi, algorithm: str
) -> None:
    body = {
        "dataset_id": dataset_of(service, EXAMPLES),
        "configurations": [configuration(algorithm)],
        "measures": ["accuracy"],
        "steps": "all",
        "split": {"kind": "given"},
    }
    created = service.call("POST", "/v1/experiments", 202, json=body)
    in_process.work(service.ctx)
    report = service.call("GET", f"/v1/experiments/{created['id']}/report", 200)
    (curve,) = [curve for curve in report["curves"] if curve["measure"] == "accuracy"]
    rounds = literal_rounds(shared=algorithm == "adaboost_mh")
    assert curve["steps"] == list(range(1, ROUNDS + 1))
    assert curve["within_folds"] == pytest.approx(literal_accuracies(rounds, TRAIN))
    assert curve["out_of_folds"] == pytest.approx(literal_accuracies(rounds, TEST))


def test_versions_of_other_learners_have_no_pivots(service: InProcessApi) -> None:
    train(service, EXAMPLES, learner={"algorithm": "naive_bayes"})
    response = service.send("GET", "/v1/models/m/versions/1/pivots")
    assert "has no pivots: naive_bayes chooses none" in problem_of(response, 404, "no_pivots")["detail"]
    problem_of(service.send("GET", "/v1/models/m/versions/2/pivots"), 404, "not_found")


NUMBERS = [
    {"features": {"size": size, "color": color}, "labels": ["ripe"] * ripe, "split": "train"}
    for size, color, ripe in [(1, 5, 0), (2, -1, 0), (3, 2, 0), (4, 1, 1), (5, 3, 1), (6, -2, 1)]
]


def test_bins_limit_the_thresholds_and_need_some(service: InProcessApi) -> None:
    learner = {"algorithm": "mp_boost", "rounds": 1, "bins": 2}
    body = {"learner": learner, "split": {"kind": "none"}, "decision": {"kind": "sign"}}
    assert train(service, NUMBERS, **body)["state"] == "succeeded"
    (pivot,) = pivots_of(service)
    assert (pivot["feature"], pivot["threshold"]) == ("size", 3.5)
    assert pivot["absent"] == pytest.approx(0.5 * math.log((1 / 6) / (1 / 2 + 1 / 6)))
    assert pivot["present"] == pytest.approx(0.5 * math.log((1 / 2 + 1 / 6) / (1 / 6)))

    request = {"model": "m", "dataset_id": dataset_of(service, EXAMPLES), "learner": learner}
    problem = problem_of(service.send("POST", "/v1/training-jobs", json=request), 422, "invalid_parameters")
    assert [error["pointer"] for error in problem["errors"]] == ["/learner/bins"]


def test_a_template_with_entries_updates_in_their_proportion(service: InProcessApi) -> None:
    # For both features W₊ is 2 · 1/2 and W₋ is 0, so that every d is the same. Both examples have |h| = 1 in
    # both features, so that b is (4/5, 1/5).
    examples = [
        {"features": {"a": 1.0, "b": 1.0}, "labels": ["x"], "split": "train"},
        {"features": {"a": -1.0, "b": -1.0}, "labels": [], "split": "train"},
    ]
    learner = {
        "algorithm": "adaboost_lc", "rounds": 1, "template": [{"a": 2.0, "b": 0.5}], "smoothing": 0.5,
    }  # fmt: skip
    body = {"learner": learner, "split": {"kind": "none"}, "decision": {"kind": "sign"}}
    assert train(service, examples, **body)["state"] == "succeeded"
    d = 0.5 * math.log((2 * 0.5 + 0.5) / 0.5)
    instances = [{"features": {"a": 1.0}}, {"features": {"b": 1.0}}]
    response = service.call("POST", "/v1/models/m/predict", 200, json={"instances": instances, "version": 1})
    scores = [prediction["ranking"][0]["score"] for prediction in response["predictions"]]
    assert scores == pytest.approx([0.8 * d, 0.2 * d])

    wrong = {**learner, "template": [{"a": -1.0}]}
    request = {"model": "n", "dataset_id": dataset_of(service, examples), "learner": wrong}
    problem = problem_of(service.send("POST", "/v1/training-jobs", json=request), 422, "invalid_request")
    assert problem["errors"][0]["pointer"].startswith("/learner/")
