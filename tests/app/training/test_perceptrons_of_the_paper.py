"""Perceptrons and text options of the papers over HTTP, against computations written out in loops."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import in_process
import numpy as np
import pytest
from in_process_api import InProcessApi

LABELS = ["a", "b", "c", "d"]
FEATURES = ["x", "y", "z"]
SEED = 5
Row = list[float]

_rng = np.random.default_rng(11)
TRAIN = [
    (
        [float(value) / 4 for value in _rng.integers(-8, 9, size=3)],
        [label for label in LABELS if _rng.random() < 0.4],
    )
    for _ in range(14)
]
TEST = [[float(value) / 4 for value in _rng.integers(-8, 9, size=3)] for _ in range(8)]


def instance(row: Row) -> dict[str, Any]:
    return {"features": {name: value for name, value in zip(FEATURES, row, strict=True) if value}}


def inner(w: Row, x: Row) -> float:
    return sum(a * b for a, b in zip(w, x, strict=True))


def perceptron(start: Row, targets: list[int], margin: float) -> Row:
    """Equations 1 to 3 on the examples with a target; an output within the margin counts as wrong."""
    w = [*start]
    for (x, _), y in zip(TRAIN, targets, strict=True):
        s = inner(w, x)
        if y and ((1 if s >= 0 else -1) != y or y * s < margin):
            w = [weight + 2 * y * value for weight, value in zip(w, x, strict=True)]
    return w


def of_label(label: str) -> list[int]:
    return [1 if label in labels else -1 for _, labels in TRAIN]


def of_pair(u: str, v: str) -> list[int]:
    return [(u in labels) - (v in labels) for _, labels in TRAIN]


def literal_scores(margin: float, weights: dict[str, Row]) -> list[Row]:
    """Scores of the binary relevance perceptrons."""
    trained = [perceptron(weights[label], of_label(label), margin) for label in LABELS]
    return [[inner(w, x) for w in trained] for x in TEST]


def literal_votes(voting: str) -> list[dict[str, float]]:
    """Votes of all pairs of labels, of which one is artificial: it is relevant if the other label is not."""
    zero = [0.0] * len(FEATURES)
    trained = {(u, v): perceptron(zero, of_pair(u, v), 0.0) for u, v in combinations(LABELS, 2)}
    trained |= {(u, "artificial"): perceptron(zero, of_label(u), 0.0) for u in LABELS}
    votes = []
    for x in TEST:
        received = dict.fromkeys([*LABELS, "artificial"], 0.0)
        for (u, v), w in trained.items():
            s = inner(w, x)
            received[u if s >= 0 else v] += 1 if voting == "max_wins" else abs(s)
        votes.append(received)
    return votes


def dataset_of(service: InProcessApi, examples: list[dict[str, Any]]) -> str:
    created: str = service.call("POST", "/v1/datasets", 201, json={"name": "d", "examples": examples})["id"]
    in_process.work(service.ctx)
    return created


def predictions_of(
    service: InProcessApi, model: str, instances: list[dict[str, Any]], **fields: Any
) -> list[dict[str, Any]]:
    body = {"instances": instances, "version": 1, **fields}
    found: list[dict[str, Any]] = service.call("POST", f"/v1/models/{model}/predict", 200, json=body)[
        "predictions"
    ]
    return found


def test_random_weights_margins_and_label_sets(service: InProcessApi) -> None:
    dataset = dataset_of(service, [{**instance(row), "labels": labels} for row, labels in TRAIN])
    binary = {"algorithm": "binary_relevance_perceptron"}
    learners: dict[str, dict[str, Any]] = {
        "plain": binary,
        "random": {**binary, "initial": "random"},
        "margin": {**binary, "margin": 3.0},
        "max_wins": {"algorithm": "mlpp", "calibrated": True},
        "weighted": {"algorithm": "mlpp", "calibrated": True, "voting": "weighted"},
    }
    for model, learner in learners.items():
        body = {
            "model": model,
            "dataset_id": dataset,
            "split": {"kind": "none"},
            "features": {"kind": "numeric", "scaling": "none"},
            "learner": learner,
            "decision": {"kind": "sign"},
            "seed": SEED,
        }
        service.call("POST", "/v1/training-jobs", 202, json=body)
    in_process.work(service.ctx)
    instances = [*map(instance, TEST)]

    drawn = 1e-3 * np.random.default_rng((SEED, 0)).standard_normal((len(FEATURES), len(LABELS)))
    zeros = dict.fromkeys(LABELS, [0.0] * len(FEATURES))
    at_random = {label: drawn[:, j].tolist() for j, label in enumerate(LABELS)}
    expected = {
        "plain": literal_scores(0.0, zeros),
        "random": literal_scores(0.0, at_random),
        "margin": literal_scores(3.0, zeros),
    }
    assert expected["plain"] != expected["margin"]
    for model, rows in expected.items():
        for found, row in zip(predictions_of(service, model, instances), rows, strict=True):
            scores = {item["label"]: item["score"] for item in found["ranking"]}
            assert scores == pytest.approx(dict(zip(LABELS, row, strict=True)), abs=1e-12)
            assert found["labels"] == [label for label, score in zip(LABELS, row, strict=True) if score > 0]

    for voting in ("max_wins", "weighted"):
        predicted = predictions_of(service, voting, instances, top=1)
        sets = set()
        for found, votes in zip(predicted, literal_votes(voting), strict=True):
            chosen = [label for label in LABELS if votes[label] > votes["artificial"]]
            assert found["labels"] == chosen
            best = max(LABELS, key=lambda label: votes[label])
            (first,) = found["ranking"]
            assert first["label"] == best
            assert first["score"] == pytest.approx(votes[best] - votes["artificial"])
            sets.add(tuple(chosen))
        assert len(sets) > 1


DOCUMENTS = [
    ("abc whereupon bca", ["a"]),
    ("bcab the ab", ["b"]),
    ("seriously ca bca", ["a"]),
    ("abab cab", []),
]
NEW_DOCUMENTS = ["bca ab", "ab unfortunately ca", "thereafter who's whereupon"]
STOPPED = {"whereupon", "the", "seriously", "unfortunately", "thereafter"}


def substrings(text: str) -> dict[str, int]:
    """All substrings of three characters, across words that the SMART list does not have."""
    kept = " ".join(word for word in text.split() if word not in STOPPED and word != "who's")
    padded = f" {kept} " if kept else ""
    grams = [padded[start : start + 3] for start in range(len(padded) - 2)]
    return {gram: grams.count(gram) for gram in grams}


def test_substrings_across_words_without_the_stop_words_of_smart(service: InProcessApi) -> None:
    dataset = dataset_of(service, [{"text": text, "labels": labels} for text, labels in DOCUMENTS])
    analyzer = {"unit": "spectrum", "ngrams": [3, 3], "stop_words": "smart", "stemmer": "none"}
    body = {
        "model": "spectrum",
        "dataset_id": dataset,
        "split": {"kind": "none"},
        "features": {"kind": "text", "weighting": "tf", "scaling": "none", "analyzer": analyzer},
        "learner": {"algorithm": "binary_relevance_perceptron"},
        "decision": {"kind": "sign"},
    }
    service.call("POST", "/v1/training-jobs", 202, json=body)
    in_process.work(service.ctx)

    weights: dict[str, dict[str, float]] = {"a": {}, "b": {}}
    for text, labels in DOCUMENTS:
        counts = substrings(text)
        for label, w in weights.items():
            y = 1 if label in labels else -1
            score = sum(w.get(gram, 0.0) * count for gram, count in counts.items())
            if (1 if score >= 0 else -1) != y:
                for gram, count in counts.items():
                    w[gram] = w.get(gram, 0.0) + 2 * y * count
    found = predictions_of(service, "spectrum", [{"text": text} for text in NEW_DOCUMENTS])
    for prediction, text in zip(found, NEW_DOCUMENTS, strict=True):
        expected = {
            label: sum(w.get(gram, 0.0) * count for gram, count in substrings(text).items())
            for label, w in weights.items()
        }
        scores = {item["label"]: item["score"] for item in prediction["ranking"]}
        assert scores == pytest.approx(expected)
    assert any(item["score"] for item in found[0]["ranking"])
