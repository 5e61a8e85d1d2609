"""Precision, recall and F1, from one contingency table a label.

Micro averages add the tables of all labels up first; macro averages are means over the labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints, Labels


@dataclass(frozen=True)
class Contingency:
    """How often each of k labels was rightly and wrongly given or left out, over n examples.

    Attributes:
        tp: (k,) examples that have the label and got it.
        fp: (k,) examples that got the label without having it.
        fn: (k,) examples that have the label and did not get it.
        tn: (k,) the others.
    """

    tp: Ints
    fp: Ints
    fn: Ints
    tn: Ints


def contingency(Y: Labels, predicted: Labels) -> Contingency:
    """The tables of all labels.

    Args:
        Y: (n, k) true label sets.
        predicted: (n, k) predicted label sets.
    """
    both = np.asarray(Y.multiply(predicted).sum(axis=0, dtype=np.int64))
    true = np.asarray(Y.sum(axis=0, dtype=np.int64))
    given = np.asarray(predicted.sum(axis=0, dtype=np.int64))
    return Contingency(tp=both, fp=given - both, fn=true - both, tn=Y.shape[0] - true - given + both)


def label_precision(table: Contingency) -> Floats:
    """(k,) TP / (TP + FP); 0 for a label that is never given."""
    return _ratio(table.tp, table.tp + table.fp)


def label_recall(table: Contingency) -> Floats:
    """(k,) TP / (TP + FN); 0 for a label that no example has."""
    return _ratio(table.tp, table.tp + table.fn)


def label_f1(table: Contingency, *, empty: float) -> Floats:
    """(k,) 2 TP / (2 TP + FP + FN).

    Args:
        table: the labels' tables.
        empty: the value where TP = FP = FN = 0: 1 in the MP-Boost paper (eq. 13), 0 in scikit-learn.
    """
    return _ratio(2 * table.tp, 2 * table.tp + table.fp + table.fn, empty)


def precision_micro(Y: Labels, predicted: Labels) -> float:
    """Precision over all (example, label) pairs; 0 where no label is given."""
    return label_measures(contingency(Y, predicted))["precision_micro"]


def recall_micro(Y: Labels, predicted: Labels) -> float:
    """Recall over all (example, label) pairs; 0 where no example has a label."""
    return label_measures(contingency(Y, predicted))["recall_micro"]


def f1_micro(Y: Labels, predicted: Labels) -> float:
    """F1 over all (example, label) pairs; 0 where there is neither a true nor a given label."""
    return label_measures(contingency(Y, predicted))["f1_micro"]


def precision_macro(Y: Labels, predicted: Labels) -> float:
    """Mean precision of the labels, 0 for a label that is never given."""
    return label_measures(contingency(Y, predicted))["precision_macro"]


def recall_macro(Y: Labels, predicted: Labels) -> float:
    """Mean recall of the labels, 0 for a label that no example has."""
    return label_measures(contingency(Y, predicted))["recall_macro"]


def f1_macro(Y: Labels, predicted: Labels) -> float:
    """Mean F1 of the labels, 1 where TP = FP = FN = 0, as in the MP-Boost paper (eq. 13).

    >>> from scipy.sparse import csr_array
    >>> Y, predicted = csr_array([[1, 0], [1, 0]]), csr_array([[1, 0], [0, 0]])
    >>> round(f1_macro(Y, predicted), 3), round(f1_macro_zero(Y, predicted), 3)
    (0.833, 0.333)
    """
    return label_measures(contingency(Y, predicted))["f1_macro"]


def f1_macro_zero(Y: Labels, predicted: Labels) -> float:
    """Mean F1 of the labels, 0 where TP = FP = FN = 0, as in scikit-learn."""
    return label_measures(contingency(Y, predicted))["f1_macro_zero"]


def label_measures(table: Contingency) -> dict[str, float]:
    """All of them by name, from tables that are made once."""
    total = _added_up(table)
    return {
        "f1_micro": _mean(label_f1(total, empty=0.0)),
        "f1_macro": _mean(label_f1(table, empty=1.0)),
        "f1_macro_zero": _mean(label_f1(table, empty=0.0)),
        "precision_micro": _mean(label_precision(total)),
        "precision_macro": _mean(label_precision(table)),
        "recall_micro": _mean(label_recall(total)),
        "recall_macro": _mean(label_recall(table)),
    }


def _added_up(table: Contingency) -> Contingency:
    return Contingency(*(np.array([part.sum()]) for part in (table.tp, table.fp, table.fn, table.tn)))


def _ratio(numerator: Ints, denominator: Ints, otherwise: float = 0.0) -> Floats:
    result = np.full(numerator.shape, otherwise)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")
