"""Which measures a data set has, and checks of the measures that a request names."""

from __future__ import annotations

from app.db import tables
from app.http.errors import Invalid
from app.registry.schemas import PromoteIfBetter
from app.training.schemas import TrainingJobCreate
from models.measures.covering import COVERING_MEASURES
from models.measures.directions import DIRECTIONS
from models.measures.tree import TREE_LOSSES


def measures_of_dataset(dataset: tables.Dataset) -> list[str]:
    """Return the names of the measures that every version has on a data set, without a covering."""
    return [
        name
        for name in DIRECTIONS
        if name not in COVERING_MEASURES and (name not in TREE_LOSSES or bool(dataset.label_tree))
    ]


def check_promotion(body: TrainingJobCreate, dataset: tables.Dataset) -> None:
    """Check the measure that decides whether a version is promoted.

    Raises:
        Invalid: the measure is unknown, or the version will not have it.
    """
    if not isinstance(body.promote, PromoteIfBetter):
        return
    metric = body.promote.if_better.metric
    fitting = measures_of_dataset(dataset)
    if body.covering is not None or body.learner.training_covering() is not None:
        fitting += COVERING_MEASURES
    if metric not in fitting:
        message = (
            f"the version will have no measure {metric!r}; the measures are {', '.join(sorted(fitting))}"
        )
        raise Invalid(message, errors=[("/promote/if_better/metric", message)])
