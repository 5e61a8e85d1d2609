"""Decision rules: from the scores of an example to its label set.

A learner computes scores, and a decision rule converts them to a label set. Which rules are valid depends on
what the scores of the learner mean; see ``models.catalog``.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType

from models.arrays import Floats
from models.decisions.label_sets import LabelSetRule

DecisionKind = TypeAliasType(
    "DecisionKind",
    Annotated[
        Literal["sign", "top_k", "at_least_one", "calibrated_label", "tuned_threshold", "single_label"],
        Field(description="Kind of a decision rule."),
    ],
)


class _Decision(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


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
        SignDecision
        | TopKDecision
        | AtLeastOneDecision
        | CalibratedLabelDecision
        | TunedThresholdDecision
        | SingleLabelDecision,
        Field(discriminator="kind", description="How scores become label sets, discriminated by `kind`."),
    ],
)
"""Any decision rule; ``kind`` selects which."""


def untuned_rule(decision: DecisionRule, thresholds: Floats) -> LabelSetRule:
    """Return the rule of a decision whose thresholds are known.

    Args:
        decision: the decision.
        thresholds: (k,) the score above which each label is predicted; the same for all labels if the
            decision is ``top_k`` or ``single_label``, which then only depend on the ranking.

    >>> import numpy as np
    >>> rule = untuned_rule(AtLeastOneDecision(kind="at_least_one"), np.zeros(3))
    >>> rule.label_sets(np.array([[-2.0, -1.0, -1.0]])).indices.tolist()
    [1]
    """
    match decision:
        case TopKDecision(k=k):
            return LabelSetRule(thresholds, at_least=k, at_most=k)
        case SingleLabelDecision():
            return LabelSetRule(thresholds, at_least=1, at_most=1)
        case AtLeastOneDecision():
            return LabelSetRule(thresholds, at_least=1)
        case SignDecision() | CalibratedLabelDecision() | TunedThresholdDecision():
            return LabelSetRule(thresholds)
