"""Measures of predicted label sets, rankings and probabilities.

Label sets are lists of names, or (n, k) matrices of 0 and 1, sparse or dense. Scores are (n, k) matrices. A
measure is NaN if it is undefined: there are no examples, or no example has a label and the measure is about
rankings. ``covey.evaluate`` computes all measures at once.

>>> f1_micro([("billing",), ("billing", "shipping")], [("billing",), ("shipping",)])
0.8
>>> subset_zero_one([[1, 0], [1, 1]], [[1, 0], [0, 1]])
0.5
>>> one_error([[1, 0], [0, 1]], [[2.0, 1.0], [2.0, 1.0]])
0.5
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from scipy import sparse

from models.arrays import Floats, Labels
from models.base.validation import as_label_matrix
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.measures import contingency, rankings, sets, tree
from models.measures.calibration import brier_score, expected_calibration_error, log_loss, reliability
from models.measures.covering import covering_error, covering_loss
from models.measures.paired import compare
from models.measures.significance import holm, paired_wald, wilcoxon_signed_rank

__all__ = [
    "accuracy",
    "average_precision",
    "brier_score",
    "compare",
    "coverage",
    "covering_error",
    "covering_loss",
    "error_set_size",
    "expected_calibration_error",
    "f1_macro",
    "f1_macro_one",
    "f1_macro_zero",
    "f1_micro",
    "hamming_loss",
    "hierarchical_loss",
    "holm",
    "is_error",
    "log_loss",
    "margin",
    "one_error",
    "paired_wald",
    "precision_macro",
    "precision_micro",
    "recall_macro",
    "recall_micro",
    "reliability",
    "simplified_hierarchical_loss",
    "subset_zero_one",
    "symmetric_difference_loss",
    "wilcoxon_signed_rank",
]


def _of_sets(measure: Callable[[Labels, Labels], float]) -> Callable[[Any, Any], float]:
    """Return a measure of label sets that accepts names and dense matrices."""

    @wraps(measure)
    def measured(Y: Any, predicted: Any) -> float:
        true, found = _matrices(Y, predicted)
        if true.shape != found.shape:
            raise ValueError(f"Y has the shape {true.shape}, but the predictions have {found.shape}")
        return measure(true, found)

    return measured


def _of_scores(measure: Callable[[Labels, Floats], float]) -> Callable[[Any, Any], float]:
    """Return a measure of rankings that accepts dense matrices."""

    @wraps(measure)
    def measured(Y: Any, scores: Any) -> float:
        true, values = as_label_matrix(Y), np.asarray(scores, dtype=np.float64)
        if true.shape != values.shape:
            raise ValueError(f"Y has the shape {true.shape}, but the scores have {values.shape}")
        return measure(true, values)

    return measured


def _matrices(Y: Any, predicted: Any) -> tuple[Labels, Labels]:
    if sparse.issparse(Y) or isinstance(Y, np.ndarray) or not _has_names(Y, predicted):
        return as_label_matrix(Y), as_label_matrix(predicted)
    true, found = ([tuple(names) for names in label_sets] for label_sets in (Y, predicted))
    labels = collect_labels([*true, *found])
    return indicator_matrix(true, labels), indicator_matrix(found, labels)


def _has_names(*label_sets: Any) -> bool:
    names = [name for sets_ in label_sets for names in sets_ for name in names]
    return not names or isinstance(names[0], str)


accuracy = _of_sets(sets.accuracy)
subset_zero_one = _of_sets(sets.subset_zero_one)
hamming_loss = _of_sets(sets.hamming_loss)
precision_micro = _of_sets(contingency.precision_micro)
precision_macro = _of_sets(contingency.precision_macro)
recall_micro = _of_sets(contingency.recall_micro)
recall_macro = _of_sets(contingency.recall_macro)
f1_micro = _of_sets(contingency.f1_micro)
f1_macro = _of_sets(contingency.f1_macro)
f1_macro_one = _of_sets(contingency.f1_macro_one)
f1_macro_zero = _of_sets(contingency.f1_macro_zero)

one_error = _of_scores(rankings.one_error)
coverage = _of_scores(rankings.coverage)
average_precision = _of_scores(rankings.average_precision)
is_error = _of_scores(rankings.is_error)
error_set_size = _of_scores(rankings.error_set_size)
margin = _of_scores(rankings.margin)

symmetric_difference_loss = tree.symmetric_difference_loss
hierarchical_loss = tree.hierarchical_loss
simplified_hierarchical_loss = tree.simplified_hierarchical_loss
