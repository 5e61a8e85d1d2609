"""The interface of scikit-learn to the weights of examples."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
from scipy import sparse
from typing_extensions import override

from models.arrays import Floats, Ints
from models.base.learner import Learner
from models.base.training import Context, Monitor
from models.base.weights import as_weights
from models.serialization.state import State


class WeightedLearner(Learner):
    """Base class of the learners for which an example of weight 2 counts as two equal examples."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        context: Context | None = None,
    ) -> Self:
        """Learn from examples, see :meth:`Learner.fit`.

        Args:
            X: (g, r) features.
            y: (g, k) relevant labels as 0/1, or (g,) classes.
            sample_weight: (g,) how much each example counts: 2 as much as two equal examples, and 0 as if it
                was not there. None if all count once.
            groups: as for :meth:`Learner.fit`.
            context: as for :meth:`Learner.fit`.

        Raises:
            ParameterError: a parameter is invalid.
            UnsuitableDataError: this algorithm cannot learn from this data.
            ValueError: X, y or the weights are invalid.
        """
        return self._fit(X, y, sample_weight, groups, context)

    @override
    def _fit(
        self,
        X: Any,
        y: Any,
        weights: Any,
        groups: Any,
        context: Context | None,
        monitor: Monitor | None = None,
        resume: State | None = None,
    ) -> Self:
        rows, weights = counting_examples(X, weights)
        if rows is not None:
            X, y = with_rows(X)[rows], with_rows(y)[rows]
            groups = None if groups is None else np.asarray(groups)[rows]
            context = None if context is None else context.where(rows)
        return super()._fit(X, y, weights, groups, context, monitor, resume)


def counting_examples(X: Any, sample_weight: Any) -> tuple[Ints | None, Floats | None]:
    """Return the examples whose weight is not 0, and their weights.

    Returns:
        their rows, None for all; and their weights, None if all are 1.

    Raises:
        ValueError: a weight is negative or not finite, the number of weights differs from the number of
            examples, or no weight is positive.
    """
    if sample_weight is None:
        return None, None
    X = with_rows(X)
    weights = as_weights(sample_weight, X.shape[0] if X.ndim else 0)
    rows = None
    if weights is not None and not weights.all():
        rows = np.flatnonzero(weights)
        if not len(rows):
            raise ValueError("the weights of all examples are zero; there is nothing to learn")
        weights = weights[rows]
    return rows, None if weights is None or (weights == 1.0).all() else weights


def with_rows(X: Any) -> Any:
    """Return a matrix of which rows can be selected."""
    return cast("Any", X).tocsr() if sparse.issparse(X) else np.asarray(X)
