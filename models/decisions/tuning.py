"""Fits a decision: from held-out scores to the rule that turns scores into label sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.base.training import abbreviated
from models.decisions.auto import LabelSetSizes, tune_auto
from models.decisions.curves import ChosenThreshold
from models.decisions.cuts import NEVER
from models.decisions.held_out import HeldOut
from models.decisions.label_sets import LabelSetRule
from models.decisions.report import (
    MAX_ESTIMATES,
    DecisionCandidate,
    DecisionReport,
    DecisionValues,
    TargetEstimate,
)
from models.decisions.rules import (
    AutoDecision,
    DecisionRule,
    SingleLabelDecision,
    TargetDecision,
    TunedThresholdDecision,
    untuned_rule,
)
from models.decisions.targets import Calibrate, TargetThresholds, tune_target
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
        warnings: what does not hold although the decision asks for it.
    """

    rule: LabelSetRule
    report: DecisionReport | None = None
    warnings: Sequence[str] = ()


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
        return FittedDecision(LabelSetRule(thresholds))
    if not isinstance(decision, AutoDecision | TargetDecision):
        return FittedDecision(untuned_rule(decision, learner.defaults(len(labels))))
    if held_out is None or not held_out.tunable.any():
        return _without_held_out(decision, learner, len(labels), sizes)
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
        return FittedDecision(
            choice.rule, report.model_copy(update={"chosen": chosen, "alternatives": alternatives})
        )
    target = tune_target(
        decision, held_out, default=learner.own_threshold, parents=learner.parents, calibrate=calibrate
    )
    report = report.model_copy(
        update={
            "chosen": DecisionCandidate(
                thresholds="target", at_least_one=False, values=DecisionValues(**target.values)
            ),
            "estimates": _estimates(target.found, labels),
            "unreachable_labels": int((target.rule.thresholds == NEVER).sum()),
        }
    )
    return FittedDecision(target.rule, report, _warnings(decision, target.found, labels))


def _without_held_out(
    decision: AutoDecision | TargetDecision, learner: LearnerScores, n_labels: int, sizes: LabelSetSizes
) -> FittedDecision:
    """Return a decision that cannot be tuned."""
    own, warnings = learner.own, []
    if isinstance(decision, TargetDecision):
        unjudged = f"the {decision.measure} cannot be judged, because too few examples can be held out"
        if decision.measure == "precision":
            never = LabelSetRule(np.full(n_labels, NEVER), at_most=decision.at_most, parents=learner.parents)
            warning = f"{unjudged}; no label is ever predicted"
            return FittedDecision(never, DecisionReport(unreachable_labels=n_labels), [warning])
        warnings.append(f"{unjudged}; the decision {own.kind} of the learner is used")
    elif sizes.exactly_one and learner.parents is None:
        own = SingleLabelDecision(kind="single_label")
    rule = untuned_rule(own, learner.defaults(n_labels))
    rule = replace(rule, at_most=rule.at_most or decision.at_most, parents=learner.parents)
    return FittedDecision(rule, DecisionReport(fallback=own.kind), warnings)


def _estimates(found: TargetThresholds, labels: Sequence[str]) -> list[TargetEstimate]:
    if found.of_all is not None:
        return [_estimate(None, found.of_all)]
    most_examples = sorted(found.of_labels.items(), key=lambda item: -item[1].positives)
    return [_estimate(labels[j], choice) for j, choice in most_examples[:MAX_ESTIMATES]]


def _estimate(label: str | None, choice: ChosenThreshold) -> TargetEstimate:
    low, high = choice.precision_interval or (None, None)
    return TargetEstimate(
        label=label,
        precision=choice.precision,
        precision_low=low,
        precision_high=high,
        recall=choice.recall,
        positives=choice.positives,
    )


def _warnings(decision: TargetDecision, found: TargetThresholds, labels: Sequence[str]) -> list[str]:
    def named(which: Bools) -> str:
        return abbreviated([labels[j] for j in np.flatnonzero(which).tolist()])

    if decision.measure == "recall":
        if found.judged.all():
            return []
        return [f"labels that have too few examples to judge their recall: {named(~found.judged)}"]
    unreachable = found.thresholds == NEVER
    if unreachable.all():
        shown = f"no label surely reaches the precision {decision.value:g} on held-out scores"
        return [f"{shown}, so no label is ever predicted; train with more examples, or lower the precision"]
    warnings = []
    for which, reason in (
        (unreachable & found.judged, "it is not sure on held-out scores that they reach the precision"),
        (unreachable & ~found.judged, "they have too few examples to judge their precision"),
    ):
        if which.any():
            warnings.append(f"labels that are never predicted because {reason}: {named(which)}")
    return warnings
