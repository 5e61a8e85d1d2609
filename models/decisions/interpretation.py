"""What the scores of a learner mean, and therefore which decision rules are valid for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from models.decisions.rules import DecisionKind


@dataclass(frozen=True)
class ScoreInterpretation:
    """The meaning of the scores of a learner with certain parameters.

    Attributes:
        decisions: the valid decision rules.
        own: the rule that suits the scores if nothing can be held out.
        reason: what the scores are, a clause for error messages such as "X is not valid because ...".
        when: the parameter values to which this interpretation applies; empty: all values.
        scale: ``zero`` if positive scores are for a label and negative scores against it, ``votes`` if scores
            are vote counts from 0 to k − 1, or ``order`` if only comparisons between scores are meaningful.
    """

    decisions: tuple[DecisionKind, ...]
    own: DecisionKind
    reason: str
    when: Mapping[str, Any] = field(default_factory=dict)
    scale: Literal["zero", "votes", "order"] = "zero"

    @property
    def default(self) -> DecisionKind:
        """The rule that is used if the request has none: ``auto``, unless scores are not comparable."""
        return "auto" if "auto" in self.decisions else self.own


_ALL_BUT_CALIBRATED: tuple[DecisionKind, ...] = (
    "auto",
    "target",
    "sign",
    "at_least_one",
    "top_k",
    "tuned_threshold",
    "single_label",
)

SIGNED = ScoreInterpretation(
    decisions=_ALL_BUT_CALIBRATED,
    own="sign",
    reason="its scores are positive for a label and negative against it, and it has no artificial label",
)
ORDER_ONLY = ScoreInterpretation(
    decisions=_ALL_BUT_CALIBRATED,
    own="tuned_threshold",
    reason="its scores only order the labels, and it has no artificial label",
    scale="order",
)
VOTES = ScoreInterpretation(
    decisions=("auto", "target", "tuned_threshold", "top_k", "single_label"),
    own="tuned_threshold",
    reason="its scores are vote counts, which have no natural threshold without calibration",
    scale="votes",
)
CALIBRATED_VOTES = ScoreInterpretation(
    decisions=(
        "auto",
        "target",
        "sign",
        "calibrated_label",
        "at_least_one",
        "top_k",
        "tuned_threshold",
        "single_label",
    ),
    own="sign",
    reason="its scores are votes minus the votes of the artificial label",
    when={"calibrated": True},
)
WITHIN_DOCUMENT = ScoreInterpretation(
    decisions=("single_label", "top_k"),
    own="single_label",
    reason="its scores compare the labels of one document and are not comparable between documents",
    when={"label_mode": "single_label"},
)
TOP_DOWN = ScoreInterpretation(
    decisions=("auto", "target", "sign", "at_least_one", "top_k", "tuned_threshold"),
    own="sign",
    reason="a label never scores higher than its parent in the label tree",
)
TREE_LABELING = ScoreInterpretation(
    decisions=("auto", "target", "sign", "at_least_one", "top_k", "tuned_threshold"),
    own="sign",
    reason="its scores compare labelings of the whole tree, which include the ancestors of every label",
)
