"""The rules that turn a prediction into a routing decision. No database access."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.routing.schemas import Disposition, RouterPut
from models.pipeline import Ranking


class RankedLabel(NamedTuple):
    """A label with its score and its rank, from 1 for the highest score."""

    label: str
    score: float
    rank: int


class Department(NamedTuple):
    """A selected label with its destination, its score and its rank."""

    label: str
    destination: str
    score: float
    rank: int


@dataclass(frozen=True, slots=True)
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


def apply_rules(
    config: RouterPut, thresholds: Mapping[str, float], predicted: Sequence[RankedLabel]
) -> RoutingOutcome:
    """Apply the rules of a router.

    Args:
        config: the router.
        thresholds: for each label, the score above which it is predicted.
        predicted: the predicted labels, best first.
    """
    selected = predicted[: config.at_most]
    if not selected:
        return fallback_outcome(config)
    departments = [
        Department(label, config.destinations.get(label, config.fallback), score, rank)
        for label, score, rank in selected
    ]
    disposition: Disposition = "routed"
    if config.review_below is not None:
        margin = min(score - thresholds[label] for label, score, _ in selected)
        if margin < config.review_below:
            disposition = "review"
    destinations = list(dict.fromkeys(department.destination for department in departments))
    return RoutingOutcome(disposition, departments, destinations)


def fallback_outcome(config: RouterPut) -> RoutingOutcome:
    """Return the outcome for a message without a predicted label or without readable text."""
    return RoutingOutcome("fallback", [], [config.fallback])


def predicted_labels(labels: Sequence[str], ranking: Ranking, i: int = 0) -> list[RankedLabel]:
    """Return the predicted labels of a document, best first.

    Args:
        labels: the labels of the pipeline.
        ranking: ranks all labels.
        i: index of the document.
    """
    left = set(ranking.label_sets[i])
    predicted: list[RankedLabel] = []
    for position, number in enumerate(ranking.order[i].tolist()):
        if not left:  # they are usually the best ones
            break
        if number in left:
            left.remove(number)
            predicted.append(RankedLabel(labels[number], float(ranking.scores[i, position]), position + 1))
    return predicted


def decision_ranking(
    labels: Sequence[str], ranking: Ranking, outcome: RoutingOutcome, top: int
) -> list[RankedLabel]:
    """Return the part of the ranking that a decision contains.

    With thousands of labels, the whole ranking would be most of the size of the database.

    Args:
        labels: the labels of the pipeline.
        ranking: ranks all labels for one document.
        outcome: the selected departments, which are included at any rank.
        top: number of labels with the highest scores that are included.
    """
    best = zip(ranking.order[0, :top].tolist(), ranking.scores[0, :top].tolist(), strict=True)
    included = [RankedLabel(labels[number], score, rank) for rank, (number, score) in enumerate(best, 1)]
    return included + [
        RankedLabel(label, score, rank) for label, _, score, rank in outcome.departments if rank > top
    ]
