"""The measures that are means over examples, example by example, for paired tests between learners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from models.arrays import Floats, Labels
from models.hierarchy.forest import Scaling
from models.labels import LabelTree
from models.measures.covering import covering_errors
from models.measures.rankings import example_ranking_measures
from models.measures.sets import wrong_labels
from models.measures.tree import hierarchical_losses, simplified_hierarchical_losses

COVERING = "covering_error."
"""What the name of a covering's error begins with where there are several coverings."""


def example_measures(
    Y: Labels,
    predicted: Labels,
    scores: Floats,
    labels: Sequence[str],
    *,
    tree: LabelTree | None = None,
    coverings: Mapping[str, Any] | None = None,
) -> dict[str, Floats]:
    """Each measure that is a mean over examples, before the mean is taken.

    Precision, recall and F1 are no such means and are not among them.

    Args:
        Y: (n, k) true label sets.
        predicted: (n, k) predicted label sets.
        scores: (n, k) scores.
        labels: the k names.
        tree: with it, the tree losses too.
        coverings: by name; each adds ``covering_error.NAME``.

    Returns:
        (n,) values by the measures' names. Where a measure leaves an example out (rankings of examples
        without labels), the value is NaN; the mean of the others is the measure.

    Raises:
        ParameterError: a covering names an unknown label or leaves a label uncovered.
    """
    wrong = wrong_labels(Y, predicted)
    each: dict[str, Floats] = {
        "hamming_loss": wrong / Y.shape[1],
        "subset_zero_one": (wrong > 0).astype(np.float64),
        "accuracy": (wrong == 0).astype(np.float64),
        **example_ranking_measures(Y, scores),
    }
    if tree is not None:
        parents = tree.parent_indices(labels)
        each["zero_one"] = each["subset_zero_one"]
        each["symmetric_difference"] = wrong.astype(np.float64)
        scalings: dict[str, Scaling] = {"": "uniform", "_sibling": "sibling", "_subtree": "subtree"}
        for suffix, scaling in scalings.items():
            each[f"hierarchical{suffix}"] = hierarchical_losses(Y, predicted, parents, scaling)
            each[f"simplified_hierarchical{suffix}"] = simplified_hierarchical_losses(
                Y, predicted, parents, scaling
            )
    for name, covering in (coverings or {}).items():
        each[f"{COVERING}{name}"] = covering_errors(Y, predicted, covering, labels)
    return each
