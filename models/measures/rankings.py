"""Measures of rankings, averaged over the examples that have a relevant label.

The position of a label c is r(c) in 1 … k. Labels with equal scores are in label order. Examples without a
relevant label are omitted (``evaluate`` counts them), because any ranking is correct for them. If there are
no other examples, a measure is NaN. The equations refer to the MLPP paper, section II-C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from models.arrays import Bools, Floats, Ints, Labels
from models.labels.ranking import ranking


def one_error(Y: Labels, scores: Floats) -> float:
    """Fraction of examples whose top-ranked label is not relevant.

    Args:
        Y: (n, k) true label sets.
        scores: (n, k) scores.

    >>> from scipy.sparse import csr_array
    >>> one_error(csr_array([[1, 0], [0, 1]]), np.array([[2.0, 1.0], [2.0, 1.0]]))
    0.5
    """
    return _mean(_one_errors(relevance_by_rank(Y, scores)))


def coverage(Y: Labels, scores: Floats) -> float:
    """Mean of max r(c) − 1, the position of the last relevant label minus 1.

    This is scikit-learn's ``coverage_error`` minus 1.
    """
    return _mean(_coverages(relevance_by_rank(Y, scores)))


def average_precision(Y: Labels, scores: Floats) -> float:
    """Mean over the relevant labels of the fraction of relevant labels up to their position (1 − eq. 8)."""
    return _mean(_average_precisions(relevance_by_rank(Y, scores)))


def is_error(Y: Labels, scores: Floats) -> float:
    """Fraction of examples with an irrelevant label that ranks above a relevant one."""
    return _mean(_is_errors(relevance_by_rank(Y, scores)))


def error_set_size(Y: Labels, scores: Floats) -> float:
    """Mean number of pairs of a relevant and an irrelevant label in the wrong order (eq. 5)."""
    return _mean(_misordered_pairs(relevance_by_rank(Y, scores)))


def margin(Y: Labels, scores: Floats) -> float:
    """Mean of max(0, worst relevant position − best irrelevant position) (eq. 7).

    It is 0 for an example for which all labels are relevant.
    """
    return _mean(_margins(relevance_by_rank(Y, scores)))


def ranking_measures(Y: Labels, scores: Floats) -> dict[str, float]:
    """Return all measures of this module by name."""
    relevant = relevance_by_rank(Y, scores)
    return {name: _mean(of_examples(relevant)) for name, of_examples in _BY_NAME.items()}


def example_ranking_measures(Y: Labels, scores: Floats) -> dict[str, Floats]:
    """Return the values of each example by measure, (n,) each; NaN for examples without a relevant label."""
    labelled = np.diff(Y.indptr) > 0
    relevant = relevance_by_rank(Y, scores)
    values = {}
    for name, of_examples in _BY_NAME.items():
        values[name] = np.full(Y.shape[0], np.nan)
        values[name][labelled] = of_examples(relevant)
    return values


def relevance_by_rank(Y: Labels, scores: Floats) -> Bools:
    """Return whether the label at each position of the ranking is relevant.

    Returns:
        (labelled examples, k), best position first.
    """
    labelled = np.diff(Y.indptr) > 0
    relevant = Y[labelled].toarray().astype(bool)
    return np.asarray(np.take_along_axis(relevant, ranking(scores[labelled]), axis=1))


def _one_errors(relevant: Bools) -> Bools:
    return np.asarray(~relevant[:, 0])


def _coverages(relevant: Bools) -> Ints:
    return _worst_relevant(relevant) - 1


def _average_precisions(relevant: Bools) -> Floats:
    precision = np.cumsum(relevant, axis=1) / np.arange(1, relevant.shape[1] + 1)
    return np.asarray((precision * relevant).sum(axis=1) / relevant.sum(axis=1))


def _is_errors(relevant: Bools) -> Bools:
    return np.asarray(_misordered_pairs(relevant) > 0)


def _misordered_pairs(relevant: Bools) -> Ints:
    irrelevant_before = np.cumsum(~relevant, axis=1, dtype=np.int64)
    return np.asarray((irrelevant_before * relevant).sum(axis=1))


def _margins(relevant: Bools) -> Ints:
    beyond = relevant.shape[1] + 1
    best_irrelevant = np.where(relevant.all(axis=1), beyond, relevant.argmin(axis=1) + 1)
    return np.asarray(np.maximum(0, _worst_relevant(relevant) - best_irrelevant))


def _worst_relevant(relevant: Bools) -> Ints:
    return np.asarray(relevant.shape[1] - relevant[:, ::-1].argmax(axis=1), dtype=np.int64)


def _mean(values: Floats | Ints | Bools) -> float:
    return float(values.mean()) if len(values) else float("nan")


_BY_NAME: Mapping[str, Callable[[Bools], Floats | Ints | Bools]] = {
    "one_error": _one_errors,
    "coverage": _coverages,
    "average_precision": _average_precisions,
    "is_error": _is_errors,
    "error_set_size": _misordered_pairs,
    "margin": _margins,
}

RANKING_MEASURES = tuple(_BY_NAME)
"""The names of all ranking measures."""
