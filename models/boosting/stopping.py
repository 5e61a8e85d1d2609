"""Early stopping: judging each round on examples that are held out of training."""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Floats, Ints, Labels, Matrix
from models.boosting.hypothesis import Rule
from models.boosting.parameters import EarlyStopping
from models.errors import UnsuitableDataError

_NEVER = np.iinfo(np.int64).max


def held_out(Y: Labels, fraction: float, seed: int) -> Bools:
    """(g,) true for the examples to hold out; a label that has positive examples keeps one to learn from.

    Raises:
        UnsuitableDataError: too few examples to hold any out.
    """
    g = Y.shape[0]
    size = round(fraction * g)
    if not 0 < size < g:
        raise UnsuitableDataError(
            f"{g} examples cannot be split for early stopping; give more or set early_stopping to null"
        )
    drawn = np.zeros(g, dtype=np.bool_)
    drawn[np.random.default_rng(seed).permutation(g)[:size]] = True
    columns = Y.tocsc()
    put_back = []
    for label in range(Y.shape[1]):
        positives = columns.indices[columns.indptr[label] : columns.indptr[label + 1]]
        if len(positives) and drawn[positives].all():
            put_back.append(positives[0])
    drawn[put_back] = False
    return drawn


class Judge:
    """Keeps the scores of the held-out examples, and the round at which they were best.

    Attributes:
        best_rounds: (k,) rounds to keep of each label; all the same where labels are judged together.
    """

    def __init__(
        self, X: Matrix, Y: Labels, stopping: EarlyStopping, *, by_presence: bool, alone: bool
    ) -> None:
        """Start before the first round.

        Args:
            X: (n, r) held-out examples.
            Y: (n, k) their labels.
            stopping: patience and metric.
            by_presence: rules ask x ≠ 0; otherwise x > threshold.
            alone: judge each label on its own. A label without a held-out positive example cannot be judged,
                and takes every round.
        """
        self._columns = X.tocsc()
        self._relevant: Bools = Y.toarray().astype(np.bool_)
        self._stopping = stopping
        self._by_presence = by_presence
        self._alone = alone
        self._scores = np.zeros(Y.shape)
        self._round = 0
        self._best = np.full(Y.shape[1], -np.inf)
        self.best_rounds: Ints = np.zeros(Y.shape[1], dtype=np.int64)
        if alone:
            self.best_rounds[~self._relevant.any(axis=0)] = _NEVER

    def judge(self, rule: Rule) -> tuple[float, Ints]:
        """Add a round.

        Returns:
            the metric now, and the labels whose patience has just ended.
        """
        self._round += 1
        self._add(rule)
        values = self._values()
        judged = self.best_rounds != _NEVER
        better = judged & (values > self._best)
        self._best[better] = values[better]
        self.best_rounds[better] = self._round
        tired = judged & (self._round - self.best_rounds == self._stopping.patience)
        value = float(values[judged].mean()) if judged.any() else 0.0
        if self._stopping.metric == "hamming_loss":
            value = -value
        return value, np.flatnonzero(tired)

    def kept(self, rules: list[Rule]) -> list[Rule]:
        """The rules without what came after the best rounds."""
        kept: list[Rule] = []
        for number, rule in enumerate(rules, start=1):
            keep = self.best_rounds[rule.labels] >= number
            kept.append(
                Rule(
                    rule.labels[keep],
                    rule.features[keep],
                    rule.thresholds[keep],
                    rule.absent[keep],
                    rule.present[keep],
                )
            )
        return kept

    def _add(self, rule: Rule) -> None:
        n = self._scores.shape[0]
        for feature, threshold in {*zip(rule.features.tolist(), rule.thresholds.tolist(), strict=True)}:
            values = np.zeros(n)
            begin, end = self._columns.indptr[feature : feature + 2]
            values[self._columns.indices[begin:end]] = self._columns.data[begin:end]
            present = (values != 0) if self._by_presence else (values > threshold)
            mine = (rule.features == feature) & (rule.thresholds == threshold)
            labels = rule.labels[mine]
            self._scores[:, labels] += np.where(present[:, None], rule.present[mine], rule.absent[mine])

    def _values(self) -> Floats:
        """(k,) the metric, the larger the better; all the same where labels are judged together."""
        on = self._scores > 0
        wrong = np.count_nonzero(on != self._relevant, axis=0)
        if self._stopping.metric == "hamming_loss":
            losses: Floats = -wrong / len(on)
            return losses if self._alone else np.full(len(losses), losses.mean())
        right = 2.0 * np.count_nonzero(on & self._relevant, axis=0)
        if not self._alone and self._stopping.metric == "f1_micro":
            right, wrong = np.full(len(right), right.sum()), np.full(len(wrong), wrong.sum())
        some = right + wrong > 0
        f1 = np.divide(right, right + wrong, out=np.ones(len(right)), where=some)
        return f1 if self._alone else np.full(len(f1), f1.mean())
