"""Decision rules: from the scores of an example to its label set.

A learner computes scores, and a decision rule converts them to a label set. Which rules are valid depends on
what the scores of the learner mean; see ``models.catalog``.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from scipy.sparse import csr_array
from typing_extensions import TypeAliasType

from models.arrays import Bools, Floats, Labels
from models.labels.ranking import ranking

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


def decide(decision: DecisionRule, scores: Floats, thresholds: Floats) -> Labels:
    """Apply a decision rule.

    Args:
        decision: the rule.
        scores: (n, k) scores.
        thresholds: (k,) the score above which each label is predicted. ``top_k`` and ``single_label`` ignore
            them.

    Returns:
        (n, k) the predicted label sets, sparse 0/1.

    >>> scores = np.array([[-2.0, -1.0, -1.0]])
    >>> decide(AtLeastOneDecision(kind="at_least_one"), scores, np.zeros(3)).indices.tolist()
    [1]
    """
    return csr_array(predicted_labels(decision, scores, thresholds).astype(np.int8))


def predicted_labels(decision: DecisionRule, scores: Floats, thresholds: Floats) -> Bools:
    """Apply a decision rule as ``decide`` does, and return (n, k) whether each label is predicted."""
    match decision:
        case TopKDecision(k=k):
            return _best(scores, k)
        case SingleLabelDecision():
            return _best(scores, 1)
        case SignDecision() | CalibratedLabelDecision() | TunedThresholdDecision():
            return np.asarray(scores > thresholds)
        case AtLeastOneDecision():
            predicted = np.asarray(scores > thresholds)
            return predicted | (_best(scores, 1) & ~predicted.any(axis=1, keepdims=True))


def _best(scores: Floats, k: int) -> Bools:
    best = np.zeros(scores.shape, dtype=np.bool_)
    best[np.arange(len(scores))[:, np.newaxis], ranking(scores, k)] = True
    return best
