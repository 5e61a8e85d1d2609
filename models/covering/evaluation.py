"""Covering loss, covering error and example weights for a batch of examples that share a cover.

Irrelevant labels are dense (examples by labels). The few relevant labels are a flat list of entries. So no
array of examples by elements by labels is ever built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints, Labels

_FACTORS = 512
"""Factors between 1 and 2 that are multiplied before a logarithm; the product of 1,024 may overflow."""


@dataclass(frozen=True)
class CompiledElement:
    """Cover elements of the same form: one element that ties its labels, or one element for each label.

    Attributes:
        tied: whether one element ties the labels; otherwise each label is an element.
        weight: how often the elements are repeated.
        columns: the indices of the labels that may be in the elements, ascending; None for all labels.
        positives: whether the relevant labels among them are in the elements.
        negatives: whether the irrelevant labels among them are in the elements.
    """

    tied: bool
    weight: float = 1.0
    columns: Ints | None = None
    positives: bool = True
    negatives: bool = True


@dataclass(frozen=True)
class RelevantEntries:
    """The relevant labels of a batch of b examples, as e flat entries in row order.

    Attributes:
        rows: (e,) the row of each entry in the batch.
        columns: (e,) its label.
        starts: (b + 1,) where the entries of each row start.
    """

    rows: Ints
    columns: Ints
    starts: Ints

    @classmethod
    def of(cls, labels: Labels) -> RelevantEntries:
        """The entries of (b, k) label sets."""
        starts = labels.indptr.astype(np.int64)
        rows = np.repeat(np.arange(labels.shape[0], dtype=np.int64), np.diff(starts))
        return cls(rows, labels.indices.astype(np.int64), starts)

    def row_max(self, values: Floats) -> Floats:
        """The largest value of each row.

        Args:
            values: (e,) a value for each entry.

        Returns:
            (b,) maxima; -inf for a row without entries.
        """
        nonempty = self.starts[1:] > self.starts[:-1]
        maxima = np.full(len(nonempty), -np.inf)
        if len(values):
            maxima[nonempty] = np.maximum.reduceat(values, self.starts[:-1][nonempty])
        return maxima

    def row_sum(self, values: Floats) -> Floats:
        """(b,) the sum of each row's values, from (e,) values of the entries."""
        return np.bincount(self.rows, weights=values, minlength=len(self.starts) - 1).astype(
            np.float64, copy=False
        )

    def in_columns(self, columns: Ints | None) -> Bools:
        """(e,) whether each label is one of the columns; None stands for all columns."""
        if columns is None:
            return np.ones(len(self.columns), dtype=np.bool_)
        return np.isin(self.columns, columns)


@dataclass(frozen=True)
class Evaluation:
    """Weights, loss and error of a batch of b examples.

    Attributes:
        negatives: (b, k) the sum over elements s of q(i, s, l) for irrelevant labels l, 0 for relevant ones.
        positives: (e,) the same sum for the batch's relevant labels, in the order of its entries.
        loss: (b,) covering loss.
        error: (b,) covering error; a label is predicted if its score is above 0.
    """

    negatives: Floats
    positives: Floats
    loss: Floats
    error: Floats


def evaluate(elements: Sequence[CompiledElement], scores: Floats, entries: RelevantEntries) -> Evaluation:
    """Weights, loss and error of a batch of examples that share a cover.

    The weights are q of figure 2 of Amit, Dekel & Singer, summed over the elements of the cover. The sums W
    need only these, because no q is negative and the sign of y h does not depend on the element. Section 2
    of the paper defines the covering loss and the covering error. No margin overflows, because exponentials
    are relative to the largest one of each element.

    Args:
        elements: the cover.
        scores: (b, k) f(x); **overwritten**.
        entries: the relevant labels of the batch.
    """
    # z = -y f: in an array of its own for relevant labels, in place for irrelevant ones, where z = f.
    relevant = -scores[entries.rows, entries.columns]
    scores[entries.rows, entries.columns] = -np.inf
    n = len(scores)
    total = _Accumulator(None, np.zeros_like(relevant), np.zeros(n), np.zeros(n))
    for element in elements:
        (_add_tied if element.tied else _add_each)(element, scores, relevant, entries, total)
    negatives = np.zeros_like(scores) if total.negatives is None else total.negatives
    return Evaluation(negatives, total.positives, total.loss, total.error)


