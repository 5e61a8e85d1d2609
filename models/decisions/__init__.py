"""Decision rules, which convert scores to label sets, and the tuning of their thresholds."""

from models.decisions.rules import (
    AtLeastOneDecision,
    CalibratedLabelDecision,
    DecisionKind,
    DecisionRule,
    SignDecision,
    SingleLabelDecision,
    TopKDecision,
    TunedThresholdDecision,
    decide,
    predicted_labels,
)

__all__ = [
    "AtLeastOneDecision",
    "CalibratedLabelDecision",
    "DecisionKind",
    "DecisionRule",
    "SignDecision",
    "SingleLabelDecision",
    "TopKDecision",
    "TunedThresholdDecision",
    "decide",
    "predicted_labels",
]
