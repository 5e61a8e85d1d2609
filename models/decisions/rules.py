"""Decisions: from the scores of an example to its set of labels.

A learner gives scores; the decision turns them into sets. Which decisions make sense depends on what a
learner's scores mean, which the catalogue knows (``models.catalog``).
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from scipy.sparse import csr_array

from models.arrays import Bools, Floats, Labels
from models.labels.ranking import ranking

DecisionKind: TypeAlias = Literal[
    "sign", "top_k", "at_least_one", "calibrated_label", "tuned_threshold", "single_label"
]


class _Decision(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class SignDecision(_Decision):
    """Every label whose score is above zero."""

    kind: Literal["sign"]


class TopKDecision(_Decision):
    """The k labels with the highest scores, whatever the scores are."""

    kind: Literal["top_k"]
    k: int = Field(ge=1, le=2**31 - 1)
    """How many labels every document gets; all labels where there are fewer."""


class AtLeastOneDecision(_Decision):
    """Every label whose score is above zero; where there is none, the best one."""

    kind: Literal["at_least_one"]


class CalibratedLabelDecision(_Decision):
    """Every label that beats the artificial label, of a learner that has one."""

    kind: Literal["calibrated_label"]


class TunedThresholdDecision(_Decision):
    """Every label whose score is above its own threshold, tuned by F1 on held-out training folds.

    A label with fewer training examples than folds keeps the learner's own threshold, 0; where scores tell
    only an order or count votes, it gets its highest held-out score.
    """

    kind: Literal["tuned_threshold"]
    fbr: float = Field(default=0.1, ge=0, le=1)
    """A label whose best F1 stays under this gets the highest held-out score as its threshold (SCutFBR)."""


class SingleLabelDecision(_Decision):
    """The one label with the highest score."""

    kind: Literal["single_label"]


DecisionUnion: TypeAlias = Annotated[
    SignDecision
    | TopKDecision
    | AtLeastOneDecision
    | CalibratedLabelDecision
    | TunedThresholdDecision
    | SingleLabelDecision,
    Field(discriminator="kind"),
]
"""Any decision, told apart by ``kind``."""


def decide(decision: DecisionUnion, scores: Floats, thresholds: Floats) -> Labels:
    """The label sets.

    Args:
        decision: how.
        scores: (n, k) scores.
        thresholds: (k,) scores above which a label is on: zeros, unless they were tuned. ``top_k`` and
            ``single_label`` do without.

    Returns:
        (n, k) sparse 0/1.

    >>> scores = np.array([[-2.0, -1.0, -1.0]])
    >>> decide(AtLeastOneDecision(kind="at_least_one"), scores, np.zeros(3)).indices.tolist()
    [1]
    """
    on = _above(scores, thresholds)
    match decision:
        case TopKDecision(k=k):
            on = _best(scores, k)
        case SingleLabelDecision():
            on = _best(scores, 1)
        case AtLeastOneDecision():
            on |= _best(scores, 1) & ~on.any(axis=1, keepdims=True)
        case SignDecision() | CalibratedLabelDecision() | TunedThresholdDecision():
            pass
    return csr_array(on.astype(np.int8))


def _above(scores: Floats, thresholds: Floats) -> Bools:
    return np.asarray(scores > thresholds)


def _best(scores: Floats, k: int) -> Bools:
    on = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(on, ranking(scores)[:, :k], values=True, axis=1)
    return on
