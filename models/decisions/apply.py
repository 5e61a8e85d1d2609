"""The fitted form of every decision: from the scores of an example to its label set."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Bools, Floats, Ints, Labels
from models.decisions.rules import (
    AtLeastOneDecision,
    AutoDecision,
    CalibratedLabelDecision,
    DecisionRule,
    SignDecision,
    SingleLabelDecision,
    TargetDecision,
    TopKDecision,
    TunedThresholdDecision,
)
from models.labels.ranking import ranking

NEVER = float(np.finfo(np.float64).max)
"""The threshold of a label that is never predicted."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelSetRule:
    """How scores become label sets.

    A label is predicted if its score is above its threshold. If these are fewer than ``at_least`` labels, the
    best-ranked of the other labels are added. If they are more than ``at_most``, only the best-ranked of them
    remain. The ancestors of these labels are added last, and do not count. Ties are broken by label order, as
    in every ranking.

    Attributes:
        thresholds: (k,) a label is predicted if its score is above.
        at_least: minimum number of labels of an example; all labels if there are fewer.
        at_most: maximum number of labels of an example, without added ancestors; None for no limit.
        parents: (k,) the index of each label's parent, -1 for a root. If given, the ancestors of predicted
            labels are predicted, too.

    >>> rule = LabelSetRule(np.zeros(3), at_least=1)
    >>> rule.predicted(np.array([[-2.0, -1.0, -1.0], [1.0, -1.0, 2.0]])).tolist()
    [[False, True, False], [True, False, True]]
    """

    thresholds: Floats
    at_least: int = 0
    at_most: int | None = None
    parents: Ints | None = None
    _prefix: bool = field(init=False, repr=False)
    """Whether each label set consists of the ``at_most`` best-ranked labels, whatever the scores are."""
    _families: tuple[tuple[Ints, Ints, Ints], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        uniform = bool((self.thresholds == self.thresholds[:1]).all())
        object.__setattr__(self, "_prefix", uniform and self.at_least == self.at_most)
        object.__setattr__(self, "_families", () if self.parents is None else _families(self.parents))

    @property
    def only_best(self) -> bool:
        """Whether a label set depends only on which labels rank best, and not on thresholds."""
        return self._prefix

    @property
    def predicts_nothing(self) -> bool:
        """Whether every label set is empty, whatever the scores are."""
        return not self.at_least and bool((self.thresholds == NEVER).all())

    def predicted(self, scores: Floats) -> Bools:
        """Return whether each label is predicted, (n, k), for scores, (n, k)."""
        if self._prefix:
            predicted = _best(scores, self.at_least)
        else:
            predicted = np.asarray(scores > self.thresholds)
            if self.at_least:
                _fill(predicted, scores, min(self.at_least, scores.shape[1]))
            if self.at_most is not None:
                _cut(predicted, scores, self.at_most)
        for children, first_of_family, parents in self._families:
            predicted[:, parents] |= np.logical_or.reduceat(predicted[:, children], first_of_family, axis=1)
        return predicted

    def label_sets(self, scores: Floats) -> Labels:
        """Return the predicted label sets, (n, k) sparse 0/1, for scores, (n, k)."""
        return csr_array(self.predicted(scores).astype(np.int8))


def untuned_rule(decision: DecisionRule, thresholds: Floats) -> LabelSetRule:
    """Return the rule of a decision whose thresholds are known.

    Args:
        decision: the decision.
        thresholds: (k,) the score above which each label is predicted; the same for all labels if the
            decision is ``top_k`` or ``single_label``, which then only depend on the ranking.

    >>> import numpy as np
    >>> rule = untuned_rule(AtLeastOneDecision(kind="at_least_one"), np.zeros(3))
    >>> rule.label_sets(np.array([[-2.0, -1.0, -1.0]])).indices.tolist()
    [1]
    """
    match decision:
        case TopKDecision(k=k):
            return LabelSetRule(thresholds, at_least=k, at_most=k)
        case SingleLabelDecision():
            return LabelSetRule(thresholds, at_least=1, at_most=1)
        case AtLeastOneDecision():
            return LabelSetRule(thresholds, at_least=1)
        case AutoDecision(at_most=at_most) | TargetDecision(at_most=at_most):
            return LabelSetRule(thresholds, at_most=at_most)
        case SignDecision() | CalibratedLabelDecision() | TunedThresholdDecision():
            return LabelSetRule(thresholds)


def _best(scores: Floats, n_labels: int) -> Bools:
    best = np.zeros(scores.shape, dtype=np.bool_)
    best[np.arange(len(scores))[:, np.newaxis], ranking(scores, n_labels)] = True
    return best


def _fill(predicted: Bools, scores: Floats, at_least: int) -> None:
    """Add the best-ranked other labels to label sets that are too small, in place."""
    rows = np.flatnonzero(np.count_nonzero(predicted, axis=1) < at_least)
    if len(rows):
        ranked = ranking(np.where(predicted[rows], np.inf, scores[rows]), at_least)
        predicted[rows[:, np.newaxis], ranked] = True


def _cut(predicted: Bools, scores: Floats, at_most: int) -> None:
    """Keep the best-ranked labels of label sets that are too large, in place."""
    rows = np.flatnonzero(np.count_nonzero(predicted, axis=1) > at_most)
    if len(rows):
        ranked = ranking(np.where(predicted[rows], scores[rows], -np.inf), at_most)
        predicted[rows] = False
        predicted[rows[:, np.newaxis], ranked] = True


def _families(parents: Ints) -> tuple[tuple[Ints, Ints, Ints], ...]:
    """Group the labels that have a parent by depth, the deepest first.

    Returns:
        for each depth its labels, those with the same parent side by side; where each of these families
        begins; and the parent of each family.
    """
    depth = np.zeros(len(parents), dtype=np.int64)
    ancestors = parents
    while (ancestors >= 0).any():
        depth += ancestors >= 0
        ancestors = np.where(ancestors >= 0, parents[ancestors], -1)
    levels = []
    for level in range(int(depth.max(initial=0)), 0, -1):
        children = np.flatnonzero(depth == level)
        children = children[np.argsort(parents[children], kind="stable")]
        families, first = np.unique(parents[children], return_index=True)
        levels.append((children, first.astype(np.int64), families))
    return tuple(levels)
