"""Rankings and label sets of documents as arrays, without the names of the labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best labels and the predicted label sets of n documents.

    Labels are numbers: indices into ``Pipeline.labels_``, in label order.

    Attributes:
        scores: (n, t) scores of the best labels of each document, descending.
        order: (n, t) these labels. Labels with equal scores are in label order.
        label_sets: for each document its predicted labels, ascending.
        empty: (n,) whether the features know nothing of a document, so that no label is predicted.
        probabilities: (n, t) calibrated probabilities of the best labels; None if the pipeline is not
            calibrated.
        set_probabilities: (n,) the probability that the whole label set of each document is right; None if
            the pipeline is not calibrated.
        unknown_terms: if there is one document, the share of the occurrences of terms in it whose terms are
            no features; None if it has no terms or is long, if the features are no terms, and for several
            documents.
    """

    scores: Floats
    order: Ints
    label_sets: list[list[int]]
    empty: Bools
    probabilities: Floats | None = None
    set_probabilities: Floats | None = None
    unknown_terms: float | None = None

    @classmethod
    def concatenate(cls, parts: Sequence[Ranking], n_ranked: int) -> Ranking:
        """Join the rankings of several blocks of documents; t is ``n_ranked`` if there are no blocks."""
        if len(parts) == 1:
            return parts[0]
        probabilities = [part.probabilities for part in parts if part.probabilities is not None]
        of_sets = [part.set_probabilities for part in parts if part.set_probabilities is not None]
        return cls(
            scores=np.concatenate([np.empty((0, n_ranked)), *(part.scores for part in parts)]),
            order=np.concatenate([np.empty((0, n_ranked), dtype=np.int64), *(part.order for part in parts)]),
            label_sets=[labels for part in parts for labels in part.label_sets],
            empty=np.concatenate([np.empty(0, dtype=np.bool_), *(part.empty for part in parts)]),
            probabilities=np.concatenate(probabilities) if probabilities else None,
            set_probabilities=np.concatenate(of_sets) if of_sets else None,
        )

    def rows(self, rows: slice) -> Ranking:
        """Return the rankings of some of the documents."""
        return Ranking(
            self.scores[rows],
            self.order[rows],
            self.label_sets[rows],
            self.empty[rows],
            None if self.probabilities is None else self.probabilities[rows],
            None if self.set_probabilities is None else self.set_probabilities[rows],
        )


def rows_of(predicted: Bools) -> list[list[int]]:
    """Return the columns that are true in each row.

    >>> rows_of(np.array([[False, True, True], [False, False, False]]))
    [[1, 2], []]
    """
    if len(predicted) == 1:  # a message, for which this is much faster
        return [predicted[0].nonzero()[0].tolist()]
    columns = predicted.nonzero()[1].tolist()
    bounds = np.cumsum(np.count_nonzero(predicted, axis=1)).tolist()
    return [columns[start:end] for start, end in pairwise([0, *bounds])]


class LabelBudget:
    """The labels that a prediction may still return.

    Args:
        max_labels: the limit; None for no limit.
        weight: what a predicted label counts, with the terms of its explanation.
        hint: what the caller can do besides sending fewer instances.
    """

    def __init__(self, max_labels: int | None, weight: int = 1, hint: str | None = None) -> None:
        self._max_labels = max_labels
        self._left: float = math.inf if max_labels is None else max_labels
        self._weight = weight
        self._hint = hint

    def spend_on_rankings(self, n: int, length: int) -> None:
        """Count the labels of n rankings.

        Raises:
            ParameterError: the limit is exceeded.
        """
        self._left -= n * length
        if self._left < 0:
            raise ParameterError(
                f"the rankings of {n:,} instances with {length:,} labels each would have more than "
                f"{self._max_labels:,} labels; set top to a smaller number, or send fewer instances",
                "/top",
            )

    def spend_on_label_sets(self, n_labels: int) -> None:
        """Count predicted labels.

        Raises:
            ParameterError: the limit is exceeded.
        """
        self._left -= n_labels * self._weight
        if self._left < 0:
            raise ParameterError(
                f"the predictions would have more than {self._max_labels:,} labels and terms; "
                f"send fewer instances{', ' + self._hint if self._hint else ''}",
                "/instances",
            )
