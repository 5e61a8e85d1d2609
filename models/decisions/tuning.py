"""Fits a decision: from held-out scores to the rule that turns scores into label sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.decisions.auto import choose
from models.decisions.held_out import HeldOut
from models.decisions.label_sets import LabelSetRule
from models.decisions.report import DecisionCandidate, DecisionReport, DecisionValues
from models.decisions.rules import (
    AutoDecision,
    DecisionRule,
    TargetDecision,
    TunedThresholdDecision,
    untuned_rule,
)
from models.decisions.targets import Calibrate, reach
from models.decisions.thresholds import transferable, tuned_thresholds


@dataclass(frozen=True)
class LearnerScores:
    """What a decision needs to know about the fitted learner and its scores.

    Attributes:
        own: the decision that suits the scores if nothing can be tuned.
        default: the score above which a label is predicted if its threshold is not tuned.
        has_zero: whether the default threshold is a meaningful one that the learner itself aims at.
        parents: (k,) index of each label's parent, if the label sets of the learner's own decision always
            include the ancestors of their labels; otherwise None.
        training: returns (g, k) the scores of the examples that the learner was trained on. None if the
            held-out scores are its own scores of other examples.
    """

    own: DecisionRule
    default: float
    has_zero: bool
    parents: Ints | None
    training: Callable[[], Floats] | None

    @property
    def own_threshold(self) -> float | None:
        """The default threshold, if it is a meaningful one."""
        return self.default if self.has_zero else None

    def defaults(self, n_labels: int) -> Floats:
        """Return the default threshold of each label, (k,)."""
        return np.full(n_labels, self.default)


@dataclass(frozen=True)
class FittedDecision:
    """A fitted decision.

    Attributes:
        rule: how scores become label sets.
        report: how the decision was tuned; None if the kind of the decision gives no choice.
        reset: (k,) the labels that keep the default threshold because the tuned one is not valid for the
            final learner.
        unreachable: (k,) the labels that are never predicted because they cannot reach the target.
    """

    rule: LabelSetRule
    report: DecisionReport | None
    reset: Bools
    unreachable: Bools

    @classmethod
    def untuned(cls, rule: LabelSetRule, report: DecisionReport | None = None) -> Self:
        """Return a decision that is not tuned."""
        none = np.zeros(len(rule.thresholds), dtype=np.bool_)
        return cls(rule, report, reset=none, unreachable=none)


def fit_decision(
    decision: DecisionRule,
    held_out: HeldOut | None,
    learner: LearnerScores,
    labels: Sequence[str],
    *,
    calibrate: Calibrate,
) -> FittedDecision:
    """Fit a decision.

    Args:
        decision: the decision.
        held_out: the held-out scores; None if the decision does not need them, or nothing can be held out.
        learner: the learner and its scores.
        labels: the k labels, in label order.
        calibrate: fits probabilities on held-out scores.
    """
    if held_out is not None and isinstance(decision, TunedThresholdDecision):
        thresholds = tuned_thresholds(
            held_out.scores,
            held_out.Y,
            held_out.tunable,
            default=learner.own_threshold,
            fbr=decision.fbr,
            unknown=held_out.unknown,
        )
        return _reset(LabelSetRule(thresholds), held_out, learner, held_out.tunable)
    if not isinstance(decision, AutoDecision | TargetDecision):
        return FittedDecision.untuned(untuned_rule(decision, learner.defaults(len(labels))))
    if held_out is None or not held_out.tunable.any():
        rule = untuned_rule(learner.own, learner.defaults(len(labels)))
        rule = replace(rule, at_most=decision.at_most, parents=learner.parents)
        return FittedDecision.untuned(rule, DecisionReport(fallback=learner.own.kind))
    report = DecisionReport(
        source="validation" if learner.training is None else "folds",
        examples=len(held_out.scores),
        tunable_labels=int(held_out.tunable.sum()),
    )
    if isinstance(decision, AutoDecision):
        choice = choose(
            decision, held_out, labels=labels, default=learner.own_threshold, parents=learner.parents
        )
        candidates = {
            candidate: DecisionCandidate(**candidate._asdict(), values=DecisionValues(**values))
            for candidate, values in choice.values.items()
        }
        chosen, alternatives = candidates[choice.candidate], [*candidates.values()]
        fitted = _reset(choice.rule, held_out, learner, np.ones(len(labels), dtype=np.bool_))
    else:
        target = reach(
            decision, held_out, default=learner.own_threshold, parents=learner.parents, calibrate=calibrate
        )
        chosen = DecisionCandidate(
            thresholds="target", at_least_one=False, values=DecisionValues(**target.values)
        )
        alternatives = []
        fitted = _reset(target.rule, held_out, learner, ~target.unreachable)
        fitted = replace(fitted, unreachable=target.unreachable)
    report = report.model_copy(
        update={
            "chosen": chosen,
            "alternatives": alternatives,
            "reset_labels": int(fitted.reset.sum()),
            "unreachable_labels": int(fitted.unreachable.sum()),
        }
    )
    return replace(fitted, report=report)


def _reset(
    rule: LabelSetRule,
    held_out: HeldOut,
    learner: LearnerScores,
    labels: Bools,
) -> FittedDecision:
    """Give the default threshold to those of the labels whose tuned one is not valid for the final learner.

    It can only be replaced if the scores have a meaningful default threshold, and it is always valid if it
    was tuned on the scores of the final learner itself.
    """
    reset = np.zeros(len(labels), dtype=np.bool_)
    if learner.has_zero and learner.training is not None:
        valid = transferable(
            rule.thresholds, held_out.scores, learner.training(), held_out.Y, held_out.unknown
        )
        reset = labels & ~valid
        rule = replace(rule, thresholds=np.where(reset, learner.default, rule.thresholds))
    return FittedDecision(rule, None, reset, np.zeros(len(labels), dtype=np.bool_))
