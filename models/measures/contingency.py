"""Precision, recall and F1, computed from one contingency table per label.

Micro averages are computed from the sum of all tables. Macro averages are means over the labels. A label that
no example has and that is never predicted has no precision, recall and F1: they are 0 by convention, and
macro averages leave the label out. Only ``f1_macro_one`` and ``f1_macro_zero`` count it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints, Labels


@dataclass(frozen=True)
class Contingency:
    """The contingency tables of k labels over n examples.

    Attributes:
        tp: (k,) number of true positives: the example has the label, and the label is predicted.
        fp: (k,) number of false positives: the label is predicted, but the example does not have it.
        fn: (k,) number of false negatives: the example has the label, but the label is not predicted.
        tn: (k,) number of true negatives.
    """

    tp: Ints
    fp: Ints
    fn: Ints
    tn: Ints


def contingency(Y: Labels, predicted: Labels, unknown: Labels | None = None) -> Contingency:
    """Compute the tables of all labels, over the examples for which the label is known.

    Args:
        Y: (n, k) true label sets.
        predicted: (n, k) predicted label sets.
        unknown: (n, k) unknown labels, disjoint from the predicted ones; None if there are none.
    """
    both = np.asarray(Y.multiply(predicted).sum(axis=0, dtype=np.int64))
    true = np.asarray(Y.sum(axis=0, dtype=np.int64))
    positive = np.asarray(predicted.sum(axis=0, dtype=np.int64))
    n = Y.shape[0] if unknown is None else Y.shape[0] - np.bincount(unknown.indices, minlength=Y.shape[1])
    return Contingency(tp=both, fp=positive - both, fn=true - both, tn=n - true - positive + both)


def of_measured_labels(table: Contingency) -> Contingency:
    """Return the tables of the labels that are known for at least one example."""
    measured = table.tp + table.fp + table.fn + table.tn > 0
    return Contingency(*(part[measured] for part in (table.tp, table.fp, table.fn, table.tn)))


def of_positive_labels(table: Contingency) -> Contingency:
    """Return the tables of the labels that an example has or that are predicted."""
    positive = table.tp + table.fp + table.fn > 0
    return Contingency(*(part[positive] for part in (table.tp, table.fp, table.fn, table.tn)))


def label_precision(table: Contingency) -> Floats:
    """Return (k,) TP / (TP + FP); 0 for a label that is never predicted."""
    return _ratio(table.tp, table.tp + table.fp)


def label_recall(table: Contingency) -> Floats:
    """Return (k,) TP / (TP + FN); 0 for a label that no example has."""
    return _ratio(table.tp, table.tp + table.fn)


def label_f1(table: Contingency, *, empty: float = 0.0) -> Floats:
    """Return (k,) 2 TP / (2 TP + FP + FN).

    Args:
        table: the tables of the labels.
        empty: the value if TP = FP = FN = 0: 1 in the MP-Boost paper (eq. 13), 0 in scikit-learn.
    """
    return _ratio(2 * table.tp, 2 * table.tp + table.fp + table.fn, empty)


def precision_micro(Y: Labels, predicted: Labels) -> float:
    """Precision over all (example, label) pairs; 0 if no label is predicted."""
    return label_measures(contingency(Y, predicted))["precision_micro"]


def recall_micro(Y: Labels, predicted: Labels) -> float:
    """Recall over all (example, label) pairs; 0 if no example has a label."""
    return label_measures(contingency(Y, predicted))["recall_micro"]


def f1_micro(Y: Labels, predicted: Labels) -> float:
    """F1 over all (example, label) pairs; 0 if there is neither a true nor a predicted label."""
    return label_measures(contingency(Y, predicted))["f1_micro"]


def precision_macro(Y: Labels, predicted: Labels) -> float:
    """Mean precision of the labels, which is 0 for a label that occurs and is never predicted."""
    return label_measures(contingency(Y, predicted))["precision_macro"]


def recall_macro(Y: Labels, predicted: Labels) -> float:
    """Mean recall of the labels, which is 0 for a label that is predicted and that no example has."""
    return label_measures(contingency(Y, predicted))["recall_macro"]


def f1_macro(Y: Labels, predicted: Labels) -> float:
    """Mean F1 of the labels that occur or are predicted.

    >>> from scipy.sparse import csr_array
    >>> Y, predicted = csr_array([[1, 0], [1, 0]]), csr_array([[1, 0], [0, 0]])
    >>> [round(measure(Y, predicted), 3) for measure in (f1_macro, f1_macro_one, f1_macro_zero)]
    [0.667, 0.833, 0.333]
    """
    return label_measures(contingency(Y, predicted))["f1_macro"]


def f1_macro_one(Y: Labels, predicted: Labels) -> float:
    """Mean F1 of all labels, which is 1 if TP = FP = FN = 0, as in the MP-Boost paper (eq. 13)."""
    return label_measures(contingency(Y, predicted))["f1_macro_one"]


def f1_macro_zero(Y: Labels, predicted: Labels) -> float:
    """Mean F1 of all labels, which is 0 if TP = FP = FN = 0, as in scikit-learn."""
    return label_measures(contingency(Y, predicted))["f1_macro_zero"]


def label_measures(table: Contingency) -> dict[str, float]:
    """Return all measures of this module by name; NaN for a mean over no label."""
    total, positive = _sum(table), of_positive_labels(table)
    return {
        "f1_micro": _mean(label_f1(total)),
        "f1_macro": _mean(label_f1(positive)),
        "f1_macro_one": _mean(label_f1(table, empty=1.0)),
        "f1_macro_zero": _mean(label_f1(table)),
        "precision_micro": _mean(label_precision(total)),
        "precision_macro": _mean(label_precision(positive)),
        "recall_micro": _mean(label_recall(total)),
        "recall_macro": _mean(label_recall(positive)),
    }


def _sum(table: Contingency) -> Contingency:
    return Contingency(*(np.array([part.sum()]) for part in (table.tp, table.fp, table.fn, table.tn)))


def _ratio(numerator: Ints, denominator: Ints, otherwise: float = 0.0) -> Floats:
    result = np.full(numerator.shape, otherwise)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")
