"""Measures of single examples, for paired tests between learners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from models.arrays import Floats, Labels
from models.hierarchy.forest import Scaling
from models.labels import LabelTree
from models.measures.covering import covering_measures
from models.measures.rankings import example_ranking_measures
from models.measures.sets import wrong_labels
from models.measures.tree import hierarchical_losses, simplified_hierarchical_losses
from models.measures.unknown import without_unknown


def example_measures(
    Y: Labels,
    predicted: Labels,
    scores: Floats,
    labels: Sequence[str],
    *,
    tree: LabelTree | None = None,
    coverings: Mapping[str, Any] | None = None,
    unknown: Labels | None = None,
) -> dict[str, Floats]:
    """Return the value for each example of every measure that is a mean over examples.

    Precision, recall and F1 are not means over examples, so they are not included.

    Args:
        Y: (n, k) true label sets.
        predicted: (n, k) predicted label sets.
        scores: (n, k) scores.
        labels: the k label names.
        tree: the label tree; if given, the tree losses are included.
        coverings: coverings by name; each adds the measures ``covering_error.NAME`` and
            ``covering_loss.NAME``, unless labels are unknown.
        unknown: (n, k) unknown labels; None if there are none. They are left out of every measure.

    Returns:
        (n,) values of each measure, by name. If a measure omits an example (ranking measures omit examples
        without labels), the value is NaN. The measure is the mean of the other values.

    Raises:
        ParameterError: a covering contains an unknown label or does not cover a label.
    """
    labels_of_example = float(Y.shape[1])
    if unknown is not None:
        predicted, scores = without_unknown(predicted, scores, unknown)
        # The mean number of known labels, so that the mean of the values is the measure.
        labels_of_example = max(1, Y.shape[0] * Y.shape[1] - unknown.nnz) / max(1, Y.shape[0])
        coverings = {}
    wrong = wrong_labels(Y, predicted)
    values: dict[str, Floats] = {
        "hamming_loss": wrong / labels_of_example,
        "subset_zero_one": (wrong > 0).astype(np.float64),
        "accuracy": (wrong == 0).astype(np.float64),
        **example_ranking_measures(Y, scores),
    }
    if tree is not None:
        parents = tree.parent_indices(labels)
        values["zero_one"] = values["subset_zero_one"]
        values["symmetric_difference"] = wrong.astype(np.float64)
        scalings: dict[str, Scaling] = {"": "uniform", "_sibling": "sibling", "_subtree": "subtree"}
        for suffix, scaling in scalings.items():
            values[f"hierarchical{suffix}"] = hierarchical_losses(Y, predicted, parents, scaling)
            values[f"simplified_hierarchical{suffix}"] = simplified_hierarchical_losses(
                Y, predicted, parents, scaling
            )
    return values | covering_measures(Y, predicted, scores, coverings or {}, labels)
