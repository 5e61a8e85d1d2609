"""The decisions that a request can ask for, and which of them suit the scores of a learner.

A learner computes scores, and a decision converts them to a label set. Which decisions are valid depends on
what the scores of the learner mean; ``models.catalog`` states this for every learner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType

DecisionKind = TypeAliasType(
    "DecisionKind",
    Annotated[
        Literal[
            "auto",
            "target",
            "sign",
            "top_k",
            "at_least_one",
            "calibrated_label",
            "tuned_threshold",
            "single_label",
        ],
        Field(description="Kind of a decision rule."),
    ],
)


class _Decision(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class LabelCost(_Decision):
    """The costs of the mistakes with one label."""

    false_label: float | None = Field(default=None, gt=0, le=1e9)
    """Cost of predicting the label for a document that does not have it; by default, that of all labels."""
    missed_label: float | None = Field(default=None, gt=0, le=1e9)
    """Cost of not predicting the label for a document that has it; by default, that of all labels."""


class CostObjective(_Decision):
    """The least total cost of false and missed labels."""

    kind: Literal["cost"]
    false_label: float = Field(default=1.0, gt=0, le=1e9)
    """Cost of a predicted label that a document does not have."""
    missed_label: float = Field(default=1.0, gt=0, le=1e9)
    """Cost of a label of a document that is not predicted."""
    labels: dict[str, LabelCost] = Field(default={}, max_length=100_000)
    """Costs of single labels, by label."""


class AutoDecision(_Decision):
    """The best of several ways to choose thresholds, selected and tuned on held-out training folds.

    The candidates are the threshold zero, if it has a meaning for the learner; one threshold for all labels;
    one threshold for each label; and the latter, moved towards the threshold of all labels the more, the
    fewer examples a label has. Each is tried with and without predicting at least one label. The candidate
    with the best value on held-out examples on which it was not tuned is used. If nothing can be held out,
    the learner's own decision is used.
    """

    kind: Literal["auto"]
    optimize: Literal["f1_micro", "subset_accuracy"] | CostObjective = "f1_micro"
    """What is optimized: the micro-averaged F1, the share of documents whose label set is exactly right, or a
    cost."""
    at_most: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """Maximum number of labels of a document, those with the highest scores; no limit by default. Ancestors
    that are added in a label tree do not count."""


class TargetDecision(_Decision):
    """Thresholds that reach a precision or a recall on held-out training folds.

    To reach a precision, as many labels are predicted as possible, if the mean of their calibrated
    probabilities is surely at least the value. A label that does not reach it, or has too few examples to
    judge it, is never predicted, and a warning names it. To reach a recall, as few labels are predicted as
    possible; the recall of new documents varies around the value.
    """

    kind: Literal["target"]
    measure: Literal["precision", "recall"]
    """The measure that must reach the value."""
    value: float = Field(gt=0, le=1)
    """The value to reach."""
    scope: Literal["pooled", "per_label"] = "pooled"
    """Whether all predictions together reach the value, or those of each label."""
    at_most: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """Maximum number of labels of a document, those with the highest scores; no limit by default. Ancestors
    that are added in a label tree do not count. A limit can reduce the recall below the value."""


class SignDecision(_Decision):
    """Every label whose score is above zero."""

    kind: Literal["sign"]


class TopKDecision(_Decision):
    """The k labels with the highest scores, whatever the scores are."""

    kind: Literal["top_k"]
    k: int = Field(ge=1, le=2**31 - 1)
    """Number of labels of every document; all labels if the model has fewer."""


class AtLeastOneDecision(_Decision):
    """Every label whose score is above zero, or the label with the highest score if there is none."""

    kind: Literal["at_least_one"]


class CalibratedLabelDecision(_Decision):
    """Every label that ranks above the artificial label, for a learner that has one."""

    kind: Literal["calibrated_label"]


class TunedThresholdDecision(_Decision):
    """Every label whose score is above its threshold, which is tuned for F1 on held-out training folds.

    A label with fewer training examples than folds keeps the learner's default threshold, 0. If the scores
    are votes or are meaningful only as an order, its threshold is its highest held-out score instead.
    """

    kind: Literal["tuned_threshold"]
    fbr: float = Field(default=0.1, ge=0, le=1)
    """A label whose best F1 is below this value gets its highest held-out score as threshold (SCutFBR)."""


class SingleLabelDecision(_Decision):
    """The one label with the highest score."""

    kind: Literal["single_label"]


DecisionRule = TypeAliasType(
    "DecisionRule",
    Annotated[
        AutoDecision
        | TargetDecision
        | SignDecision
        | TopKDecision
        | AtLeastOneDecision
        | CalibratedLabelDecision
        | TunedThresholdDecision
        | SingleLabelDecision,
        Field(discriminator="kind", description="How scores become label sets, discriminated by `kind`."),
    ],
)
"""Any decision rule; ``kind`` selects which."""


def needs_held_out(decision: DecisionRule) -> bool:
    """Whether a decision is tuned on held-out scores."""
    return isinstance(decision, AutoDecision | TargetDecision | TunedThresholdDecision)


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
