"""Finds the examples with the worst predictions, for a person to inspect."""

from __future__ import annotations

import numpy as np

from models.arrays import Floats, Ints, Labels
from models.measures.sets import wrong_labels


def worst_examples(Y: Labels, predicted: Labels, scores: Floats, count: int) -> Ints:
    """Return the examples with the most wrong labels, and among these those with the worst rankings.

    Rankings are compared by ``misranking``. Ties are in the order of the examples. Examples without a wrong
    label are omitted.

    Args:
        Y: (n, k) true label sets.
        predicted: (n, k) predicted label sets.
        scores: (n, k) scores.
        count: maximum number of examples.

    Returns:
        indices of the examples, worst first.

    >>> from scipy.sparse import csr_array
    >>> Y, P = csr_array([[1, 0], [0, 1], [1, 0]]), csr_array([[1, 0], [1, 0], [0, 0]])
    >>> worst_examples(Y, P, np.zeros((3, 2)), 10)
    array([1, 2])
    """
    wrong = wrong_labels(Y, predicted)
    candidates = np.flatnonzero(wrong)
    # Only examples that can be among the worst need a look at their scores.
    if len(candidates) > count:
        threshold = np.partition(wrong[candidates], -count)[-count]
        candidates = candidates[wrong[candidates] >= threshold]
    misranked = misranking(Y[candidates], scores[candidates])
    order = np.lexsort((candidates, -misranked, -wrong[candidates]))
    return np.asarray(candidates[order][:count], dtype=np.int64)


def misranking(Y: Labels, scores: Floats) -> Floats:
    """Return how wrong the ranking of each example is, (n,).

    This is the highest score of an irrelevant label minus the lowest score of a relevant label. It is minus
    infinity for an example without labels or with all labels.

    Args:
        Y: (n, k) true label sets.
        scores: (n, k) scores.
    """
    relevant = Y.toarray().astype(np.bool_)
    highest_irrelevant = np.where(relevant, -np.inf, scores).max(axis=1, initial=-np.inf)
    lowest_relevant = np.where(relevant, scores, np.inf).min(axis=1, initial=np.inf)
    return np.asarray(highest_irrelevant - lowest_relevant)
