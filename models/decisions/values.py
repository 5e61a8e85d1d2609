"""Values of predicted label sets: F1, the share of right sets, and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from models.arrays import Bools, Floats
from models.decisions.rules import CostObjective


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


class Tally:
    """Counts of right and wrong predictions, summed over parts of the examples.

    Args:
        costs: the costs of mistakes; None if they are not counted.
    """

    def __init__(self, costs: Costs | None = None) -> None:
        self._costs = costs
        self._tp = self._predicted = self._positives = self._right = self._examples = 0
        self._cost = 0.0

    def add(self, predicted: Bools, relevant: Bools, known: Bools | None) -> None:
        """Count the predictions of a part.

        Args:
            predicted: (n, k) whether each label is predicted.
            relevant: (n, k) whether each example has each label.
            known: (n, k) false for unknown labels, which do not count; None if there are none.
        """
        if known is not None:
            predicted = predicted & known
        wrong = predicted != relevant
        self._tp += int(np.count_nonzero(predicted & relevant))
        self._predicted += int(np.count_nonzero(predicted))
        self._positives += int(np.count_nonzero(relevant))
        self._right += int(np.count_nonzero(~wrong.any(axis=1)))
        self._examples += len(predicted)
        if self._costs is not None:
            missed, false = wrong & relevant, wrong & predicted
            self._cost += float(missed.sum(axis=0) @ self._costs.missed_label)
            self._cost += float(false.sum(axis=0) @ self._costs.false_label)

    def values(self) -> dict[str, float]:
        """Return the measures: precision is 1 if nothing is predicted, and the cost is that of an example."""
        values = {
            "f1_micro": _ratio(2 * self._tp, self._predicted + self._positives),
            "precision_micro": _ratio(self._tp, self._predicted),
            "recall_micro": _ratio(self._tp, self._positives),
            "subset_accuracy": _ratio(self._right, self._examples),
        }
        if self._costs is not None:
            values["cost"] = self._cost / max(1, self._examples)
        return values


def _ratio(count: int, total: int) -> float:
    return count / total if total else 1.0
