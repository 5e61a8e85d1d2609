"""Build predictions, as ``app.serving.schemas`` defines them, from what a pipeline returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from app.api.structs import unvalidated
from app.serving.explanations import label_explanations
from app.serving.schemas import Prediction, PredictResponse, RankedLabel, UnknownFeatures
from models.pipeline import Prediction as ExplainedPrediction
from models.pipeline import Ranking

new_ranked_label = unvalidated(RankedLabel)
new_unknown_features = unvalidated(UnknownFeatures)
new_predict_response = unvalidated(PredictResponse)
_new_prediction = unvalidated(Prediction)


def predictions(names: Sequence[str], ranking: Ranking) -> list[Prediction]:
    """Return the predictions for several documents.

    Args:
        names: the labels of the version, in label order.
        ranking: the label sets and rankings.
    """
    none: list[None] = [None] * len(ranking.label_sets)
    return [
        _new_prediction(
            labels=[names[label] for label in label_set],
            ranking=ranked_labels([names[label] for label in labels], scores, of_labels),
            set_probability=of_set,
        )
        for label_set, labels, scores, of_labels, of_set in zip(
            ranking.label_sets,
            ranking.order.tolist(),
            ranking.scores.tolist(),
            none if ranking.probabilities is None else ranking.probabilities.tolist(),
            none if ranking.set_probabilities is None else ranking.set_probabilities.tolist(),
            strict=True,
        )
    ]


def explained_predictions(
    explained: Iterable[ExplainedPrediction], texts: Iterable[Mapping[str, str]]
) -> list[Prediction]:
    """Return predictions that have more than a ranking.

    Args:
        explained: the predictions.
        texts: for each prediction, the texts that its explanations refer to; empty if the client has them.
    """
    return [
        _new_prediction(
            labels=prediction.labels,
            ranking=ranked_labels(
                [label for label, _ in prediction.ranking],
                [score for _, score in prediction.ranking],
                prediction.probabilities,
            ),
            set_probability=prediction.set_probability,
            explanation=label_explanations(prediction.explanation),
            texts=dict(of_one) or None,
        )
        for prediction, of_one in zip(explained, texts, strict=True)
    ]


def ranked_labels(
    labels: Iterable[str], scores: Iterable[float], probabilities: Iterable[float] | None
) -> list[RankedLabel]:
    """Return a ranking.

    Args:
        labels: the labels, best first.
        scores: their scores.
        probabilities: their probabilities; None if the version is not calibrated.
    """
    if probabilities is None:
        return [
            new_ranked_label(label=label, score=score, rank=rank)
            for label, score, rank in zip(labels, scores, count(1), strict=False)
        ]
    return [
        new_ranked_label(label=label, score=score, probability=probability, rank=rank)
        for label, score, probability, rank in zip(labels, scores, probabilities, count(1), strict=False)
    ]
