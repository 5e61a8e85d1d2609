"""Decisions: from the scores of an example to its set of labels."""

from models.decisions.rules import (
    AtLeastOneDecision,
    CalibratedLabelDecision,
    DecisionKind,
    DecisionUnion,
    SignDecision,
    SingleLabelDecision,
    TopKDecision,
    TunedThresholdDecision,
    decide,
)

__all__ = [
    "AtLeastOneDecision",
    "CalibratedLabelDecision",
    "DecisionKind",
    "DecisionUnion",
    "SignDecision",
    "SingleLabelDecision",
    "TopKDecision",
    "TunedThresholdDecision",
    "decide",
]
