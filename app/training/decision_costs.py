"""Reject requests with a decision whose costs name labels that the data set does not have."""

from __future__ import annotations

from collections.abc import Iterable

from app.datasets import service as datasets
from app.db import tables
from app.db.session import Database
from app.errors import Invalid
from models.data.record import json_pointer
from models.decisions import AutoDecision, DecisionRule
from models.decisions.rules import CostObjective


def check_costs(
    db: Database, decisions: Iterable[tuple[str, DecisionRule | None]], dataset: tables.Dataset
) -> None:
    """Check that the labels with costs of their own exist. Probably a name is misspelled otherwise.

    Args:
        db: the database, which has the labels of the data set.
        decisions: decisions with the JSON pointers of the parts of the request that contain them.
        dataset: a ready data set.

    Raises:
        Invalid: a decision has a cost for a label that the data set does not have.
    """
    costs = {  # a decision that occurs several times is checked once
        id(decision): (pointer, decision.optimize.labels)
        for pointer, decision in decisions
        if isinstance(decision, AutoDecision) and isinstance(decision.optimize, CostObjective)
    }
    if not any(labels for _, labels in costs.values()):
        return
    known = {*datasets.label_counts(db, dataset.id), *(dataset.label_tree or {}).values()}
    for pointer, labels in costs.values():
        for label in labels:
            if label not in known:
                message = f"the data set has no label {label!r}; correct the label or remove its costs"
                place = f"{pointer}/decision/optimize/labels{json_pointer(label)}"
                raise Invalid(message, errors=[(place, message)])
