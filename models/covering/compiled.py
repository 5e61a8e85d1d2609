"""Coverings for labels in a fixed order, as column indices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints, Labels
from models.covering.evaluation import CompiledElement, Evaluation, RelevantEntries, evaluate

_BATCH_SCORES = 32_768
"""Scores in a batch of examples: few enough that the temporary arrays stay in the processor's cache."""

_NO_COLUMNS: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class CompiledCondition:
    """Matches if an example has from ``least`` to ``most`` of the labels in ``columns``."""

    columns: Ints
    least: int
    most: int

    def matches(self, labels: Labels) -> Bools:
        """Whether each label set meets the condition.

        Args:
            labels: (n, k) label sets.

        Returns:
            (n,) booleans.
        """
        indicator = np.zeros(labels.shape[1], dtype=np.int64)
        indicator[self.columns] = 1
        count = labels @ indicator
        matching: Bools = (count >= self.least) & (count <= self.most)
        return matching

    def implied_by_match(self) -> tuple[Ints, Ints]:
        """The labels that every matching example has, and the labels that none of them has."""
        return (
            self.columns if self.least >= len(self.columns) else _NO_COLUMNS,
            self.columns if self.most == 0 else _NO_COLUMNS,
        )

    def implied_by_mismatch(self) -> tuple[Ints, Ints]:
        """The labels that every example without a match has, and the labels that none of them has."""
        size = len(self.columns)
        return (
            self.columns if self.least <= 0 and self.most == size - 1 else _NO_COLUMNS,
            self.columns if self.least == 1 and self.most >= size else _NO_COLUMNS,
        )


@dataclass(frozen=True)
class CompiledRule:
    """A cover and the examples that it applies to.

    Attributes:
        condition: the condition on the label set; None for all examples that no earlier rule matches.
        elements: the cover.
    """

    condition: CompiledCondition | None
    elements: tuple[CompiledElement, ...]


@dataclass(frozen=True)
class ExampleBatch:
    """Some examples with the same cover, few enough to be evaluated at once.

    Attributes:
        rows: the examples, as a slice or as indices.
        elements: their cover.
        entries: their relevant labels.
        positions: the positions of these entries in the whole label matrix, as a slice or as indices.
    """

    rows: slice | Ints
    elements: tuple[CompiledElement, ...]
    entries: RelevantEntries
    positions: slice | Ints

    def evaluate(self, scores: Floats) -> Evaluation:
        """Weights, loss and error of the batch.

        Args:
            scores: (b, k) f(x); **overwritten**.
        """
        return evaluate(self.elements, scores, self.entries)


@dataclass(frozen=True)
class CompiledCovering:
    """A covering for labels in a fixed order.

    Attributes:
        n_labels: number of labels k.
        rules: the first rule that matches an example gives its cover.
    """

    n_labels: int
    rules: tuple[CompiledRule, ...]

    def assign(self, labels: Labels) -> Ints:
        """The index of the rule that gives each example's cover.

        Args:
            labels: (n, k) label sets.

        Returns:
            (n,) indices.
        """
        assigned = np.full(labels.shape[0], -1, dtype=np.int64)
        for index, rule in enumerate(self.rules):
            unassigned = assigned == -1
            matching = unassigned if rule.condition is None else unassigned & rule.condition.matches(labels)
            assigned[matching] = index
        return assigned

    def batches(self, labels: Labels) -> list[ExampleBatch]:
        """The examples, grouped by cover and split into batches; each example is in one batch.

        Args:
            labels: (n, k) label sets.
        """
        size = max(1, _BATCH_SCORES // max(1, self.n_labels))
        if len(self.rules) == 1:
            starts = labels.indptr
            return [
                ExampleBatch(
                    slice(a, min(a + size, labels.shape[0])),
                    self.rules[0].elements,
                    RelevantEntries.of(labels[a : a + size]),
                    slice(int(starts[a]), int(starts[min(a + size, labels.shape[0])])),
                )
                for a in range(0, labels.shape[0], size)
            ]
        assigned = self.assign(labels)
        batches = []
        for index, rule in enumerate(self.rules):
            members = np.flatnonzero(assigned == index)
            for a in range(0, len(members), size):
                rows = members[a : a + size]
                counts = np.diff(labels.indptr)[rows]
                before = np.cumsum(counts) - counts
                positions = np.arange(counts.sum()) + np.repeat(labels.indptr[rows] - before, counts)
                batches.append(ExampleBatch(rows, rule.elements, RelevantEntries.of(labels[rows]), positions))
        return batches

    def losses(self, labels: Labels, scores: Floats) -> Floats:
        """The covering loss of each example: the sum over its elements of log(1 + sum of exp(-y f)).

        Args:
            labels: (n, k) label sets.
            scores: (n, k) f(x).

        Returns:
            (n,) losses.
        """
        losses = np.empty(labels.shape[0])
        for batch in self.batches(labels):
            losses[batch.rows] = batch.evaluate(np.array(scores[batch.rows])).loss
        return losses

    def errors(self, labels: Labels, scores: Floats) -> Floats:
        """The covering error of each example: the number of its elements that have a wrong label.

        Args:
            labels: (n, k) label sets.
            scores: (n, k) f(x); a label is predicted if its score is above 0.

        Returns:
            (n,) errors.
        """
        errors = np.empty(labels.shape[0])
        for batch in self.batches(labels):
            errors[batch.rows] = batch.evaluate(np.array(scores[batch.rows])).error
        return errors
