"""Prepare the evaluation of a version: a table of labels and a heat map of mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.evaluations.schemas import LabelPair, PartEvaluation

MAX_ROWS = 200
"""Maximum number of rows of the table of labels. A search finds the others."""

MAX_WORST = 10
"""Number of labels at the beginning of the page of a version."""

MAX_HEAT_LABELS = 12
"""Maximum number of labels of a heat map, so that its numbers are readable."""


@dataclass(frozen=True)
class LabelRow:
    """A label with its measures.

    Attributes:
        label: the label.
        examples: number of examples that have the label.
        predicted: number of examples for which it is predicted.
        precision: share of the predictions that are right.
        recall: share of the examples that are found.
        f1: harmonic mean of both.
        threshold: the label is predicted if its score is above; None if it is never predicted, or unknown.
    """

    label: str
    examples: int
    predicted: int
    precision: float
    recall: float
    f1: float
    threshold: float | None


@dataclass(frozen=True)
class LabelTable:
    """Rows of labels, those with the most examples first.

    Attributes:
        rows: the first rows.
        found: number of labels that the search found.
        total: number of labels.
    """

    rows: Sequence[LabelRow]
    found: int
    total: int


def label_table(
    part: PartEvaluation,
    thresholds: Mapping[str, float] | None,
    search: str = "",
    max_rows: int | None = MAX_ROWS,
) -> LabelTable:
    """Return the labels whose name contains a text, those with the most examples first."""
    wanted = search.strip().casefold()
    found = [item for item in part.labels if wanted in item.label.casefold()]
    found.sort(key=lambda item: -(item.tp + item.fn))
    rows = [
        LabelRow(
            label=item.label,
            examples=item.tp + item.fn,
            predicted=item.tp + item.fp,
            precision=item.precision,
            recall=item.recall,
            f1=item.f1,
            threshold=None if thresholds is None else thresholds.get(item.label),
        )
        for item in found[:max_rows]
    ]
    return LabelTable(rows, len(found), len(part.labels))


def worst_labels(part: PartEvaluation) -> list[LabelRow]:
    """Return the labels with the lowest F1, the worst first, among those with an example."""
    rows = [row for row in label_table(part, None, max_rows=None).rows if row.examples]
    return sorted(rows, key=lambda row: (row.f1, -row.examples))[:MAX_WORST]


@dataclass(frozen=True)
class HeatCell:
    """A cell of a heat map.

    Attributes:
        count: number of examples.
        heat: the count as a share of the largest count of mistakes, from 0 to 1.
        right: whether the cell counts right predictions.
    """

    count: int
    heat: float
    right: bool


@dataclass(frozen=True)
class HeatMap:
    """Counts of how often a label was predicted in place of another.

    Attributes:
        is_confusion: whether every example has one label, and the map counts all examples; otherwise it
            counts pairs of a missed and a wrongly predicted label.
        columns: the predicted labels.
        rows: for each true label its cells.
        omitted: number of mistakes that are not on the map.
    """

    is_confusion: bool
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[HeatCell]]]
    omitted: int


def heat_map(part: PartEvaluation) -> HeatMap | None:
    """Return the map of the labels that are mistaken most often; None if there are no mistakes."""
    is_confusion = part.confusion is not None
    pairs = part.confusion if part.confusion is not None else part.co_errors or []
    mistakes = sorted((pair for pair in pairs if pair.label != pair.predicted), key=lambda pair: -pair.count)
    if not mistakes:
        return None
    true, predicted = _labels_of(mistakes, is_confusion=is_confusion)
    counts = {(pair.label, pair.predicted): pair.count for pair in pairs}
    most = mistakes[0].count
    rows = [
        (
            label,
            [
                HeatCell(
                    count=counts.get((label, other), 0),
                    heat=0.0 if label == other else counts.get((label, other), 0) / most,
                    right=label == other,
                )
                for other in predicted
            ],
        )
        for label in true
    ]
    omitted = sum(
        pair.count for pair in mistakes if pair.label not in true or pair.predicted not in predicted
    )
    return HeatMap(is_confusion, predicted, rows, omitted)


def _labels_of(mistakes: Sequence[LabelPair], *, is_confusion: bool) -> tuple[list[str], list[str]]:
    """Return the true and the predicted labels of the most frequent mistakes, in label order."""
    true: set[str] = set()
    predicted: set[str] = set()
    for pair in mistakes:
        if is_confusion:
            both = true | {pair.label, pair.predicted}
            if len(both) <= MAX_HEAT_LABELS:
                true = predicted = both
        elif (
            len(true | {pair.label}) <= MAX_HEAT_LABELS
            and len(predicted | {pair.predicted}) <= MAX_HEAT_LABELS
        ):
            true.add(pair.label)
            predicted.add(pair.predicted)
    return sorted(true), sorted(predicted)
