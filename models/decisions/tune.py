"""Tunes a decision: from held-out scores to the rule that turns scores into label sets.

The thresholds of the decision ``target`` are those that a router with the same goal uses; see
``models.decisions.curves``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.base.training import abbreviated
from models.decisions.apply import NEVER, LabelSetRule, untuned_rule
from models.decisions.auto import LabelSetSizes, tune_auto
from models.decisions.curves import (
    BestF1,
    ChosenThreshold,
    Curve,
    Goal,
    HeldOutCurves,
    TargetPrecision,
    TargetRecall,
    label_thresholds,
)
from models.decisions.held_out import N_FOLDS, HeldOut, rows_of
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
)
from models.decisions.values import SetCounts

_ROUNDING = 1e-9
"""Probabilities that differ by less count as equal. None is closer to 0 or 1, so that each has a logit."""


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
        thresholds = tuned_thresholds(held_out, default=learner.own_threshold, fbr=decision.fbr)
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


def tuned_thresholds(held_out: HeldOut, *, default: float | None, fbr: float) -> Floats:
    """Return the threshold of each label with the best F1, (k,): SCut with the fallback FBR (Yang 2001).

    Args:
        held_out: the held-out scores.
        default: the threshold of a label with too few positive examples to tune it; None if the scores have
            no meaningful default threshold. The threshold is then the label's highest score.
        fbr: if the best F1 of a label is below this value, its threshold is its highest score.
    """
    thresholds: Floats = label_thresholds(
        held_out.scores,
        held_out.relevant(),
        held_out.known(),
        np.ones((1, len(held_out.scores)), dtype=np.bool_),
        held_out.tunable,
        default=default,
        goals=[BestF1(fbr)] * held_out.scores.shape[1],
    )[0]
    return thresholds


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
    goal = TargetPrecision(decision.value) if precision else TargetRecall(decision.value)
    if precision:
        default = NEVER
    thresholds = held_out.scores.max(axis=0) if default is None else np.full(n_labels, default)
    calibration = calibrate(held_out)
    if calibration is None:
        return TargetThresholds(thresholds, np.zeros(n_labels, dtype=np.bool_), {}, None)
    if decision.scope == "pooled":
        # A few high scores of labels without enough examples would spoil the precision of all labels.
        judged = held_out.tunable | (not precision)
        pooled, choice = _pooled(goal, held_out, judged, calibration, calibrate)
        return TargetThresholds(np.where(judged, pooled, thresholds), judged, {}, choice)
    curves = HeldOutCurves.of(held_out, calibration.label_probabilities(held_out.scores))
    of_labels = {}
    for j in np.flatnonzero(curves.judged).tolist():
        if (choice_of_label := curves.choose(j, goal)) is not None:
            of_labels[j] = choice_of_label
            thresholds[j] = choice_of_label.threshold
    return TargetThresholds(thresholds, curves.judged, of_labels, None)


def _pooled(
    goal: Goal,
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
    choice = curve.choose(goal)
    if choice.threshold == NEVER:
        return np.full(len(included), NEVER), choice
    pooled = min(max(choice.threshold, _ROUNDING), 1.0 - _ROUNDING)
    thresholds = np.clip(calibration.thresholds_at(np.full(len(included), pooled)), -NEVER, NEVER)
    # A label with few examples never has a high probability.
    reached = calibration.label_probabilities(thresholds[np.newaxis])[0] >= pooled - _ROUNDING
    return np.where(reached, thresholds, NEVER), choice
