"""Fits what a pipeline derives from held-out scores: label sets, probabilities, curves and reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from models import catalog
from models.arrays import Bools, Ints
from models.base import Learner
from models.calibration import Calibration, fit_calibration, fit_label_calibration
from models.decisions import DecisionRule, HeldOut, LabelSetRule
from models.decisions.auto import LabelSetSizes
from models.decisions.curves import HeldOutCurves
from models.decisions.report import DecisionReport
from models.decisions.tune import LearnerScores, fit_decision
from models.pipeline.reference import Reference, held_out_reference

OF_DECISION = "decision: "
"""The beginning of the warnings about a decision, which another decision replaces."""


@dataclass(frozen=True)
class Decided:
    """What follows from the held-out scores of a fitted learner.

    Attributes:
        rule: how scores become label sets.
        report: how the decision was tuned; None if its kind gives no choice.
        warnings: what does not hold although the decision asks for it.
        calibration: converts scores to probabilities; None without held-out scores.
        curves: what the possible thresholds predict for held-out examples; None without held-out scores.
        reference: what is predicted for held-out examples; None without them.
    """

    rule: LabelSetRule
    report: DecisionReport | None
    warnings: list[str]
    calibration: Calibration | None = None
    curves: HeldOutCurves | None = None
    reference: Reference | None = None


def decide(
    decision: DecisionRule,
    learner: Learner,
    held_out: HeldOut | None,
    labels: Sequence[str],
    *,
    parents: Ints | None,
    sizes: LabelSetSizes,
    without_example: Bools,
) -> Decided:
    """Fit a decision and probabilities.

    Args:
        decision: the decision.
        learner: the fitted learner.
        held_out: held-out scores on its scale; None if the decision does not need them, or there are none.
        labels: the k labels, in label order.
        parents: (k,) index of each label's parent; None without a label tree.
        sizes: how many labels the training examples have.
        without_example: (k,) whether no training example has the label.
    """
    default = catalog.default_threshold(learner, len(labels))
    fitted = fit_decision(
        decision,
        held_out,
        LearnerScores(
            own=catalog.own_decision(learner),
            default=default,
            has_zero=catalog.has_zero_threshold(learner),
            parents=parents if catalog.predicts_closed_sets(learner) else None,
        ),
        labels,
        sizes,
        calibrate=fit_label_calibration,
    )
    rule = fitted.rule
    if without_example.any():
        # A low threshold for all labels must not select labels that never applied.
        own = np.where(without_example, default, -np.inf)
        rule = replace(rule, thresholds=np.maximum(rule.thresholds, own))
    warnings = [f"{OF_DECISION}{warning}" for warning in fitted.warnings]
    if held_out is None:
        return Decided(rule, fitted.report, warnings)
    calibration, curves = fit_calibration(held_out, rule), None
    if calibration is not None:
        curves = HeldOutCurves.of(held_out, calibration.labels.label_probabilities(held_out.scores))
    return Decided(
        rule,
        fitted.report,
        warnings,
        calibration,
        curves,
        held_out_reference(held_out, rule, calibration),
    )
