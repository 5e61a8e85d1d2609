"""Parameters that AdaBoost.MH and MP-Boost share."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from models.base import LearnerParameters
from models.boosting.variants import BoostingVariant
from models.errors import ParameterError


class EarlyStopping(BaseModel):
    """Early stopping: training ends when a metric on held-out examples no longer improves."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    patience: int = Field(default=20, ge=1)
    """Training stops after this number of rounds without a better value of the metric. The model keeps the
    rounds up to the best one."""

    validation_fraction: float = Field(default=0.2, gt=0, lt=1)
    """Share of the training examples to hold out; the seed draws them as the parts of a random split. Has no
    effect if there are validation examples, which are then used instead."""

    metric: Literal["f1_micro", "f1_macro", "hamming_loss"] = "f1_macro"
    """The metric on the held-out examples. `mp_boost` measures each label separately: by its F1 for
    `f1_micro` and `f1_macro`, and by its error for `hamming_loss`."""


class BoostingParameters(LearnerParameters):
    """Parameters of boosting with decision stumps."""

    rounds: int = Field(default=200, ge=1, le=100_000)
    """Number of rounds; each round adds one weak hypothesis."""

    variant: BoostingVariant = "real"
    """The predictions of the two sides of a stump. `real`: each side predicts with a confidence.
    `real_abstaining`: the absent side predicts nothing. `discrete`: each side predicts +1 or -1, times one
    weight for the round."""

    smoothing: float | None = Field(default=None, ge=1e-100, le=1e9)
    """ε in the logarithm of a prediction; by default 1/(number of training examples · number of labels).
    Examples with weights count by their weights."""

    stump: Literal["presence", "threshold", "auto"] = "auto"
    """What a stump tests: whether the document has the feature (`presence`), or whether the feature exceeds a
    threshold (`threshold`). `auto`: presence for text, threshold for numeric features."""

    bins: int | None = Field(default=None, ge=2, le=256)
    """The largest number of bins into which the values of a feature are divided by their quantiles. Only the
    thresholds between bins are candidates, which makes training on many examples many times faster. A feature
    with no more distinct values keeps all thresholds. By default, every midpoint of two neighbouring
    values is a candidate. Only for threshold stumps."""

    early_stopping: EarlyStopping | None = None
    """Early stopping on held-out examples; by default, training takes all rounds."""

    def tests_presence(self, *, numeric_features: bool) -> bool:
        """Return whether stumps test presence; otherwise they test a threshold."""
        return self.stump == "presence" or (self.stump == "auto" and not numeric_features)

    def check_documents(self, *, numeric_features: bool) -> None:
        """Raise ``ParameterError`` if there are bins, but no thresholds."""
        if self.bins is not None and self.tests_presence(numeric_features=numeric_features):
            raise ParameterError(
                "the stumps test presence and have no thresholds; remove bins, or set stump to threshold",
                "/learner/bins",
            )
