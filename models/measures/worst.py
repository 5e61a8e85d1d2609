"""The documents that a model gets most wrong, for a person to read."""

from __future__ import annotations

import numpy as np

from models.arrays import Floats, Ints, Labels
from models.measures.sets import wrong_labels


def worst_examples(Y: Labels, predicted: Labels, scores: Floats, count: int) -> Ints:
    """The examples with the most wrong labels; among equals those whose ranking is furthest off.

    How far a ranking is off is the highest score of an irrelevant label less the lowest of a relevant one.
    It is minus infinity for an example with no labels, or all. Equals stay in their order; examples without
    a wrong label are left out.

    Args:
        Y: (n, k) true label sets.
        predicted: (n, k) predicted label sets.
        scores: (n, k) scores.
        count: at most so many.

    Returns:
        indices of examples, the worst first.

    >>> from scipy.sparse import csr_array
    >>> Y, P = csr_array([[1, 0], [0, 1], [1, 0]]), csr_array([[1, 0], [1, 0], [0, 0]])
    >>> worst_examples(Y, P, np.zeros((3, 2)), 10)
    array([1, 2])
    """
    wrong = wrong_labels(Y, predicted)
    candidates = np.flatnonzero(wrong)
    # Only those that can be among the worst need their scores looked at.
    if len(candidates) > count:
        least = np.partition(wrong[candidates], -count)[-count]
        candidates = candidates[wrong[candidates] >= least]
    off = _misranking(Y[candidates], scores[candidates])
    order = np.lexsort((candidates, -off, -wrong[candidates]))
    return np.asarray(candidates[order][:count], dtype=np.int64)


def _misranking(Y: Labels, scores: Floats) -> Floats:
    relevant = Y.toarray().astype(np.bool_)
    highest_irrelevant = np.where(relevant, -np.inf, scores).max(axis=1, initial=-np.inf)
    lowest_relevant = np.where(relevant, scores, np.inf).min(axis=1, initial=np.inf)
    return np.asarray(highest_irrelevant - lowest_relevant)
