"""The rules that turn a prediction into a routing decision. No database access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.api.structs import unvalidated
from app.routing.schemas import Department, Disposition, RouterPut
from app.serving.responses import new_ranked_label, ranked_labels
from app.serving.schemas import RankedLabel
from models.pipeline import Ranking

DECISION_RANKING: Final = 20
"""Number of labels in the ranking of a decision. With thousands of labels, the whole ranking would be most of
the size of the database."""

NOT_CALIBRATED: Final = (
    "the version is not calibrated, so review_below cannot be applied; train a version with the decision "
    "auto, or remove review_below from the router"
)
"""Why a message needs a review if its version has no probabilities."""

NO_KNOWN_WORDS: Final = "the message has no word that the version knows"
"""Why a version cannot decide on a message, whatever its scores are: it has nothing to go by."""


_new_department = unvalidated(Department)


@dataclass(frozen=True, slots=True)
class RoutingOutcome:
    """The result of a router's rules for one message.

    Attributes:
        disposition: whether the message is routed, needs a review, or goes to the fallback.
        departments: the selected departments, best first; empty for the fallback.
        destinations: the distinct destinations of the message, in order of the departments.
        set_probability: the probability that exactly these departments are right; None if the version is not
            calibrated, or did not decide.
        review_reason: why the message needs a review; None if it does not.
    """

    disposition: Disposition
    departments: list[Department]
    destinations: list[str]
    set_probability: float | None = None
    review_reason: str | None = None


def apply_rules(
    config: RouterPut,
    selected: Sequence[RankedLabel],
    set_probability: float | None,
    unmet: str | None = None,
) -> RoutingOutcome:
    """Apply the rules of a router.

    Args:
        config: the router.
        selected: the selected labels, best first.
        set_probability: the probability that exactly these labels are right; None if the version is not
            calibrated.
        unmet: what the router needs and the version does not have, so that the message needs a review.
    """
    if not selected:
        return RoutingOutcome("fallback", [], [config.fallback], set_probability)
    departments = [
        _new_department(
            label=item.label,
            destination=config.destinations.get(item.label, config.fallback),
            score=item.score,
            probability=item.probability,
        )
        for item in selected
    ]
    reason = unmet
    if reason is None and config.review_below is not None:
        if set_probability is None:
            reason = NOT_CALIBRATED
        elif set_probability < config.review_below:
            limit = f"{config.review_below:g}"
            reason = f"the probability that exactly these departments are right is below {limit}"
    destinations = list(dict.fromkeys(department.destination for department in departments))
    return RoutingOutcome(
        "routed" if reason is None else "review", departments, destinations, set_probability, reason
    )


def fallback_outcome(config: RouterPut) -> RoutingOutcome:
    """Return the outcome for a message on which the version could not decide."""
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
            predicted.append(
                new_ranked_label(
                    label=labels[number],
                    score=float(ranking.scores[i, position]),
                    probability=_probability(ranking, i, position),
                    rank=position + 1,
                )
            )
    return predicted


def best_labels(labels: Sequence[str], ranking: Ranking, top: int, i: int = 0) -> list[RankedLabel]:
    """Return the labels of a document with the highest scores, best first.

    Args:
        labels: the labels of the pipeline.
        ranking: ranks the labels.
        top: number of labels.
        i: index of the document.
    """
    return ranked_labels(
        [labels[number] for number in ranking.order[i, :top].tolist()],
        ranking.scores[i, :top].tolist(),
        None if ranking.probabilities is None else ranking.probabilities[i, :top].tolist(),
    )


def decision_ranking(
    labels: Sequence[str], ranking: Ranking, selected: Sequence[RankedLabel], top: int
) -> list[RankedLabel]:
    """Return the part of the ranking that a decision contains.

    With thousands of labels, the whole ranking would be most of the size of the database.

    Args:
        labels: the labels of the pipeline.
        ranking: ranks all labels for one document.
        selected: the selected labels, which are included at any rank.
        top: number of labels with the highest scores that are included.
    """
    return best_labels(labels, ranking, top) + [item for item in selected if item.rank > top]


def set_probability(ranking: Ranking, i: int = 0) -> float | None:
    """Return the probability that the label set of a document is right; None if it is not calibrated."""
    return None if ranking.set_probabilities is None else float(ranking.set_probabilities[i])


def _probability(ranking: Ranking, i: int, position: int) -> float | None:
    return None if ranking.probabilities is None else float(ranking.probabilities[i, position])
