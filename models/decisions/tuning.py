"""Fits a decision: from held-out scores to the rule that turns scores into label sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.decisions.auto import LabelSetSizes, tune_auto
from models.decisions.held_out import HeldOut
from models.decisions.label_sets import LabelSetRule
from models.decisions.report import DecisionCandidate, DecisionReport, DecisionValues
from models.decisions.rules import (
    AutoDecision,
    DecisionRule,
    SingleLabelDecision,
    TargetDecision,
    TunedThresholdDecision,
    untuned_rule,
)
from models.decisions.targets import Calibrate, tune_target
from models.decisions.thresholds import tuned_thresholds


@dataclass(frozen=True)
class LearnerScores:
    """What a decision needs to know about the fitted learner and its scores.

    Attributes:
        own: the decision that suits the scores if nothing can be tuned.
        default: the score above which a label is predicted if its threshold is not tuned.
        has_zero: whether the default threshold is a meaningful one that the learner itself aims at.
        parents: (k,) index of each label's parent, if the label sets of the learner's own decision always
            include the ancestors of their labels; otherwise None.
    """

    own: DecisionRule
    default: float
    has_zero: bool
    parents: Ints | None

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
        unreachable: (k,) the labels that are never predicted because they cannot reach the target.
    """

    rule: LabelSetRule
    report: DecisionReport | None
    unreachable: Bools

    @classmethod
    def untuned(cls, rule: LabelSetRule, report: DecisionReport | None = None) -> Self:
        """Return a decision without a choice."""
        none = np.zeros(len(rule.thresholds), dtype=np.bool_)
        return cls(rule, report, none)


def fit_decision(
    decision: DecisionRule,
    held_out: HeldOut | None,
    learner: LearnerScores,
    labels: Sequence[str],
    sizes: LabelSetSizes,
    *,
    calibrate: Calibrate,
) -> FittedDecision:
    """Fit a decision.

    Args:
        decision: the decision.
        held_out: the held-out scores; None if the decision does not need them, or nothing can be held out.
        learner: the learner and its scores.
        labels: the k labels, in label order.
        sizes: how many labels the training examples have.
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
        return FittedDecision.untuned(LabelSetRule(thresholds))
    if not isinstance(decision, AutoDecision | TargetDecision):
        return FittedDecision.untuned(untuned_rule(decision, learner.defaults(len(labels))))
    if held_out is None or not held_out.tunable.any():
        own = learner.own
        if sizes.exactly_one and learner.parents is None and isinstance(decision, AutoDecision):
            own = SingleLabelDecision(kind="single_label")
        rule = untuned_rule(own, learner.defaults(len(labels)))
        rule = replace(rule, at_most=rule.at_most or decision.at_most, parents=learner.parents)
        return FittedDecision.untuned(rule, DecisionReport(fallback=own.kind))
    report = DecisionReport(
        source=held_out.source,
        examples=len(held_out.scores),
        tunable_labels=int(held_out.tunable.sum()),
    )
    if isinstance(decision, AutoDecision):
        choice = tune_auto(
            decision,
            held_out,
            labels=labels,
            sizes=sizes,
            default=learner.own_threshold,
            parents=learner.parents,
        )
        candidates = {
            candidate: DecisionCandidate(**candidate._asdict(), values=DecisionValues(**values))
            for candidate, values in choice.values.items()
        }
        chosen, alternatives = candidates[choice.candidate], [*candidates.values()]
        rule, unreachable = choice.rule, np.zeros(len(labels), dtype=np.bool_)
    else:
        target = tune_target(
            decision, held_out, default=learner.own_threshold, parents=learner.parents, calibrate=calibrate
        )
        chosen = DecisionCandidate(
            thresholds="target", at_least_one=False, values=DecisionValues(**target.values)
        )
        alternatives, rule, unreachable = [], target.rule, target.unreachable
    report = report.model_copy(
        update={
            "chosen": chosen,
            "alternatives": alternatives,
            "unreachable_labels": int(unreachable.sum()),
        }
    )
    return FittedDecision(rule, report, unreachable)