@dataclass
class _Accumulator:
    """The sums over the elements so far; ``negatives`` is None until an element has irrelevant labels."""

    negatives: Floats | None
    positives: Floats
    loss: Floats
    error: Floats

    def add_negatives(self, element: CompiledElement, values: Floats, shape: tuple[int, ...]) -> None:
        if element.columns is None:
            self.negatives = values if self.negatives is None else np.add(self.negatives, values, out=values)
            return
        if self.negatives is None:
            self.negatives = np.zeros(shape)
        self.negatives[:, element.columns] += values


def _add_each(
    element: CompiledElement,
    scores: Floats,
    relevant: Floats,
    entries: RelevantEntries,
    total: _Accumulator,
) -> None:
    """One element for each label: q = exp(z)/(1 + exp(z)), loss log(1 + exp(z))."""
    weight = element.weight
    if element.negatives:
        z = scores if element.columns is None else scores[:, element.columns]
        q, loss, wrong = _logistic(z)
        if weight != 1:
            q *= weight
        total.add_negatives(element, q, scores.shape)
        total.loss += weight * loss
        total.error += weight * wrong
    if element.positives:
        included = entries.in_columns(element.columns)
        z = np.where(included, relevant, -np.inf)
        small = np.exp(-np.abs(z))
        total.positives += weight * np.where(z > 0, 1.0, small) / (1.0 + small)
        total.loss += weight * entries.row_sum(np.maximum(z, 0.0) + np.log1p(small))
        total.error += weight * entries.row_sum((z >= 0).astype(np.float64))


def _logistic(z: Floats) -> tuple[Floats, Floats, Floats]:
    """exp(z)/(1 + exp(z)), and the sums of log(1 + exp(z)) and of z > 0 in each row; z = -inf adds 0."""
    q = np.abs(z)
    np.negative(q, out=q)
    np.exp(q, out=q)
    above = z > 0
    # Counting bits handles eight labels at a time.
    wrong = np.bitwise_count(np.packbits(above, axis=1)).sum(axis=1, dtype=np.float64)
    denominator = np.maximum(z, 0.0)
    loss = denominator.sum(axis=1)
    np.add(q, 1.0, out=denominator)
    np.maximum(q, above, out=q)
    q /= denominator
    # The logarithm of a product costs one logarithm for each row, not one for each label.
    for start in range(0, z.shape[1], _FACTORS):
        loss += np.log(_product(denominator[:, start : start + _FACTORS]))
    return q, loss, wrong


def _product(factors: Floats) -> Floats:
    """(b,) the product of each row of (b, n) factors, which are **overwritten**.

    Multiplying one half by the other, again and again, works on whole vectors.
    """
    width = factors.shape[1]
    while width > 8:
        half = width // 2
        factors[:, :half] *= factors[:, width - half : width]
        width -= half
    result: Floats = factors[:, :width].prod(axis=1)
    return result


def _add_tied(
    element: CompiledElement,
    scores: Floats,
    relevant: Floats,
    entries: RelevantEntries,
    total: _Accumulator,
) -> None:
    """One element: q = exp(z)/(1 + sum of exp(z)), loss log(1 + sum of exp(z)), relative to the largest z."""
    largest = np.full(len(scores), -np.inf)
    wrong = np.zeros(len(scores), dtype=np.bool_)
    z = relevant
    if element.negatives:
        irrelevant = scores if element.columns is None else scores[:, element.columns]
        if irrelevant.shape[1]:
            largest = irrelevant.max(axis=1)
        wrong |= largest > 0
    if element.positives:
        z = np.where(entries.in_columns(element.columns), relevant, -np.inf)
        worst = entries.row_max(z)
        wrong |= worst >= 0
        largest = np.maximum(largest, worst)
    base = np.maximum(largest, 0.0)
    rest = np.zeros(len(scores))
    if element.negatives:
        irrelevant = irrelevant - base[:, None]
        np.exp(irrelevant, out=irrelevant)
        rest += irrelevant.sum(axis=1)
    if element.positives:
        z = np.exp(z - base[entries.rows])
        rest += entries.row_sum(z)
    # exp(-base) + rest is the scaled denominator. One of its terms is exactly 1 and is left to log1p.
    rest = np.where(base > 0, np.exp(-base) + rest - 1.0, rest)
    scale = element.weight / (1.0 + rest)
    if element.negatives:
        irrelevant *= scale[:, None]
        total.add_negatives(element, irrelevant, scores.shape)
    if element.positives:
        total.positives += z * scale[entries.rows]
    total.loss += element.weight * (base + np.log1p(rest))
    total.error += element.weight * wrong
