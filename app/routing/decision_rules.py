"""The rules that turn a prediction into a routing decision. No database access."""

from __future__ import annotations

from dataclasses import dataclass

from app.routing.schemas import Department, Disposition, RouterPut
from app.serving.schemas import RankedLabel
from models.pipeline import Pipeline, Prediction


@dataclass(frozen=True)
class RoutingOutcome:
    """The result of a router's rules for one message.

    Attributes:
        disposition: whether the message is routed, needs a review, or goes to the fallback.
        departments: the selected departments, best first; empty for the fallback.
        destinations: the distinct destinations of the message, in order of the departments.
    """

    disposition: Disposition
    departments: list[Department]
    destinations: list[str]


def apply_rules(config: RouterPut, pipeline: Pipeline, prediction: Prediction) -> RoutingOutcome:
    """Apply the rules of a router to a prediction that ranks all labels."""
    predicted = set(prediction.labels)
    best_first = [(label, score) for label, score in prediction.ranking if label in predicted]
    departments = [
        Department(label=label, destination=config.destinations.get(label, config.fallback), score=score)
        for label, score in best_first[: config.at_most]
    ]
    if not departments:
        return fallback_outcome(config)
    thresholds = dict(zip(pipeline.labels_, pipeline.thresholds_.tolist(), strict=True))
    margin = min(department.score - thresholds[department.label] for department in departments)
    needs_review = config.review_below is not None and margin < config.review_below
    return RoutingOutcome(
        "review" if needs_review else "routed",
        departments,
        list(dict.fromkeys(department.destination for department in departments)),
    )


def fallback_outcome(config: RouterPut) -> RoutingOutcome:
    """Return the outcome for a message without a predicted label or without readable text."""
    return RoutingOutcome("fallback", [], [config.fallback])


def decision_ranking(prediction: Prediction, outcome: RoutingOutcome, top: int) -> list[RankedLabel]:
    """Return the part of the ranking that a decision contains.

    With thousands of labels, the whole ranking would be most of the size of the database.

    Args:
        prediction: ranks all labels.
        outcome: the selected departments, which are included at any rank.
        top: number of labels with the highest scores that are included.
    """
    departments = {department.label for department in outcome.departments}
    return [
        RankedLabel(label=label, score=score, rank=rank)
        for rank, (label, score) in enumerate(prediction.ranking, start=1)
        if rank <= top or label in departments
    ]
