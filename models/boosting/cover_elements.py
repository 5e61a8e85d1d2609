"""Covering loss, covering error and example weights, vectorised over examples that share a cover.

Everything works on a block of examples at a time. Irrelevant labels are dense (examples by labels); the few
relevant ones are a flat list of entries, so no array of examples by elements by labels ever exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints, Labels

_FACTORS = 512
"""Factors between 1 and 2 that are multiplied before a logarithm is taken; 1,024 of them might overflow."""


@dataclass(frozen=True)
class Element:
    """Cover elements of one spelling: a single element that ties its labels, or one element a label.

    Attributes:
        tied: true for one element that ties the labels, false for one element each.
        weight: how often the element is repeated.
        columns: the labels it may hold, as sorted indices; None for all of them.
        positives: holds the relevant labels among them.
        negatives: holds the irrelevant labels among them.
    """

    tied: bool
    weight: float = 1.0
    columns: Ints | None = None
    positives: bool = True
    negatives: bool = True


@dataclass(frozen=True)
class Entries:
    """The relevant labels of a block of b examples, as e flat entries in row order.

    Attributes:
        rows: (e,) row of each entry within the block.
        columns: (e,) its label.
        starts: (b + 1,) where each row's entries start.
    """

    rows: Ints
    columns: Ints
    starts: Ints

    @classmethod
    def of(cls, labels: Labels) -> Entries:
        """The entries of (b, k) label sets."""
        starts = labels.indptr.astype(np.int64)
        rows = np.repeat(np.arange(labels.shape[0], dtype=np.int64), np.diff(starts))
        return cls(rows, labels.indices.astype(np.int64), starts)

    def largest(self, values: Floats) -> Floats:
        """(b,) the largest of each row's values, -inf for a row without entries."""
        filled = self.starts[1:] > self.starts[:-1]
        result = np.full(len(filled), -np.inf)
        if len(values):
            result[filled] = np.maximum.reduceat(values, self.starts[:-1][filled])
        return result

    def totals(self, values: Floats) -> Floats:
        """(b,) the sum of each row's values."""
        return np.bincount(self.rows, weights=values, minlength=len(self.starts) - 1).astype(
            np.float64, copy=False
        )

    def within(self, columns: Ints | None) -> Bools:
        """(e,) true where the label is one of the columns."""
        if columns is None:
            return np.ones(len(self.columns), dtype=np.bool_)
        return np.isin(self.columns, columns)


@dataclass(frozen=True)
class Evaluation:
    """What one block of b examples contributes under a cover.

    Attributes:
        negatives: (b, k) the sum over elements s of q(i, s, l) for irrelevant labels, 0 at relevant ones.
        positives: (e,) the same for the block's relevant labels, in the order of its entries.
        loss: (b,) covering loss.
        error: (b,) covering error, a label being predicted where its score is above 0.
    """

    negatives: Floats
    positives: Floats
    loss: Floats
    error: Floats


def evaluate(elements: Sequence[Element], scores: Floats, entries: Entries) -> Evaluation:
    """Weights, loss and error of a block of examples that share a cover.

    This is q of figure 2, summed over the elements of the cover (the sums W need no more, since every q is
    at least 0 and the sign of y h does not depend on the element), together with the covering loss and the
    covering error of section 2 of Amit, Dekel & Singer, "A boosting algorithm for label covering in
    multilabel problems". No margin overflows: exponentials are taken relative to each element's largest.

    Args:
        elements: the cover.
        scores: (b, k) f(x); **used up**: relevant labels are overwritten.
        entries: the relevant labels of the block.
    """
    # z = -y f: the relevant labels apart, the irrelevant ones in place with z = f.
    relevant = -scores[entries.rows, entries.columns]
    scores[entries.rows, entries.columns] = -np.inf
    n = len(scores)
    total = _Sums(None, np.zeros_like(relevant), np.zeros(n), np.zeros(n))
    for element in elements:
        (_add_tied if element.tied else _add_each)(element, scores, relevant, entries, total)
    negatives = np.zeros_like(scores) if total.negatives is None else total.negatives
    return Evaluation(negatives, total.positives, total.loss, total.error)


@dataclass
class _Sums:
    """An evaluation in the making; ``negatives`` is None until an element holds irrelevant labels."""

    negatives: Floats | None
    positives: Floats
    loss: Floats
    error: Floats

    def add_negatives(self, element: Element, values: Floats, shape: tuple[int, ...]) -> None:
        if element.columns is None:
            self.negatives = values if self.negatives is None else np.add(self.negatives, values, out=values)
            return
        if self.negatives is None:
            self.negatives = np.zeros(shape)
        self.negatives[:, element.columns] += values


def _add_each(element: Element, scores: Floats, relevant: Floats, entries: Entries, total: _Sums) -> None:
    """One element a label: q = exp(z)/(1 + exp(z)), loss log(1 + exp(z))."""
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
        held = entries.within(element.columns)
        z = np.where(held, relevant, -np.inf)
        small = np.exp(-np.abs(z))
        total.positives += weight * np.where(z > 0, 1.0, small) / (1.0 + small)
        total.loss += weight * entries.totals(np.maximum(z, 0.0) + np.log1p(small))
        total.error += weight * entries.totals((z >= 0).astype(np.float64))


def _logistic(z: Floats) -> tuple[Floats, Floats, Floats]:
    """exp(z)/(1 + exp(z)), and each row's sums of log(1 + exp(z)) and of z > 0; a z of -inf adds nothing."""
    q = np.abs(z)
    np.negative(q, out=q)
    np.exp(q, out=q)
    above = z > 0
    # Bits are counted eight labels at a time.
    wrong = np.bitwise_count(np.packbits(above, axis=1)).sum(axis=1, dtype=np.float64)
    denominator = np.maximum(z, 0.0)
    loss = denominator.sum(axis=1)
    np.add(q, 1.0, out=denominator)
    np.maximum(q, above, out=q)
    q /= denominator
    # The logarithm of a product of at most _FACTORS numbers between 1 and 2: one logarithm a row.
    for start in range(0, z.shape[1], _FACTORS):
        loss += np.log(_product(denominator[:, start : start + _FACTORS]))
    return q, loss, wrong


def _product(factors: Floats) -> Floats:
    """The product of each row, by halves, as whole vectors; the factors are used up."""
    width = factors.shape[1]
    while width > 8:
        half = width // 2
        factors[:, :half] *= factors[:, width - half : width]
        width -= half
    result: Floats = factors[:, :width].prod(axis=1)
    return result


def _add_tied(element: Element, scores: Floats, relevant: Floats, entries: Entries, total: _Sums) -> None:
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
        z = np.where(entries.within(element.columns), relevant, -np.inf)
        worst = entries.largest(z)
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
        rest += entries.totals(z)
    # exp(-base) + rest is the scaled denominator; one of its terms is exactly 1, which log1p takes apart.
    rest = np.where(base > 0, np.exp(-base) + rest - 1.0, rest)
    scale = element.weight / (1.0 + rest)
    if element.negatives:
        irrelevant *= scale[:, None]
        total.add_negatives(element, irrelevant, scores.shape)
    if element.positives:
        total.positives += z * scale[entries.rows]
    total.loss += element.weight * (base + np.log1p(rest))
    total.error += element.weight * wrong
