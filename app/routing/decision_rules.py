"""From a prediction to a disposition: pure rules, no database."""

from __future__ import annotations

from dataclasses import dataclass

from app.routing.schemas import Department, Disposition, RouterPut
from models.pipeline import Pipeline, Prediction


@dataclass(frozen=True)
class Outcome:
    """Where a message goes.

    Attributes:
        disposition: routed, put up for review, or left to the fallback.
        departments: the chosen ones, best first.
        destinations: the distinct places to send the message to.
    """

    disposition: Disposition
    departments: list[Department]
    destinations: list[str]


def decide(config: RouterPut, pipeline: Pipeline, prediction: Prediction) -> Outcome:
    """Apply a router's rules to a prediction over all labels."""
    chosen = set(prediction.labels)
    best_first = [(label, score) for label, score in prediction.ranking if label in chosen]
    departments = [
        Department(label=label, destination=config.destinations.get(label, config.fallback), score=score)
        for label, score in best_first[: config.at_most]
    ]
    if not departments:
        return Outcome("fallback", [], [config.fallback])
    thresholds = dict(zip(pipeline.labels_, pipeline.thresholds_.tolist(), strict=True))
    margin = min(department.score - thresholds[department.label] for department in departments)
    unsure = config.review_below is not None and margin < config.review_below
    return Outcome(
        "review" if unsure else "routed",
        departments,
        list(dict.fromkeys(department.destination for department in departments)),
    )


def unreadable(config: RouterPut) -> Outcome:
    """What becomes of a message in which nothing can be read."""
    return Outcome("fallback", [], [config.fallback])
