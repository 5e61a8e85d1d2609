"""Reject learners that cannot be trained on a data set with unknown labels or with weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models import catalog
from models.catalog import LearnerConfig


def check_trainable(learner: LearnerConfig, report: Mapping[str, Any], *, given_split: bool) -> None:
    """Check that a learner can be trained on a data set.

    Args:
        learner: the learner.
        report: the report on the data set.
        given_split: whether only the training split of the data set is for training.

    Raises:
        ParameterError: training examples have unknown labels, and the learner trains all labels together; or
            they have weights, and the learner does not accept weights.
    """
    if report["n_training_with_unknown" if given_split else "n_with_unknown"]:
        catalog.check_unknown_labels(learner)
    if report["n_training_weighted" if given_split else "n_weighted"]:
        catalog.check_weights(learner)
