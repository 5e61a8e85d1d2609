"""The JSON of predictions is what the documented schema describes, with exactly the same numbers."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from app.api.structs import to_json
from app.serving import schemas
from app.serving.responses import (
    explained_predictions,
    new_predict_response,
    new_unknown_features,
    predictions,
)
from app.serving.schemas import PredictResponse
from models.pipeline import ExplainedTerm, Explanation, Prediction, Ranking

LABELS = ['"quoted"', "a/b\\c", "billing", "line\nbreak\u2028", "naïve 🦔", "null", "\u202eright", "zz\x7f"]


def read(predicted: list[schemas.Prediction]) -> PredictResponse:
    """Read predictions as a strict client does."""
    body = to_json(new_predict_response(model="m", version=3, predictions=predicted))
    response = PredictResponse.model_validate_json(body, strict=True)
    assert json.loads(body) == response.model_dump(exclude_none=True), "there is no other field"
    return response


@pytest.mark.parametrize("n_labels", [1, len(LABELS)])
@pytest.mark.parametrize("top", [1, 3, len(LABELS)])
def test_rankings_have_the_documented_form(n_labels: int, top: int) -> None:
    labels, n = LABELS[:n_labels], 4
    length = min(top, n_labels)
    rng = np.random.default_rng(0)
    scores = -np.sort(-rng.normal(size=(n, length)))
    order = np.array([rng.permutation(n_labels)[:length] for _ in range(n)])
    label_sets = [sorted({int(label) for label in row[:i]}) for i, row in enumerate(order)]

    response = read(predictions(labels, Ranking(scores, order, label_sets, np.zeros(n, dtype=np.bool_))))

    for i, prediction in enumerate(response.predictions):
        assert prediction.labels == [labels[label] for label in label_sets[i]]
        assert [(item.label, item.score, item.rank) for item in prediction.ranking] == [
            (labels[label], score, rank)
            for rank, (label, score) in enumerate(zip(order[i], scores[i], strict=True), start=1)
        ]
        assert prediction.explanation is None


def test_explanations_have_the_documented_form() -> None:
    ranking = [(LABELS[4], 1e300), (LABELS[0], -0.0)]
    terms = [("inv\u00f3ice", 0.1 + 0.2), ('"', -5e-324)]
    explanations = [Explanation(LABELS[0], [ExplainedTerm(term, weight) for term, weight in terms])]
    explained = [
        Prediction([], ranking, []),
        Prediction([LABELS[0]], ranking, explanations),
    ]

    response = read(explained_predictions(explained, [{}, {}]))

    empty, full = response.predictions
    assert (empty.labels, full.labels) == ([], [LABELS[0]])
    assert [(item.label, item.score) for item in full.ranking] == ranking
    assert math.copysign(1, full.ranking[1].score) == -1
    assert empty.explanation == []
    assert full.explanation is not None
    assert [(term.term, term.weight) for term in full.explanation[0].terms] == terms


@pytest.mark.parametrize("n", [1, 3])
def test_probabilities_have_the_documented_form(n: int) -> None:
    rng = np.random.default_rng(0)
    scores, order = -np.sort(-rng.normal(size=(n, 3))), np.array([[2, 0, 1]] * n)
    probabilities, of_sets = rng.uniform(size=(n, 3)), rng.uniform(size=n)
    ranking = Ranking(scores, order, [[0]] * n, np.zeros(n, dtype=np.bool_), probabilities, of_sets)

    response = read(predictions(LABELS, ranking))

    for i, prediction in enumerate(response.predictions):
        assert [(item.score, item.probability) for item in prediction.ranking] == [
            *zip(scores[i], probabilities[i], strict=True)
        ]
        assert prediction.set_probability == of_sets[i]


def test_explained_predictions_have_their_probabilities() -> None:
    prediction = Prediction(
        [LABELS[0]],
        [(LABELS[0], 2.0)],
        [Explanation(LABELS[0], [])],
        probabilities=[0.1 + 0.2],
        set_probability=0.25,
    )
    response = read(explained_predictions([prediction], [{}]))
    assert response.predictions[0].ranking[0].probability == 0.1 + 0.2
    assert response.predictions[0].set_probability == 0.25


def test_a_prediction_can_be_empty() -> None:
    none = np.empty((1, 0))
    ranking = Ranking(none, none.astype(np.int64), [[]], np.zeros(1, dtype=np.bool_))
    assert to_json(predictions([], ranking)) == b'[{"labels":[],"ranking":[]}]'


def test_unknown_features_are_the_last_field() -> None:
    unknown = new_unknown_features(count=11, names=["a"] * 10)
    response = new_predict_response(model="m", version=3, predictions=[], unknown_features=unknown)
    validated = PredictResponse.model_validate_json(to_json(response), strict=True)
    assert to_json(response) == validated.model_dump_json().encode()
