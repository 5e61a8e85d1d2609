"""The label forest of a training."""

from __future__ import annotations

import numpy as np

from models.base import Context, TrainingSummary
from models.errors import ParameterError
from models.hierarchy.forest import Forest


def forest_from_context(context: Context, n_labels: int, summary: TrainingSummary) -> Forest:
    """Return the label forest that the context of a training describes.

    Without a label tree, every label is a root. That is a valid forest, but there is no hierarchy to learn,
    so the function adds a warning.

    Args:
        context: of the training.
        n_labels: number k of labels.
        summary: receives the warning.

    Raises:
        ParameterError: The tree is not a tree over these k labels, or has a cycle.
    """
    if context.parents is None:
        summary.warnings.append(
            "the data set has no label_tree, so every label is a root; add a label_tree to learn a hierarchy"
        )
        return Forest(np.full(n_labels, -1))
    if len(context.parents) != n_labels:
        raise ParameterError(
            f"the label tree has {len(context.parents)} labels, but the examples have {n_labels}",
            "/label_tree",
        )
    return Forest(context.parents)
