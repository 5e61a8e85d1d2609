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
    # Reports of earlier releases do not have these counts; their examples have no unknown labels or weights.
    if report.get("n_training_with_unknown" if given_split else "n_with_unknown", 0):
        catalog.check_unknown_labels(learner)
    if report.get("n_training_weighted" if given_split else "n_weighted", 0):
        catalog.check_weights(learner)
