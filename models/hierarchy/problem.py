"""What the hierarchical learners ask of a training's context."""

from __future__ import annotations

import numpy as np

from models.base import Context, TrainingSummary
from models.errors import ParameterError
from models.hierarchy.forest import Forest


def forest_of(context: Context, n_labels: int, notes: TrainingSummary) -> Forest:
    """The label forest of a training.

    Without a tree every label is a root: a legal forest, but one that gives a hierarchical learner nothing to
    work with, so the notes say so.

    Raises:
        ParameterError: the tree is not one over these labels, or has a cycle.
    """
    if context.parents is None:
        notes.warnings.append(
            "the data set has no label_tree, so every label is a root; give it one to learn a hierarchy"
        )
        return Forest(np.full(n_labels, -1))
    if len(context.parents) != n_labels:
        raise ParameterError(
            f"the label tree has {len(context.parents)} labels and the examples have {n_labels}",
            "/label_tree",
        )
    return Forest(context.parents)
