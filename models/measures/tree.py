"""Losses of predicted label sets in a label tree (the H-M3 paper, "How to measure loss?")."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arrays import AnyArray, Bools, Floats
from models.hierarchy.forest import Forest, Scaling

TREE_LOSSES = (
    "zero_one",
    "symmetric_difference",
    "hierarchical",
    "hierarchical_sibling",
    "hierarchical_subtree",
    "simplified_hierarchical",
    "simplified_hierarchical_sibling",
    "simplified_hierarchical_subtree",
)
"""The measures that only data with a label tree has, by the names that ``evaluate`` gives them."""


def zero_one_loss(true: Any, predicted: Any) -> float:
    """Share of examples whose label set is not exactly right, ℓ_0/1.

    Args:
        true: (n, k) relevant labels as 0/1, sparse or dense.
        predicted: (n, k) predicted labels likewise.

    Returns:
        mean over the examples, in [0, 1]; NaN where there are none.

    >>> zero_one_loss([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    0.5
    """
    return _mean(_mistakes(true, predicted).any(axis=1))


def symmetric_difference_loss(true: Any, predicted: Any) -> float:
    """Number of wrong labels an example, ℓ_Δ; arguments as for ``zero_one_loss``.

    >>> symmetric_difference_loss([[1, 0], [1, 1]], [[1, 0], [0, 0]])
    1.0
    """
    return _mean(_mistakes(true, predicted).sum(axis=1))


def hierarchical_loss(true: Any, predicted: Any, parents: Any, scaling: Scaling = "uniform") -> float:
    """Cost of the first mistake along each path, ℓ_H = Σ_j c_j [j is wrong, all its ancestors are right].

    Args:
        true: (n, k) relevant labels as 0/1, sparse or dense.
        predicted: (n, k) predicted labels likewise.
        parents: (k,) for each label the index of its parent, -1 for a root.
        scaling: the coefficients c_j, see ``Forest.coefficients``.

    Returns:
        mean over the examples, at least 0; NaN where there are none.

    Raises:
        ParameterError: the parents are no forest.

    >>> chain = [-1, 0, 1]
    >>> hierarchical_loss([[1, 1, 1]], [[1, 0, 0]], chain)
    1.0
    >>> round(hierarchical_loss([[1, 1, 1]], [[1, 0, 0]], chain, "subtree"), 4)
    0.6667
    """
    return _mean(hierarchical_losses(true, predicted, parents, scaling))


def hierarchical_losses(true: Any, predicted: Any, parents: Any, scaling: Scaling = "uniform") -> Floats:
    """The loss ℓ_H of each example, (n,); arguments as for ``hierarchical_loss``."""
    forest = Forest(parents)
    wrong = _mistakes(true, predicted)[:, forest.order]
    wrong_above = np.zeros_like(wrong)
    for level in forest.levels[1:]:
        above = forest.parent_positions[level]
        wrong_above[:, level] = wrong[:, above] | wrong_above[:, above]
    return np.asarray((wrong & ~wrong_above) @ forest.coefficients(scaling)[forest.order])


def simplified_hierarchical_loss(
    true: Any, predicted: Any, parents: Any, scaling: Scaling = "uniform"
) -> float:
    """Cost of the mistakes under a right parent, ℓ_H̃ = Σ_j c_j [j is wrong, its parent is right].

    Arguments as for ``hierarchical_loss``, which it bounds from above; a root's parent is always right.

    >>> simplified_hierarchical_loss([[1, 1, 1]], [[0, 1, 0]], [-1, 0, 1])
    2.0
    """
    return _mean(simplified_hierarchical_losses(true, predicted, parents, scaling))


def simplified_hierarchical_losses(
    true: Any, predicted: Any, parents: Any, scaling: Scaling = "uniform"
) -> Floats:
    """The loss ℓ_H̃ of each example, (n,); arguments as for ``hierarchical_loss``."""
    forest = Forest(parents)
    wrong = _mistakes(true, predicted)
    parent_wrong = wrong[:, forest.parents] & (forest.parents >= 0)
    return np.asarray((wrong & ~parent_wrong) @ forest.coefficients(scaling))


def _mistakes(true: Any, predicted: Any) -> Bools:
    first, second = _dense(true), _dense(predicted)
    if first.shape != second.shape:
        raise ValueError(f"true labels are {first.shape} and predicted ones {second.shape}; they must agree")
    return np.not_equal(first, second)


def _dense(labels: Any) -> Bools:
    # scipy's sparse classes share no typed base that can be turned dense.
    values: AnyArray = labels.toarray() if hasattr(labels, "toarray") else np.asarray(labels)
    return values.astype(np.bool_)


def _mean(losses: Any) -> float:
    return float(np.mean(losses)) if len(losses) else float("nan")
