"""Policies: how the threshold of a label follows from its held-out scores after the training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from models.decisions.cuts import EstimatedCuts, least_cost, reach_precision, reach_recall


@dataclass(frozen=True, slots=True)
class TargetPrecision:
    """Predicts a label as often as possible, if its precision is surely at least this value.

    Attributes:
        value: the precision, above 0 and at most 1.
    """

    value: float


@dataclass(frozen=True, slots=True)
class TargetRecall:
    """Predicts a label as rarely as possible, with at least this recall.

    Attributes:
        value: the recall, above 0 and at most 1.
    """

    value: float


@dataclass(frozen=True, slots=True)
class LeastCost:
    """Predicts a label with the least total cost of its mistakes.

    Attributes:
        false_label: cost of predicting the label for a document that does not have it; above 0.
        missed_label: cost of not predicting it for a document that has it; above 0.
    """

    false_label: float
    missed_label: float


Policy: TypeAlias = TargetPrecision | TargetRecall | LeastCost


def choose_cut(cuts: EstimatedCuts, policy: Policy) -> int | None:
    """Return the cut that a policy chooses; None if no cut reaches the precision of the policy."""
    match policy:
        case TargetPrecision(value):
            return reach_precision(cuts, value)
        case TargetRecall(value):
            return reach_recall(cuts, value)
        case LeastCost(false_label, missed_label):
            return least_cost(cuts, false_label, missed_label)
