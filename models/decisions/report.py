"""How a decision was tuned: the chosen candidate, the alternatives, and their values."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from models.decisions.held_out import HeldOutSource
from models.decisions.rules import DecisionKind


class _Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, strict=True, use_attribute_docstrings=True
    )


class DecisionValues(_Part):
    """Measures on held-out examples on which the thresholds were not tuned."""

    f1_micro: float
    """Micro-averaged F1."""
    precision_micro: float
    """Share of the predicted labels that are right."""
    recall_micro: float
    """Share of the labels of the documents that are predicted."""
    subset_accuracy: float
    """Share of the documents whose label set is exactly right."""
    cost: float | None = None
    """Mean cost of a document. Absent unless the decision optimizes a cost."""


class DecisionCandidate(_Part):
    """A way to choose thresholds, with its held-out values."""

    thresholds: Literal["none", "zero", "global", "shrunk", "target"]
    """How the thresholds are chosen: none, only the label with the highest score is predicted; zero; one for
    all labels; one for each label, moved towards that of all labels the more, the fewer examples it has; or
    to reach a target."""
    at_least_one: bool
    """Whether the label with the highest score is predicted if there is no other."""
    at_most: int | None = None
    """Maximum number of predicted labels. Absent if there is no limit."""
    values: DecisionValues
    """Its values."""


MAX_ESTIMATES = 100
"""Maximum number of labels of a version whose estimates are reported."""


class TargetEstimate(_Part):
    """What a threshold of a target is expected to predict, by the held-out examples."""

    label: str | None = None
    """The label. Absent for all labels together."""
    precision: float | None = None
    """Mean calibrated probability of the predictions. Absent if nothing is predicted."""
    precision_low: float | None = None
    """Lower bound of the 95% confidence interval of the precision. Absent if nothing is predicted."""
    precision_high: float | None = None
    """Its upper bound. Absent if nothing is predicted."""
    recall: float | None = None
    """Share of the examples with the label for which it is predicted. Absent if no example has it."""
    positives: int
    """Number of examples with the label."""


class DecisionReport(_Part):
    """How a decision was tuned."""

    fallback: DecisionKind | None = None
    """What is used because too few examples could be held out: the learner's own decision, or `single_label`
    if every training example has exactly one label. Absent if the decision was tuned, and if the precision of
    a target cannot be judged, so that nothing is predicted."""
    source: HeldOutSource | None = None
    """Where the held-out scores come from: folds of the training part; validation examples; or
    (`test_then_train`) either of them, moved to the scale of the updated learner, and examples of partial
    fits, each scored before the learner learned it."""
    examples: int = 0
    """Number of examples with held-out scores."""
    partial_fit_examples: int = 0
    """Number of examples of partial fits among them."""
    tunable_labels: int = 0
    """Number of labels with enough examples for a threshold of their own."""
    chosen: DecisionCandidate | None = None
    """The candidate that is used."""
    alternatives: list[DecisionCandidate] = Field(default=[], max_length=17)
    """All candidates among which it was chosen, the simplest first; empty if there was no choice."""
    estimates: list[TargetEstimate] = Field(default=[], max_length=MAX_ESTIMATES)
    """What the thresholds of a target are expected to predict: those of each label, or only that of all
    labels together. Of many labels, only those with the most examples. Labels with too few examples have no
    estimate."""
    unreachable_labels: int = 0
    """Number of labels that are never predicted because it is not sure that they reach the precision of a
    target. A warning names them."""
