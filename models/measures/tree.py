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
"""The names of the measures that ``evaluate`` computes only for data with a label tree."""


def zero_one_loss(true: Any, predicted: Any) -> float:
    """Fraction of examples whose predicted label set differs from the true one, ℓ_0/1.

    Args:
        true: (n, k) relevant labels as 0/1, sparse or dense.
        predicted: (n, k) predicted labels in the same form.

    Returns:
        the mean over the examples, in [0, 1]; NaN if there are none.

    >>> zero_one_loss([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    0.5
    """
    return _mean(_mistakes(true, predicted).any(axis=1))


def symmetric_difference_loss(true: Any, predicted: Any) -> float:
    """Mean number of wrong labels per example, ℓ_Δ. The arguments are those of ``zero_one_loss``.

    >>> symmetric_difference_loss([[1, 0], [1, 1]], [[1, 0], [0, 0]])
    1.0
    """
    return _mean(_mistakes(true, predicted).sum(axis=1))


def hierarchical_loss(true: Any, predicted: Any, parents: Any, scaling: Scaling = "uniform") -> float:
    """Mean cost of the first mistake on each path, ℓ_H = Σ_j c_j [j is wrong, all its ancestors are right].

    Args:
        true: (n, k) relevant labels as 0/1, sparse or dense.
        predicted: (n, k) predicted labels in the same form.
        parents: (k,) the index of each label's parent, -1 for a root.
        scaling: the coefficients c_j, see ``Forest.coefficients``.

    Returns:
        the mean over the examples, at least 0; NaN if there are none.

    Raises:
        ParameterError: the parents do not form a forest.

    >>> chain = [-1, 0, 1]
    >>> hierarchical_loss([[1, 1, 1]], [[1, 0, 0]], chain)
    1.0
    >>> round(hierarchical_loss([[1, 1, 1]], [[1, 0, 0]], chain, "subtree"), 4)
    0.6667
    """
    return _mean(hierarchical_losses(true, predicted, parents, scaling))


def hierarchical_losses(true: Any, predicted: Any, parents: Any, scaling: Scaling = "uniform") -> Floats:
    """Return the loss ℓ_H of each example, (n,). The arguments are those of ``hierarchical_loss``."""
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
    """Mean cost of the mistakes below a correct parent, ℓ_H̃ = Σ_j c_j [j is wrong, its parent is right].

    It is an upper bound of ``hierarchical_loss`` and has the same arguments. The parent of a root counts as
    right.

    >>> simplified_hierarchical_loss([[1, 1, 1]], [[0, 1, 0]], [-1, 0, 1])
    2.0
    """
    return _mean(simplified_hierarchical_losses(true, predicted, parents, scaling))


def simplified_hierarchical_losses(
    true: Any, predicted: Any, parents: Any, scaling: Scaling = "uniform"
) -> Floats:
    """Return the loss ℓ_H̃ of each example, (n,). The arguments are those of ``hierarchical_loss``."""
    forest = Forest(parents)
    wrong = _mistakes(true, predicted)
    parent_wrong = wrong[:, forest.parents] & (forest.parents >= 0)
    return np.asarray((wrong & ~parent_wrong) @ forest.coefficients(scaling))


def _mistakes(true: Any, predicted: Any) -> Bools:
    first, second = _dense(true), _dense(predicted)
    if first.shape != second.shape:
        raise ValueError(f"true labels have the shape {first.shape}, but predicted labels {second.shape}")
    return np.not_equal(first, second)


def _dense(labels: Any) -> Bools:
    # SciPy's sparse classes have no common typed base class with toarray.
    values: AnyArray = labels.toarray() if hasattr(labels, "toarray") else np.asarray(labels)
    return values.astype(np.bool_)


def _mean(losses: Any) -> float:
    return float(np.mean(losses)) if len(losses) else float("nan")
