"""The decision ``target``: thresholds that reach a precision or a recall on held-out scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.decisions.cuts import NEVER, Cuts, LabelCuts, PooledCuts, reach_precision, reach_recall
from models.decisions.held_out import N_FOLDS, HeldOut, rows_of
from models.decisions.label_sets import LabelSetRule
from models.decisions.rules import TargetDecision
from models.decisions.thresholds import thresholds_of_labels
from models.decisions.values import SetCounts


class LabelProbabilities(Protocol):
    """Converts scores to probabilities that increase with the score of each label, and back."""

    def label_probabilities(self, scores: Floats) -> Floats:
        """Return the probability of each label, (n, k), for scores, (n, k)."""
        ...

    def thresholds_at(self, probabilities: Floats) -> Floats:
        """Return the score at which each label has a probability, (k,) for (k,)."""
        ...


Calibrate: TypeAlias = Callable[[HeldOut], LabelProbabilities | None]
"""Fits probabilities on held-out scores; returns None if it cannot."""


@dataclass(frozen=True)
class TargetChoice:
    """The thresholds that reach a target.

    Attributes:
        rule: the rule, tuned on all held-out scores.
        values: its values by measure on held-out examples on which it was not tuned.
        unreachable: (k,) whether the label cannot reach the precision and is never predicted.
    """

    rule: LabelSetRule
    values: dict[str, float]
    unreachable: Bools


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
    compare well. Without probabilities, one score is the threshold of all labels. If the precision is the
    target, a label that cannot be tuned is never predicted.

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
        thresholds = _thresholds(decision, held_out.where(~rows), default, calibrate)
        predicted = LabelSetRule(thresholds, 0, decision.at_most, parents).predicted(held_out.scores[rows])
        counts.append(SetCounts.of(predicted, relevant[rows], rows_of(known, rows)))
    thresholds = _thresholds(decision, held_out, default, calibrate)
    rule = LabelSetRule(thresholds, 0, decision.at_most, parents)
    return TargetChoice(rule, SetCounts.concatenate(counts).values(), thresholds == NEVER)


def _thresholds(
    decision: TargetDecision, held_out: HeldOut, default: float | None, calibrate: Calibrate
) -> Floats:
    relevant, known = held_out.relevant(), held_out.known()
    if decision.scope == "per_label":
        return _of_labels(decision, held_out, relevant, known, default)
    # A few high scores of labels without enough examples would spoil the precision of all labels.
    included = held_out.tunable | (decision.measure == "recall")
    counted = np.broadcast_to(included, relevant.shape)
    counted = counted if known is None else counted & known
    calibration = calibrate(held_out)
    scores = held_out.scores if calibration is None else calibration.label_probabilities(held_out.scores)
    pooled = _threshold(decision, PooledCuts.of(scores, relevant, counted))
    thresholds = np.full(relevant.shape[1], pooled)
    if calibration is not None and pooled != NEVER:
        thresholds = np.clip(calibration.thresholds_at(thresholds), -NEVER, NEVER)
    return np.where(included, thresholds, NEVER)


def _of_labels(
    decision: TargetDecision, held_out: HeldOut, relevant: Bools, known: Bools | None, default: float | None
) -> Floats:
    def select(label: int, cuts: LabelCuts) -> float:  # noqa: ARG001 - the same for every label
        return _threshold(decision, cuts)

    everything = np.ones((1, len(relevant)), dtype=np.bool_)
    thresholds: Floats = thresholds_of_labels(
        held_out.scores,
        relevant,
        known,
        everything,
        held_out.tunable,
        default=NEVER if decision.measure == "precision" else default,
        select=select,
    )[0]
    return thresholds


def _threshold(decision: TargetDecision, cuts: Cuts) -> float:
    if decision.measure == "recall":
        return cuts.threshold(reach_recall(cuts, decision.value))
    cut = reach_precision(cuts, decision.value)
    return NEVER if cut is None else cuts.threshold(cut)
