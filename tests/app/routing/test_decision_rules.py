"""A router's rules: which departments a message goes to, and whether it needs a review."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.routing.decision_rules import (
    NOT_CALIBRATED,
    RoutingOutcome,
    decision_ranking,
    fallback_outcome,
    predicted_labels,
    set_probability,
)
from app.routing.decision_rules import apply_rules as apply_rules_to_labels
from app.routing.schemas import RouterPut
from models.pipeline import Ranking

FALLBACK = "frontdesk@example.org"
LABELS = ["billing", "returns", "sales", "shipping"]


def router(**changes: Any) -> RouterPut:
    destinations = {label: f"{label}@example.org" for label in LABELS}
    return RouterPut.model_validate(
        {"model": "m", "destinations": destinations, "fallback": FALLBACK, **changes}
    )


def prediction(*labels: str, set_probability: float | None = None, **scores: float) -> Ranking:
    """A prediction of the labels, with a ranking of all labels by descending score."""
    values = np.array([[scores.get(label, -1.0) for label in LABELS]])
    order = np.argsort(-values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    return Ranking(
        ranked,
        order,
        [sorted(LABELS.index(label) for label in labels)],
        np.array([False]),
        None if set_probability is None else 1 / (1 + np.exp(-ranked)),
        None if set_probability is None else np.array([set_probability]),
    )


def apply_rules(config: RouterPut, ranking: Ranking) -> RoutingOutcome:
    return apply_rules_to_labels(config, predicted_labels(LABELS, ranking), set_probability(ranking))


def test_departments_are_the_predicted_labels_by_descending_score() -> None:
    outcome = apply_rules(router(), prediction("billing", "shipping", billing=0.5, shipping=2.0, sales=-0.5))
    assert outcome.disposition == "routed"
    assert [(item.label, item.score) for item in outcome.departments] == [
        ("shipping", 2.0),
        ("billing", 0.5),
    ]
    assert outcome.destinations == ["shipping@example.org", "billing@example.org"]


def test_a_label_with_a_high_score_that_is_not_predicted_is_not_a_department() -> None:
    outcome = apply_rules(router(), prediction("billing", billing=1.0, sales=3.0))
    assert [item.label for item in outcome.departments] == ["billing"]


def test_a_message_without_predicted_labels_goes_to_the_fallback() -> None:
    outcome = apply_rules(router(review_below=1.0), prediction(billing=-0.1, set_probability=0.5))
    assert (outcome.disposition, outcome.departments, outcome.destinations) == ("fallback", [], [FALLBACK])


def test_a_message_on_which_no_version_decided_goes_to_the_fallback() -> None:
    outcome = fallback_outcome(router(review_below=1.0))
    assert (outcome.disposition, outcome.departments, outcome.destinations) == ("fallback", [], [FALLBACK])


def test_a_label_without_a_destination_goes_to_the_fallback_and_stays_a_department() -> None:
    outcome = apply_rules(
        router(destinations={"billing": "billing@example.org"}),
        prediction("billing", "sales", billing=1.0, sales=2.0),
    )
    assert outcome.disposition == "routed"
    assert [(item.label, item.destination) for item in outcome.departments] == [
        ("sales", FALLBACK),
        ("billing", "billing@example.org"),
    ]
    assert outcome.destinations == [FALLBACK, "billing@example.org"]


def test_destinations_are_distinct_and_in_the_order_of_the_departments() -> None:
    destinations = {
        "billing": "money@example.org",
        "returns": "goods@example.org",
        "sales": "money@example.org",
    }
    outcome = apply_rules(
        router(destinations=destinations),
        prediction("billing", "returns", "sales", billing=1.0, returns=2.0, sales=3.0),
    )
    assert [item.label for item in outcome.departments] == ["sales", "returns", "billing"]
    assert outcome.destinations == ["money@example.org", "goods@example.org"]


@pytest.mark.parametrize(
    ("probability", "disposition"),
    [(1.0, "routed"), (0.75, "routed"), (0.5, "routed"), (np.nextafter(0.5, 0.0), "review"), (0.0, "review")],
)
def test_a_set_probability_below_review_below_needs_a_review(probability: float, disposition: str) -> None:
    predicted = prediction("billing", billing=2.0, set_probability=probability)
    outcome = apply_rules(router(review_below=0.5), predicted)
    assert outcome.disposition == disposition
    assert outcome.destinations == ["billing@example.org"], "a review keeps the departments"
    assert outcome.set_probability == probability
    reason = "the probability that exactly these departments are right is below 0.5"
    assert outcome.review_reason == (reason if disposition == "review" else None)


@pytest.mark.parametrize("probability", [0.0, None])
def test_without_review_below_no_probability_is_too_small(probability: float | None) -> None:
    predicted = prediction("billing", billing=0.1, set_probability=probability)
    assert apply_rules(router(), predicted).disposition == "routed"


def test_without_probabilities_every_message_needs_the_review() -> None:
    outcome = apply_rules(router(review_below=0.0), prediction("billing", billing=9.0))
    assert (outcome.disposition, outcome.review_reason) == ("review", NOT_CALIBRATED)


def test_departments_and_the_ranking_have_the_probabilities_of_their_labels() -> None:
    predicted = prediction("sales", billing=0.0, sales=-2.0, set_probability=0.25)
    outcome = apply_rules(router(), predicted)
    assert [item.probability for item in outcome.departments] == [1 / (1 + np.exp(2.0))]
    ranking = decision_ranking(LABELS, predicted, predicted_labels(LABELS, predicted), top=1)
    assert [(item.label, item.probability) for item in ranking] == [
        ("billing", 0.5),
        ("sales", 1 / (1 + np.exp(2.0))),
    ]


@pytest.mark.parametrize("top", [1, 2, 4, 100])
def test_the_ranking_of_a_decision_has_the_top_and_every_department(top: int) -> None:
    scores = {"billing": 1.0, "returns": 4.0, "sales": 3.0, "shipping": 2.0}
    predicted = prediction("billing", **scores)
    ranking = decision_ranking(LABELS, predicted, predicted_labels(LABELS, predicted), top)
    best_first = ["returns", "sales", "shipping", "billing"]
    assert [item.label for item in ranking] == [*best_first[: min(top, 3)], "billing"]
    assert [item.rank for item in ranking] == [best_first.index(item.label) + 1 for item in ranking]
