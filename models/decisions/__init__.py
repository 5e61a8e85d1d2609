"""Decision rules, which convert scores to label sets, and the tuning of their thresholds."""

from models.decisions.apply import LabelSetRule, untuned_rule
from models.decisions.held_out import N_FOLDS, HeldOut
from models.decisions.rules import (
    AtLeastOneDecision,
    AutoDecision,
    CalibratedLabelDecision,
    DecisionKind,
    DecisionRule,
    SignDecision,
    SingleLabelDecision,
    TargetDecision,
    TopKDecision,
    TunedThresholdDecision,
    needs_held_out,
)

__all__ = [
    "N_FOLDS",
    "AtLeastOneDecision",
    "AutoDecision",
    "CalibratedLabelDecision",
    "DecisionKind",
    "DecisionRule",
    "HeldOut",
    "LabelSetRule",
    "SignDecision",
    "SingleLabelDecision",
    "TargetDecision",
    "TopKDecision",
    "TunedThresholdDecision",
    "needs_held_out",
    "untuned_rule",
]
