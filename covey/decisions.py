"""Decisions: how the scores of a document become its label set.

A pipeline accepts the name of a decision, such as ``"sign"``, its JSON form, such as
``{"kind": "top_k", "k": 3}``, or an instance of one of these classes.

>>> TopKDecision(kind="top_k", k=3).k
3
"""

from models.decisions import (
    AtLeastOneDecision,
    AutoDecision,
    CalibratedLabelDecision,
    DecisionRule,
    LabelSetRule,
    SignDecision,
    SingleLabelDecision,
    TargetDecision,
    TopKDecision,
    TunedThresholdDecision,
)

__all__ = [
    "AtLeastOneDecision",
    "AutoDecision",
    "CalibratedLabelDecision",
    "DecisionRule",
    "LabelSetRule",
    "SignDecision",
    "SingleLabelDecision",
    "TargetDecision",
    "TopKDecision",
    "TunedThresholdDecision",
]
