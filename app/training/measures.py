"""The measures that a data set has, and checks of the measures that a request names."""

from __future__ import annotations

from collections.abc import Iterable

from app.db import tables
from app.errors import Invalid
from app.registry.schemas import PromoteIfBetter
from app.training.schemas import TrainingJobCreate
from models.decisions import DecisionRule, needs_held_out
from models.measures.covering import COVERING_MEASURES
from models.measures.directions import DIRECTIONS
from models.measures.paired_measures import PAIRED_MEASURES
from models.measures.probabilities import PROBABILITY_MEASURES
from models.measures.tree import TREE_LOSSES


def measures_of_dataset(dataset: tables.Dataset, decisions: Iterable[DecisionRule | None]) -> list[str]:
    """Return the names of the measures that every version has on a data set, without a covering.

    Args:
        dataset: a ready data set.
        decisions: the decisions of the versions. Without held-out scores, a version has no probabilities.
    """
    missing = {*COVERING_MEASURES}
    if not dataset.label_tree:
        missing |= {*TREE_LOSSES}
    if not all(decision is not None and needs_held_out(decision) for decision in decisions):
        missing |= {*PROBABILITY_MEASURES}
    return [name for name in DIRECTIONS if name not in missing]


def check_promotion(body: TrainingJobCreate, dataset: tables.Dataset) -> None:
    """Check the measure that decides whether a version is promoted.

    Args:
        body: a request with its decision filled in.
        dataset: a ready data set.

    Raises:
        Invalid: the measure is unknown, the version will not have it, or no paired test can compare it.
    """
    if not isinstance(body.promote, PromoteIfBetter):
        return
    metric = body.promote.if_better.metric
    fitting = [name for name in measures_of_dataset(dataset, [body.decision]) if name in PAIRED_MEASURES]
    if body.covering is not None or body.learner.training_covering() is not None:
        fitting += COVERING_MEASURES
    if metric not in fitting:
        message = (
            f"the versions cannot be compared by {metric!r}; the measures are {', '.join(sorted(fitting))}"
        )
        raise Invalid(message, errors=[("/promote/if_better/metric", message)])
