"""Computes all measures of a set of predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models.arrays import Floats, Ints, Labels
from models.hierarchy.forest import Scaling
from models.labels import LabelTree
from models.labels.ranking import ranking
from models.measures import contingency as tables
from models.measures.calibration import ReliabilityBin
from models.measures.confusion import confusion, is_single_label
from models.measures.coverage_curve import CoveragePoint
from models.measures.covering import covering_error, covering_loss
from models.measures.probabilities import evaluate_label_probabilities, evaluate_set_probabilities
from models.measures.rankings import ranking_measures
from models.measures.sets import accuracy, hamming_loss, subset_zero_one
from models.measures.tree import (
    hierarchical_loss,
    simplified_hierarchical_loss,
    symmetric_difference_loss,
    zero_one_loss,
)
from models.measures.unknown import without_unknown


@dataclass(frozen=True)
class LabelRow:
    """The contingency table and the measures of one label.

    Attributes:
        label: the label.
        tp: number of true positives.
        fp: number of false positives.
        fn: number of false negatives.
        tn: number of true negatives.
        precision: tp / (tp + fp); 0 if the label is never predicted.
        recall: tp / (tp + fn); 0 if no example has the label.
        f1: 2 tp / (2 tp + fp + fn); 0 if tp = fp = fn = 0. Macro averages leave out such a label.
    """

    label: str
    tp: int
    fp: int
    fn: int
    tn: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of predictions.

    Attributes:
        measures: values by name, including the counts ``n_examples`` and ``n_unlabelled``. Measures that are
            undefined for these examples are absent.
        labels: one row per label, in label order.
        confusion: for single-label data, (k, k) counts with the true labels as rows and the top-ranked labels
            as columns; otherwise None.
        warnings: problems that affect the interpretation of the values.
        reliability: reliability diagram of the probabilities of labels, over all pairs of an example and a
            label; None without probabilities.
        set_reliability: reliability diagram of the probabilities of label sets; None without them.
        coverage_curve: share of the examples whose label set needs no person, and how many of these label
            sets are right, by the probability of the label set; None without them.

    Unknown labels of examples are left out: a label row counts the examples for which the label is known,
    macro averages leave out labels that are unknown for all examples, and an example is judged by its known
    labels.
    """

    measures: dict[str, float]
    labels: list[LabelRow]
    confusion: Ints | None = None
    warnings: list[str] = field(default_factory=list)
    reliability: list[ReliabilityBin] | None = None
    set_reliability: list[ReliabilityBin] | None = None
    coverage_curve: list[CoveragePoint] | None = None


def evaluate(
    Y: Labels,
    predicted: Labels,
    scores: Floats,
    labels: Sequence[str],
    *,
    tree: LabelTree | None = None,
    covering: Any = None,
    unknown: Labels | None = None,
    probabilities: Floats | None = None,
    set_probabilities: Floats | None = None,
) -> Evaluation:
    """Compute all measures of predictions.

    Args:
        Y: (n, k) true label sets.
        predicted: (n, k) predicted label sets.
        scores: (n, k) scores, which define the rankings.
        labels: the k label names.
        tree: the label tree; if given, the tree losses are included.
        covering: a covering or its JSON form; if given, ``covering_error`` and ``covering_loss`` are
            included, unless labels are unknown: a cover element needs all of its labels.
        unknown: (n, k) unknown labels, disjoint from the true ones; None if there are none.
        probabilities: (n, k) the probability of each label; None if there are none.
        set_probabilities: (n,) the probability that each predicted label set is right; None if there are
            none.

    Raises:
        ParameterError: the covering contains an unknown label or does not cover a label.

    >>> from scipy.sparse import csr_array
    >>> Y, scores = csr_array([[1, 0], [1, 1]]), np.array([[1.0, -1.0], [2.0, -1.0]])
    >>> round(evaluate(Y, csr_array((scores > 0).astype(int)), scores, ["a", "b"]).measures["f1_micro"], 3)
    0.8
    """
    warnings: list[str] = []
    if unknown is not None:
        predicted, scores = without_unknown(predicted, scores, unknown)
        warnings.append(f"pairs of an example and an unknown label that are not measured: {unknown.nnz:,}")
        if covering is not None:
            covering = None
            warnings.append(
                "covering_error and covering_loss are not computed, because some labels are unknown"
            )
    table = tables.contingency(Y, predicted, unknown)
    measures = {
        "hamming_loss": hamming_loss(Y, predicted, unknown),
        "subset_zero_one": subset_zero_one(Y, predicted),
        "accuracy": accuracy(Y, predicted),
        **tables.label_measures(table if unknown is None else tables.of_measured_labels(table)),
        **ranking_measures(Y, scores),
    }
    if tree is not None:
        measures |= tree_losses(Y, predicted, tree.parent_indices(labels))
    if covering is not None:
        measures["covering_error"] = covering_error(Y, predicted, covering, labels)
        measures["covering_loss"] = covering_loss(Y, scores, covering, labels)
    of_labels = of_sets = None
    if probabilities is not None:
        of_labels = evaluate_label_probabilities(Y, probabilities, unknown)
        measures |= of_labels.measures
    if set_probabilities is not None:
        of_sets = evaluate_set_probabilities(Y, predicted, set_probabilities, unknown)
        measures |= of_sets.measures
    unlabelled = int((np.diff(Y.indptr) == 0).sum())
    counts = {"n_examples": float(Y.shape[0]), "n_unlabelled": float(unlabelled)}
    return Evaluation(
        measures={name: value for name, value in measures.items() if not math.isnan(value)} | counts,
        labels=label_rows(table, labels),
        confusion=confusion(Y, ranking(scores)[:, 0]) if is_single_label(Y) else None,
        warnings=warnings,
        reliability=None if of_labels is None else of_labels.reliability,
        set_reliability=None if of_sets is None else of_sets.reliability,
        coverage_curve=None if of_sets is None else of_sets.coverage_curve,
    )


def tree_losses(Y: Labels, predicted: Labels, parents: Ints) -> dict[str, float]:
    """Return the tree losses by name. A name ends with the scaling, unless it is ``uniform``."""
    losses = {
        "zero_one": zero_one_loss(Y, predicted),
        "symmetric_difference": symmetric_difference_loss(Y, predicted),
    }
    scalings: dict[str, Scaling] = {"": "uniform", "_sibling": "sibling", "_subtree": "subtree"}
    for suffix, scaling in scalings.items():
        losses[f"hierarchical{suffix}"] = hierarchical_loss(Y, predicted, parents, scaling)
        losses[f"simplified_hierarchical{suffix}"] = simplified_hierarchical_loss(
            Y, predicted, parents, scaling
        )
    return losses


def label_rows(table: tables.Contingency, labels: Sequence[str]) -> list[LabelRow]:
    """Return the contingency table and the measures of each label."""
    precision, recall = tables.label_precision(table), tables.label_recall(table)
    f1 = tables.label_f1(table)
    return [
        LabelRow(
            label=label,
            tp=int(table.tp[j]),
            fp=int(table.fp[j]),
            fn=int(table.fn[j]),
            tn=int(table.tn[j]),
            precision=float(precision[j]),
            recall=float(recall[j]),
            f1=float(f1[j]),
        )
        for j, label in enumerate(labels)
    ]
