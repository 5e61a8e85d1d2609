"""The decision ``target``: thresholds that reach a precision or a recall on held-out scores.

The thresholds of labels are those that a router with the same policy uses; see ``models.decisions.curves``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.decisions.curves import ChosenThreshold, Curve, HeldOutCurves
from models.decisions.cuts import NEVER
from models.decisions.held_out import N_FOLDS, HeldOut, rows_of
from models.decisions.label_sets import LabelSetRule
from models.decisions.policies import Policy, TargetPrecision, TargetRecall
from models.decisions.rules import TargetDecision
from models.decisions.values import SetCounts

_ROUNDING = 1e-9
"""Probabilities that differ by less count as equal. None is closer to 0 or 1, so that each has a logit."""


class LabelProbabilities(Protocol):
    """Converts scores to probabilities that increase with the score of each label, and back."""

    def label_probabilities(self, scores: Floats) -> Floats:
        """Return the probability of each label, (n, k), for scores, (n, k)."""
        ...

    def thresholds_at(self, probabilities: Floats) -> Floats:
        """Return the score at which each label has a probability, (k,) for (k,)."""
        ...


Calibrate: TypeAlias = Callable[[HeldOut], LabelProbabilities | None]
"""Fits probabilities on held-out scores; returns None if no label is known for any example."""


@dataclass(frozen=True)
class TargetThresholds:
    """Thresholds, and what they predict for the held-out examples.

    Attributes:
        thresholds: (k,) the thresholds; ``NEVER`` for a label that cannot reach the precision.
        judged: (k,) whether each label has enough examples to judge the target.
        of_labels: what the threshold of each such label predicts, by the number of the label; empty if the
            target is pooled.
        of_all: what the thresholds of all labels predict together; None if each label has the target.
    """

    thresholds: Floats
    judged: Bools
    of_labels: dict[int, ChosenThreshold]
    of_all: ChosenThreshold | None


@dataclass(frozen=True)
class TargetChoice:
    """The thresholds that reach a target.

    Attributes:
        rule: the rule, tuned on all held-out scores.
        values: its values by measure on held-out examples on which it was not tuned.
        found: its thresholds.
    """

    rule: LabelSetRule
    values: dict[str, float]
    found: TargetThresholds


def tune_target(
    decision: TargetDecision,
    held_out: HeldOut,
    *,
    default: float | None,
    parents: Ints | None,
    calibrate: Calibrate,
) -> TargetChoice:
    """Choose thresholds that reach a target.

    Pooled thresholds are those of one probability of all labels, because raw scores of several labels do not
    compare well. If the precision is the target, a label that cannot be tuned is never predicted.

    Args:
        decision: the decision.
        held_out: the held-out scores.
        default: the threshold of a label that cannot be tuned, if the recall of each label is the target;
            None if the scores have no meaningful threshold of their own. The threshold of such a label is
            then its highest score.
        parents: (k,) index of each label's parent, if ancestors of predicted labels are predicted, too.
        calibrate: fits the probabilities.
    """
    relevant, known = held_out.relevant(), held_out.known()
    counts = []
    for fold in range(N_FOLDS):
        rows = held_out.folds == fold
        thresholds = _choose(decision, held_out.where(~rows), default, calibrate).thresholds
        predicted = LabelSetRule(thresholds, 0, decision.at_most, parents).predicted(held_out.scores[rows])
        counts.append(SetCounts.of(predicted, relevant[rows], rows_of(known, rows)))
    found = _choose(decision, held_out, default, calibrate)
    rule = LabelSetRule(found.thresholds, 0, decision.at_most, parents)
    return TargetChoice(rule, SetCounts.concatenate(counts).values(), found)


def _choose(
    decision: TargetDecision, held_out: HeldOut, default: float | None, calibrate: Calibrate
) -> TargetThresholds:
    n_labels, precision = held_out.scores.shape[1], decision.measure == "precision"
    policy = TargetPrecision(decision.value) if precision else TargetRecall(decision.value)
    if precision:
        default = NEVER
    thresholds = held_out.scores.max(axis=0) if default is None else np.full(n_labels, default)
    calibration = calibrate(held_out)
    if calibration is None:
        return TargetThresholds(thresholds, np.zeros(n_labels, dtype=np.bool_), {}, None)
    if decision.scope == "pooled":
        # A few high scores of labels without enough examples would spoil the precision of all labels.
        judged = held_out.tunable | (not precision)
        pooled, choice = _pooled(policy, held_out, judged, calibration, calibrate)
        return TargetThresholds(np.where(judged, pooled, thresholds), judged, {}, choice)
    curves = HeldOutCurves.of(held_out, calibration.label_probabilities(held_out.scores))
    of_labels = {}
    for j in np.flatnonzero(curves.judged).tolist():
        if (choice_of_label := curves.choose(j, policy)) is not None:
            of_labels[j] = choice_of_label
            thresholds[j] = choice_of_label.threshold
    return TargetThresholds(thresholds, curves.judged, of_labels, None)


def _pooled(
    policy: Policy,
    held_out: HeldOut,
    included: Bools,
    calibration: LabelProbabilities,
    calibrate: Calibrate,
) -> tuple[Floats, ChosenThreshold]:
    """Return the scores at which the labels have the same probability, and what they predict together.

    The pairs of example and label are ordered by probabilities that other folds have fitted: a calibration
    tells the pairs that it has seen apart better than new ones.
    """
    probabilities, known = calibration.label_probabilities(held_out.scores), held_out.known()
    by_others = probabilities.copy()
    for fold in np.unique(held_out.folds):
        rows = held_out.folds == fold
        if (of_others := calibrate(held_out.where(~rows))) is not None:
            by_others[rows] = of_others.label_probabilities(held_out.scores[rows])
    counted = np.broadcast_to(included, probabilities.shape)
    counted = counted if known is None else counted & known
    if not counted.any():
        return np.full(len(included), NEVER), ChosenThreshold.never(0)
    curve = Curve.of(by_others[counted], probabilities[counted], held_out.relevant()[counted])
    choice = curve.choose(policy)
    if choice.threshold == NEVER:
        return np.full(len(included), NEVER), choice
    pooled = min(max(choice.threshold, _ROUNDING), 1.0 - _ROUNDING)
    thresholds = np.clip(calibration.thresholds_at(np.full(len(included), pooled)), -NEVER, NEVER)
    # A label with few examples never has a high probability.
    reached = calibration.label_probabilities(thresholds[np.newaxis])[0] >= pooled - _ROUNDING
    return np.where(reached, thresholds, NEVER), choice
