"""A router's rules: which departments a message goes to, and whether it needs a review."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from app.routing.decision_rules import (
    RoutingOutcome,
    decision_ranking,
    fallback_outcome,
    predicted_labels,
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


def thresholds(**values: float) -> dict[str, float]:
    return {label: values.get(label, 0.0) for label in LABELS}


def prediction(*labels: str, **scores: float) -> Ranking:
    """A prediction of the labels, with a ranking of all labels by descending score."""
    values = np.array([[scores.get(label, -1.0) for label in LABELS]])
    order = np.argsort(-values, axis=1, kind="stable")
    return Ranking(
        np.take_along_axis(values, order, axis=1), order, [sorted(LABELS.index(label) for label in labels)]
    )


def apply_rules(config: RouterPut, values: Mapping[str, float], ranking: Ranking) -> RoutingOutcome:
    return apply_rules_to_labels(config, values, predicted_labels(LABELS, ranking))


def test_departments_are_the_predicted_labels_by_descending_score() -> None:
    outcome = apply_rules(
        router(), thresholds(), prediction("billing", "shipping", billing=0.5, shipping=2.0, sales=-0.5)
    )
    assert outcome.disposition == "routed"
    assert [(department.label, department.score) for department in outcome.departments] == [
        ("shipping", 2.0),
        ("billing", 0.5),
    ]
    assert outcome.destinations == ["shipping@example.org", "billing@example.org"]


def test_a_label_with_a_high_score_that_is_not_predicted_is_not_a_department() -> None:
    outcome = apply_rules(router(), thresholds(sales=5.0), prediction("billing", billing=1.0, sales=3.0))
    assert [department.label for department in outcome.departments] == ["billing"]


@pytest.mark.parametrize("at_most", [1, 2, 3, 4, None])
def test_at_most_selects_the_departments_with_the_highest_scores(at_most: int | None) -> None:
    predicted = prediction("billing", "sales", "shipping", billing=1.0, sales=3.0, shipping=2.0)
    outcome = apply_rules(router(at_most=at_most), thresholds(), predicted)
    expected = ["sales", "shipping", "billing"][:at_most]
    assert [department.label for department in outcome.departments] == expected
    assert outcome.destinations == [f"{label}@example.org" for label in expected]


def test_a_message_without_predicted_labels_goes_to_the_fallback() -> None:
    outcome = apply_rules(router(review_below=10.0), thresholds(), prediction(billing=-0.1))
    assert (outcome.disposition, outcome.departments, outcome.destinations) == ("fallback", [], [FALLBACK])


def test_an_unreadable_message_goes_to_the_fallback() -> None:
    outcome = fallback_outcome(router(review_below=10.0))
    assert (outcome.disposition, outcome.departments, outcome.destinations) == ("fallback", [], [FALLBACK])


def test_a_label_without_a_destination_goes_to_the_fallback_and_stays_a_department() -> None:
    outcome = apply_rules(
        router(destinations={"billing": "billing@example.org"}),
        thresholds(),
        prediction("billing", "sales", billing=1.0, sales=2.0),
    )
    assert outcome.disposition == "routed"
    assert [(department.label, department.destination) for department in outcome.departments] == [
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
        thresholds(),
        prediction("billing", "returns", "sales", billing=1.0, returns=2.0, sales=3.0),
    )
    assert [department.label for department in outcome.departments] == ["sales", "returns", "billing"]
    assert outcome.destinations == ["money@example.org", "goods@example.org"]


@pytest.mark.parametrize(
    ("score", "disposition"),
    [
        (0.75, "routed"),
        (0.5, "routed"),
        (np.nextafter(0.5, 0.0), "review"),
        (0.25, "review"),
        (0.0, "review"),
    ],
)
def test_a_margin_below_review_below_needs_a_review(score: float, disposition: str) -> None:
    outcome = apply_rules(router(review_below=0.5), thresholds(), prediction("billing", billing=score))
    assert outcome.disposition == disposition
    assert outcome.destinations == ["billing@example.org"], "a review keeps the departments"


def test_without_review_below_no_margin_is_too_small() -> None:
    assert apply_rules(router(), thresholds(), prediction("billing", billing=0.0)).disposition == "routed"


@pytest.mark.parametrize(("threshold", "disposition"), [(-1.0, "routed"), (1.0, "review"), (1.25, "review")])
def test_the_margin_is_the_distance_from_the_threshold_of_the_label(
    threshold: float, disposition: str
) -> None:
    outcome = apply_rules(
        router(review_below=0.5), thresholds(billing=threshold), prediction("billing", billing=1.25)
    )
    assert outcome.disposition == disposition


def test_the_smallest_margin_of_the_selected_departments_decides() -> None:
    predicted = prediction("billing", "sales", billing=0.25, sales=2.0)
    assert apply_rules(router(review_below=0.5), thresholds(), predicted).disposition == "review"
    limited = apply_rules(router(review_below=0.5, at_most=1), thresholds(), predicted)
    assert limited.disposition == "routed", "billing, which has the small margin, is not selected"


@pytest.mark.parametrize("top", [1, 2, 4, 100])
def test_the_ranking_of_a_decision_has_the_top_and_every_department(top: int) -> None:
    scores = {"billing": 1.0, "returns": 4.0, "sales": 3.0, "shipping": 2.0}
    predicted = prediction("billing", **scores)
    ranking = decision_ranking(LABELS, predicted, apply_rules(router(), thresholds(), predicted), top)
    best_first = ["returns", "sales", "shipping", "billing"]
    assert [item.label for item in ranking] == [*best_first[: min(top, 3)], "billing"]
    assert [item.rank for item in ranking] == [best_first.index(item.label) + 1 for item in ranking]
