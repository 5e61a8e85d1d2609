"""The measures by which two models can be compared on the same documents, as sums over the documents.

Every measure of label sets and rankings is one. Calibration errors are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np
from scipy.sparse import csr_array, hstack

from models.arrays import Floats, Labels, Matrix
from models.covering import Covering
from models.labels import LabelTree
from models.measures.covering import COVERING_MEASURES
from models.measures.directions import DIRECTIONS
from models.measures.examples import example_measures
from models.measures.paired import Statistic, mean, ratio
from models.measures.probabilities import PROBABILITY_MEASURES
from models.measures.sets import wrong_labels
from models.measures.unknown import without_unknown


def _precision(tp: Floats, fp: Floats, _fn: Floats) -> Floats:
    return ratio(tp, tp + fp)


def _recall(tp: Floats, _fp: Floats, fn: Floats) -> Floats:
    return ratio(tp, tp + fn)


def _f1(tp: Floats, fp: Floats, fn: Floats, *, empty: float = 0.0) -> Floats:
    return ratio(2 * tp, 2 * tp + fp + fn, empty)


_OF_COUNTS: Mapping[str, Callable[[Floats, Floats, Floats], Floats]] = MappingProxyType(
    {
        "f1_micro": _f1,
        "f1_macro": _f1,
        "f1_macro_one": partial(_f1, empty=1.0),
        "f1_macro_zero": _f1,
        "precision_micro": _precision,
        "precision_macro": _precision,
        "recall_micro": _recall,
        "recall_macro": _recall,
    }
)
"""Measures of true and false positives and false negatives; see ``models.measures.contingency``."""

_OF_ALL_LABELS = frozenset({"f1_macro_one", "f1_macro_zero"})
"""Macro averages that count labels which neither occur nor are predicted."""

PAIRED_MEASURES = tuple(name for name in DIRECTIONS if name not in PROBABILITY_MEASURES)
"""Names of the measures by which two models can be compared on the same documents."""


@dataclass(frozen=True)
class Outcomes:
    """What a model predicts for n documents.

    Attributes:
        predicted: (n, k) predicted label sets.
        scores: (n, k) scores; −∞ for a label that the model does not know.
    """

    predicted: Labels
    scores: Floats


def paired_sums(
    measure: str,
    Y: Labels,
    outcomes: Outcomes,
    labels: list[str],
    *,
    tree: LabelTree | None = None,
    covering: Covering | None = None,
    unknown: Labels | None = None,
) -> tuple[Matrix, Statistic]:
    """Return what each document adds to the sums of a measure, and the measure as a function of the sums.

    Args:
        measure: one of ``PAIRED_MEASURES``.
        Y: (n, k) true label sets.
        outcomes: what the model predicts.
        labels: the k label names.
        tree: the label tree, for the tree losses.
        covering: the covering, for the covering measures.
        unknown: (n, k) unknown labels; None if there are none. They are left out.

    Raises:
        KeyError: the measure needs a tree or a covering, or cannot be computed with unknown labels.
        ParameterError: the covering does not fit the labels.

    >>> Y, labels = csr_array([[1, 0], [1, 1]]), ["a", "b"]
    >>> sums, f1 = paired_sums("f1_micro", Y, Outcomes(csr_array([[1, 0], [1, 0]]), np.eye(2)), labels)
    >>> sums.toarray().tolist(), f1(sums.sum(axis=0)[np.newaxis]).tolist()
    ([[1.0, 0.0, 0.0], [1.0, 0.0, 1.0]], [0.8])
    """
    if measure in _OF_COUNTS:
        return _counts(measure, Y, outcomes, unknown)
    coverings = {"own": covering} if covering is not None else None
    name = f"{measure}.own" if measure in COVERING_MEASURES else measure
    values = example_measures(
        Y, outcomes.predicted, outcomes.scores, labels, tree=tree, coverings=coverings, unknown=unknown
    )[name]
    counted = ~np.isnan(values)
    return csr_array(np.column_stack([np.where(counted, values, 0.0), counted])), mean


def count_right(Y: Labels, outcomes: Outcomes, unknown: Labels | None = None) -> int:
    """Return for how many documents a model predicts exactly the true labels, see :func:`paired_sums`.

    >>> Y = csr_array([[1, 0], [1, 1]])
    >>> count_right(Y, Outcomes(csr_array([[1, 0], [1, 0]]), np.eye(2)))
    1
    """
    predicted = outcomes.predicted
    if unknown is not None:
        predicted, _ = without_unknown(predicted, outcomes.scores, unknown)
    return int((wrong_labels(Y, predicted) == 0).sum())


def _counts(measure: str, Y: Labels, outcomes: Outcomes, unknown: Labels | None) -> tuple[Matrix, Statistic]:
    predicted = outcomes.predicted
    if unknown is not None:
        predicted, _ = without_unknown(predicted, outcomes.scores, unknown)
    of_counts = _OF_COUNTS[measure]
    both = Y.multiply(predicted)
    if measure.endswith("_micro"):
        tp, true, positive = (part.sum(axis=1, dtype=np.float64) for part in (both, Y, predicted))
        sums = csr_array(np.column_stack([tp, positive - tp, true - tp]))
        return sums, lambda totals: of_counts(*totals.T)
    measured = np.arange(Y.shape[1])
    if unknown is not None:  # a label that is unknown for all documents has no value
        measured = np.flatnonzero(np.bincount(unknown.indices, minlength=Y.shape[1]) < Y.shape[0])
    tp, true, positive = (csr_array(part)[:, measured].astype(np.float64) for part in (both, Y, predicted))

    def macro(totals: Floats) -> Floats:
        counts = totals.reshape(len(totals), 3, -1).transpose(1, 0, 2)
        values = of_counts(*counts)
        if measure in _OF_ALL_LABELS:
            return np.asarray(values.mean(axis=1))
        counted = counts.sum(axis=0) > 0
        return ratio((values * counted).sum(axis=1), counted.sum(axis=1))

    return csr_array(hstack([tp, positive - tp, true - tp], format="csr")), macro
