"""Values of predicted label sets: F1, the share of right sets, and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np

from models.arrays import Bools, Floats
from models.decisions.curves import LeastCost
from models.decisions.rules import CostObjective

Objective: TypeAlias = Literal["f1_micro", "subset_accuracy", "cost"]


@dataclass(frozen=True)
class Costs:
    """The costs of mistakes.

    Attributes:
        false_label: (k,) cost of predicting each label for an example that does not have it.
        missed_label: (k,) cost of not predicting it for an example that has it.
    """

    false_label: Floats
    missed_label: Floats

    @classmethod
    def of(cls, objective: CostObjective, labels: Sequence[str]) -> Self:
        """Return the costs of the k labels. Costs of other labels have no effect."""
        false_label = np.full(len(labels), objective.false_label)
        missed_label = np.full(len(labels), objective.missed_label)
        for j, label in enumerate(labels):
            cost = objective.labels.get(label)
            if cost is not None and cost.false_label is not None:
                false_label[j] = cost.false_label
            if cost is not None and cost.missed_label is not None:
                missed_label[j] = cost.missed_label
        return cls(false_label, missed_label)

    def goals(self) -> list[LeastCost]:
        """Return the goal of each label."""
        pairs = zip(self.false_label.tolist(), self.missed_label.tolist(), strict=True)
        return [LeastCost(*costs) for costs in pairs]


@dataclass(frozen=True, eq=False)
class SetCounts:
    """Counts of right and wrong labels of each of n examples.

    Attributes:
        tp: (n,) number of predicted labels that are right.
        predicted: (n,) number of predicted labels.
        positives: (n,) number of labels of the example.
        right: (n,) 1 if the label set is exactly right, otherwise 0.
        cost: (n,) cost of its mistakes; None if they have no costs.
    """

    tp: Floats
    predicted: Floats
    positives: Floats
    right: Floats
    cost: Floats | None

    @classmethod
    def of(cls, predicted: Bools, relevant: Bools, known: Bools | None, costs: Costs | None = None) -> Self:
        """Count the predictions for n examples.

        Args:
            predicted: (n, k) whether each label is predicted.
            relevant: (n, k) whether each example has each label.
            known: (n, k) false for unknown labels, which do not count; None if there are none.
            costs: the costs of mistakes; None if they are not counted.
        """
        if known is not None:
            predicted = predicted & known
        wrong = predicted != relevant
        cost = None
        if costs is not None:
            cost = (wrong & relevant) @ costs.missed_label + (wrong & predicted) @ costs.false_label
        return cls(
            _count(predicted & relevant), _count(predicted), _count(relevant), 1.0 * ~wrong.any(axis=1), cost
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Join the counts of several parts of the examples."""
        costs = [part.cost for part in parts if part.cost is not None]
        return cls(
            tp=np.concatenate([part.tp for part in parts]),
            predicted=np.concatenate([part.predicted for part in parts]),
            positives=np.concatenate([part.positives for part in parts]),
            right=np.concatenate([part.right for part in parts]),
            cost=np.concatenate(costs) if costs else None,
        )

    def values(self) -> dict[str, float]:
        """Return the measures: precision is 1 if nothing is predicted, and the cost is that of an example."""
        tp, predicted, positives = self.tp.sum(), self.predicted.sum(), self.positives.sum()
        values = {
            "f1_micro": _ratio(2 * tp, predicted + positives),
            "precision_micro": _ratio(tp, predicted),
            "recall_micro": _ratio(tp, positives),
            "subset_accuracy": _ratio(self.right.sum(), len(self.right)),
        }
        if self.cost is not None:
            values["cost"] = float(self.cost.sum() / max(1, len(self.cost)))
        return values

    def influence(self, objective: Objective) -> Floats:
        """Return the influence of each example on the value of an objective, (n,).

        The sum of the squares is the variance of the value, and the sum of the squared differences of two
        predictions for the same examples that of the difference of their values (infinitesimal jackknife,
        Efron 1982).

        >>> counts = SetCounts.of(np.array([[True], [True]]), np.array([[True], [False]]), None)
        >>> counts.influence("subset_accuracy").tolist()
        [0.25, -0.25]
        """
        value = self.values()[objective]
        if objective == "f1_micro":
            size = self.predicted + self.positives
            of_f1: Floats = (2 * self.tp - value * size) / max(float(size.sum()), 1.0)
            return of_f1
        of_examples = self.right if objective == "subset_accuracy" else self.cost
        assert of_examples is not None  # noqa: S101 - a cost is only asked for if there are costs
        of_mean: Floats = (of_examples - value) / max(1, len(of_examples))
        return of_mean


def _count(pairs: Bools) -> Floats:
    count: Floats = np.count_nonzero(pairs, axis=1).astype(np.float64)
    return count


def _ratio(count: float, total: float) -> float:
    return float(count / total) if total else 1.0
