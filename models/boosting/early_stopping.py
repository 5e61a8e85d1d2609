"""Early stopping: measuring each round on examples that are held out of training."""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Floats, Ints, Labels
from models.base import ValidationSet
from models.boosting.hypothesis import WeakHypothesis
from models.boosting.parameters import EarlyStopping
from models.errors import UnsuitableDataError
from models.splits import TRAINING, stratified_split

_UNLIMITED = np.iinfo(np.int64).max


def draw_held_out(Y: Labels, fraction: float, seed: int, groups: Ints | None) -> Bools:
    """Return which examples are held out, (g,). Every label keeps a training example.

    Args:
        Y: (g, k) label sets.
        fraction: share of the examples.
        seed: seed of the draw.
        groups: (g,) the document of each example; None if each is a document of its own.

    Raises:
        UnsuitableDataError: there is only one document.
    """
    held_out: Bools = stratified_split(Y, [fraction], seed=seed, groups=groups) != TRAINING
    if held_out.all() or not held_out.any():
        raise UnsuitableDataError(
            "a single document cannot be split for early stopping; give more documents, or set "
            "early_stopping to null"
        )
    return held_out


class EarlyStoppingMonitor:
    """The scores of the held-out examples, and the round in which they were best.

    Attributes:
        metric: the name of the metric.
        best_rounds: (k,) number of rounds to keep of each label; the same for all labels if they are measured
            together.
    """

    def __init__(
        self, examples: ValidationSet, parameters: EarlyStopping, *, by_presence: bool, per_label: bool
    ) -> None:
        """Start before the first round.

        Args:
            examples: the held-out examples. Their unknown labels are not measured.
            parameters: patience and metric.
            by_presence: whether weak hypotheses test x ≠ 0; otherwise they test x > threshold.
            per_label: whether to measure each label separately. A label without a held-out positive example
                cannot be measured and keeps every round.
        """
        Y, unknown = examples.Y, examples.unknown
        self._columns = examples.X.tocsc()
        self._relevant: Bools = Y.toarray().astype(np.bool_)
        self._known: Bools | None = None if unknown is None else unknown.toarray() == 0
        self._parameters = parameters
        self.metric = parameters.metric
        self._by_presence = by_presence
        self._per_label = per_label
        self._scores = np.zeros(Y.shape)
        self._round = 0
        self._best = np.full(Y.shape[1], -np.inf)
        self.best_rounds: Ints = np.zeros(Y.shape[1], dtype=np.int64)
        if per_label:
            self.best_rounds[~self._relevant.any(axis=0)] = _UNLIMITED

    def update(self, hypothesis: WeakHypothesis) -> tuple[float, Ints]:
        """Add a round.

        Returns:
            The current value of the metric, and the labels that have now gone ``patience`` rounds without a
            better value.
        """
        self._round += 1
        self._add_predictions(hypothesis)
        values = self._metric()
        measured = self.best_rounds != _UNLIMITED
        better = measured & (values > self._best)
        self._best[better] = values[better]
        self.best_rounds[better] = self._round
        exhausted = measured & (self._round - self.best_rounds == self._parameters.patience)
        value = float(values[measured].mean()) if measured.any() else 0.0
        if self._parameters.metric == "hamming_loss":
            value = -value
        return value, np.flatnonzero(exhausted)

    def truncate(self, rounds: list[WeakHypothesis]) -> list[WeakHypothesis]:
        """The weak hypotheses up to the best round of each label."""
        kept: list[WeakHypothesis] = []
        for number, hypothesis in enumerate(rounds, start=1):
            keep = self.best_rounds[hypothesis.labels] >= number
            kept.append(
                WeakHypothesis(
                    hypothesis.labels[keep],
                    hypothesis.features[keep],
                    hypothesis.thresholds[keep],
                    hypothesis.absent[keep],
                    hypothesis.present[keep],
                )
            )
        return kept

    def _add_predictions(self, hypothesis: WeakHypothesis) -> None:
        n = self._scores.shape[0]
        stumps = {*zip(hypothesis.features.tolist(), hypothesis.thresholds.tolist(), strict=True)}
        for feature, threshold in stumps:
            values = np.zeros(n)
            begin, end = self._columns.indptr[feature : feature + 2]
            values[self._columns.indices[begin:end]] = self._columns.data[begin:end]
            present = (values != 0) if self._by_presence else (values > threshold)
            same = (hypothesis.features == feature) & (hypothesis.thresholds == threshold)
            self._scores[:, hypothesis.labels[same]] += np.where(
                present[:, None], hypothesis.present[same], hypothesis.absent[same]
            )

    def _metric(self) -> Floats:
        """(k,) the metric, the larger the better; the same for all labels if they are measured together."""
        on = self._scores > 0
        n: int | Ints = len(on)
        if self._known is not None:
            on &= self._known
            n = np.maximum(np.count_nonzero(self._known, axis=0), 1)
        wrong = np.count_nonzero(on != self._relevant, axis=0)
        if self._parameters.metric == "hamming_loss":
            losses: Floats = -wrong / n
            return losses if self._per_label else np.full(len(losses), losses.mean())
        right = 2.0 * np.count_nonzero(on & self._relevant, axis=0)
        if not self._per_label and self._parameters.metric == "f1_micro":
            right, wrong = np.full(len(right), right.sum()), np.full(len(wrong), wrong.sum())
        defined = right + wrong > 0
        f1 = np.divide(right, right + wrong, out=np.ones(len(right)), where=defined)
        return f1 if self._per_label else np.full(len(f1), f1.mean())
