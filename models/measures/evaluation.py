"""All measures of a set of predictions at once."""

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
from models.measures.confusion import confusion, is_single_label
from models.measures.covering import covering_error, covering_loss
from models.measures.rankings import ranking_measures
from models.measures.sets import accuracy, hamming_loss, subset_zero_one
from models.measures.tree import (
    hierarchical_loss,
    simplified_hierarchical_loss,
    symmetric_difference_loss,
    zero_one_loss,
)


@dataclass(frozen=True)
class LabelRow:
    """How one label fared.

    Attributes:
        label: its name.
        tp: examples that have it and got it.
        fp: examples that got it without having it.
        fn: examples that have it and did not get it.
        tn: the others.
        precision: tp / (tp + fp), 0 where it was never given.
        recall: tp / (tp + fn), 0 where no example has it.
        f1: 2 tp / (2 tp + fp + fn), 1 where tp = fp = fn = 0.
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
    """What predictions are worth.

    Attributes:
        measures: numbers by name, counts (``n_examples``, ``n_unlabelled``) among them. A measure that is
            undefined for these examples is absent.
        labels: one row a label, in label order.
        confusion: (k, k) counts, true label by top-ranked label, for single-label data; else None.
        warnings: what a person should know before trusting the numbers.
    """

    measures: dict[str, float]
    labels: list[LabelRow]
    confusion: Ints | None = None
    warnings: list[str] = field(default_factory=list)


def evaluate(
    Y: Labels,
    predicted: Labels,
    scores: Floats,
    labels: Sequence[str],
    *,
    tree: LabelTree | None = None,
    covering: Any = None,
) -> Evaluation:
    """Measure predictions.

    Args:
        Y: (n, k) true label sets.
        predicted: (n, k) predicted label sets.
        scores: (n, k) scores; the ranking sorts them.
        labels: the k names.
        tree: with it, the four tree losses are measured too.
        covering: with it (or its JSON spelling), ``covering_error`` and ``covering_loss``.

    Raises:
        ParameterError: the covering names an unknown label or leaves a label uncovered.
    """
    table = tables.contingency(Y, predicted)
    measures = {
        "hamming_loss": hamming_loss(Y, predicted),
        "subset_zero_one": subset_zero_one(Y, predicted),
        "accuracy": accuracy(Y, predicted),
        **tables.label_measures(table),
        **ranking_measures(Y, scores),
    }
    if tree is not None:
        measures |= tree_losses(Y, predicted, tree.parent_indices(labels))
    if covering is not None:
        measures["covering_error"] = covering_error(Y, predicted, covering, labels)
        measures["covering_loss"] = covering_loss(Y, scores, covering, labels)
    unlabelled = int((np.diff(Y.indptr) == 0).sum())
    counts = {"n_examples": float(Y.shape[0]), "n_unlabelled": float(unlabelled)}
    return Evaluation(
        measures={name: value for name, value in measures.items() if not math.isnan(value)} | counts,
        labels=label_rows(table, labels),
        confusion=confusion(Y, ranking(scores)[:, 0]) if is_single_label(Y) else None,
    )


def tree_losses(Y: Labels, predicted: Labels, parents: Ints) -> dict[str, float]:
    """The four tree losses by name; the two hierarchical ones with each scaling (none is ``uniform``)."""
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
    """The table of each label with its ratios, by name."""
    precision, recall = tables.label_precision(table), tables.label_recall(table)
    f1 = tables.label_f1(table, empty=1.0)
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
