"""Parameters that the two boosting learners share."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from models.base import LearnerParameters
from models.boosting.variants import Variant


class EarlyStopping(BaseModel):
    """Stopping before the last round, when examples that are held out of training gain no more."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    patience: int = Field(default=20, ge=1)
    """Rounds without a better value of the metric after which training stops and goes back to the best
    round."""

    validation_fraction: float = Field(default=0.2, gt=0, lt=1)
    """Share of the training examples that is held out, drawn by the seed."""

    metric: Literal["f1_micro", "f1_macro", "hamming_loss"] = "f1_macro"
    """What is judged on the held-out examples. `mp_boost` judges each label on its own: by its F1 under
    either `f1_micro` or `f1_macro`, by its error under `hamming_loss`."""


class BoostingParameters(LearnerParameters):
    """Parameters of boosting with one-question rules."""

    rounds: int = Field(default=200, ge=1, le=100_000)
    """Rounds; each adds one weak hypothesis."""

    variant: Variant = "real"
    """`real`: both answers predict with a confidence; `real_abstaining`: "no" predicts nothing; `discrete`:
    answers predict +1 or -1, times one weight a round."""

    smoothing: float | None = Field(default=None, ge=1e-100, le=1e9)
    """ε in the logarithm of a prediction; by default 1/(number of training examples · number of labels)."""

    stump: Literal["presence", "threshold", "auto"] = "auto"
    """What a rule asks: whether the document has the feature, or whether the feature exceeds a threshold.
    `auto`: presence for text, threshold for numeric features."""

    early_stopping: EarlyStopping | None = None
    """Stop when held-out examples gain no more; by default all rounds are taken."""
