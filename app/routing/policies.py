"""The thresholds of a router: fixed ones, and those that follow from its policies.

They are computed once for each router and version, not for each message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from app.routing.schemas import LabelPolicy, RouterPut, ThresholdSource
from app.serving.loaded_version import LoadedVersion, RouterRule
from app.serving.snapshot import ServedRouter
from models.base.training import abbreviated
from models.decisions.apply import NEVER
from models.decisions.curves import ChosenThreshold, Goal, LeastCost, TargetPrecision, TargetRecall
from models.pipeline import Pipeline

NO_CURVES: Final = (
    "the version has no held-out curves, so the policies of the router cannot be applied; train a version "
    "with the decision auto, or remove the policies from the router"
)
"""Why a message needs a review if thresholds cannot follow from the policies of its router."""

NOTHING: Final = (
    "no department is ever selected, and every message goes to the fallback, because no label of the version "
    "reaches its target; lower the target, or train with more examples"
)
"""The fault of a router whose thresholds no score exceeds."""


@dataclass(frozen=True, slots=True)
class EffectiveThreshold:
    """The threshold with which a router uses a label of a version.

    Attributes:
        label: the label.
        threshold: the label is predicted if its score is above; None if it is never predicted.
        source: what the threshold follows from.
        choice: what a policy has chosen; None if no policy has chosen the threshold.
        judged: whether the label has enough examples for its policy, if it has one.
    """

    label: str
    threshold: float | None
    source: ThresholdSource
    choice: ChosenThreshold | None = None
    judged: bool = True


def has_policies(config: RouterPut) -> bool:
    """Whether thresholds of a router follow from policies."""
    return bool(config.label_policies) or policy_of(config) is not None


def policy_of(fields: RouterPut | LabelPolicy) -> Goal | None:
    """Return the policy of a router or of a label; None if it has none."""
    if fields.target_precision is not None:
        return TargetPrecision(fields.target_precision)
    if fields.target_recall is not None:
        return TargetRecall(fields.target_recall)
    if fields.costs is not None:
        return LeastCost(fields.costs.false_label, fields.costs.missed_label)
    return None


def effective_thresholds(pipeline: Pipeline, config: RouterPut) -> Iterator[EffectiveThreshold]:
    """Yield the threshold of each label of a version, in label order.

    A fixed threshold of the router comes before a policy of the label, this before a policy of the router,
    and this before the threshold of the version. Without held-out curves, policies have no effect.
    """
    of_labels = {label: policy_of(policy) for label, policy in config.label_policies.items()}
    of_router, curves = policy_of(config), pipeline.curves_
    judged = [] if curves is None else curves.judged.tolist()
    for number, (label, fitted) in enumerate(
        zip(pipeline.labels_, pipeline.thresholds_.tolist(), strict=True)
    ):
        if label in config.thresholds:
            yield EffectiveThreshold(label, config.thresholds[label], "fixed")
            continue
        policy = of_labels.get(label, of_router)
        choice = None if policy is None or curves is None else curves.choose(number, policy)
        is_judged = policy is None or curves is None or judged[number]
        if policy is None or choice is None:
            threshold = None if fitted == NEVER else fitted
            yield EffectiveThreshold(label, threshold, "version", judged=is_judged)
        else:
            threshold = None if choice.threshold == NEVER else choice.threshold
            yield EffectiveThreshold(label, threshold, _source(policy), choice, is_judged)


def threshold_warnings(pipeline: Pipeline, config: RouterPut) -> list[str]:
    """Return what the policies of a router do not achieve with a version, in full sentences."""
    if create_rule(pipeline, config).rule.predicts_nothing:
        return [NOTHING]
    labels = [*effective_thresholds(pipeline, config)]
    never = [item for item in labels if item.source == "target_precision" and item.threshold is None]
    reasons = {
        "labels that are never selected because it is not sure on held-out scores that they reach "
        "target_precision": [item for item in never if item.judged],
        "labels that are never selected because they have too few examples to judge target_precision": [
            item for item in never if not item.judged
        ],
        "labels that have too few examples to judge their policy, and keep the threshold of the version": [
            item for item in labels if item.source == "version" and not item.judged
        ],
    }
    named = {reason: [item.label for item in items] for reason, items in reasons.items() if items}
    return [f"{reason}: {abbreviated(labels)}" for reason, labels in named.items()]


def router_rule(version: LoadedVersion, router: ServedRouter, config: RouterPut) -> RouterRule:
    """Return how a router turns the scores of a version into label sets.

    It is computed at the first call, which can take long if there are thousands of labels.
    """
    rule = version.rules.get(router)
    if rule is None:
        rule = version.rules[router] = create_rule(version.pipeline, config)
    return rule


def create_rule(pipeline: Pipeline, config: RouterPut) -> RouterRule:
    """Return how a router with a configuration turns the scores of a version into label sets."""
    thresholds = config.thresholds
    applied = has_policies(config) and pipeline.curves_ is not None
    if applied:
        thresholds = {
            item.label: NEVER if item.threshold is None else item.threshold
            for item in effective_thresholds(pipeline, config)
        }
    # The version can be newer than the router, and lack some of its labels.
    rule = pipeline.rule_with(thresholds, at_most=config.at_most, ignore_unknown=True)
    if applied:
        # The best label must not be selected although its score is below a threshold that a policy needs, and
        # how many labels the decision found best for its own thresholds says nothing about these.
        limits = (config.at_most, getattr(pipeline.decision_, "at_most", rule.at_most))
        rule = replace(rule, at_least=0, at_most=min((n for n in limits if n is not None), default=None))
    return RouterRule(rule, NO_CURVES if has_policies(config) and not applied else None)


def _source(policy: Goal) -> ThresholdSource:
    match policy:
        case TargetPrecision():
            return "target_precision"
        case TargetRecall():
            return "target_recall"
        case LeastCost():
            return "costs"
