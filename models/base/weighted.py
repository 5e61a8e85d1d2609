"""The interface of scikit-learn to the weights of examples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from scipy import sparse

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
        context: Context | None = None,
        monitor: Monitor | None = None,
        resume: State | None = None,
    ) -> Self:
        """Learn from examples, see :meth:`Learner.fit`.

        Args:
            X: (g, r) features.
            y: (g, k) relevant labels as 0/1, or (g,) classes.
            sample_weight: (g,) how much each example counts: 2 as much as two equal examples, and 0 as if it
                was not there. None if all count once, or if ``context.weights`` states it.
            context: as for :meth:`Learner.fit`.
            monitor: as for :meth:`Learner.fit`.
            resume: as for :meth:`Learner.fit`.

        Raises:
            ParameterError: a parameter is invalid.
            UnsuitableDataError: this algorithm cannot learn from this data.
            ValueError: X, y or the weights are invalid.
        """
        X, y, context = weighted_examples(X, y, sample_weight, context)
        return super().fit(X, y, context=context, monitor=monitor, resume=resume)


def weighted_examples(
    X: Any, Y: Any, sample_weight: Any, context: Context | None
) -> tuple[Any, Any, Context | None]:
    """Return examples without those of weight 0, and a context with the weights of the others.

    Raises:
        ValueError: a weight is negative or not finite, the number of weights differs from the number of
            examples, no weight is positive, or ``context`` also has weights.
    """
    if sample_weight is None:
        return X, Y, context
    context = context or Context()
    if context.weights is not None:
        raise ValueError("pass the weights either as sample_weight or in the context")
    X = _with_rows(X)
    weights = as_weights(sample_weight, X.shape[0] if X.ndim else 0)
    if weights is None or weights.all():
        return X, Y, replace(context, weights=weights)
    rows = np.flatnonzero(weights)
    if not len(rows):
        raise ValueError("the weights of all examples are zero; there is nothing to learn")
    Y = _with_rows(Y)
    return X[rows], Y[rows], replace(context, weights=weights).where(rows)


def _with_rows(X: Any) -> Any:
    """Return a matrix of which rows can be selected."""
    return cast("Any", X).tocsr() if sparse.issparse(X) else np.asarray(X)
