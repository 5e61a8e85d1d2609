"""The errors of a trial on its held-out examples: which labels are confused, and the worst examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Labels
from models.labels.ranking import ranking
from models.measures.confusion import co_errors
from models.measures.sets import wrong_labels
from models.measures.unknown import without_unknown
from models.measures.worst import misranking, worst_examples

MAX_LABELS = 100
"""Largest number of labels of an example that are listed."""


@dataclass(frozen=True)
class ErrorLimits:
    """How many errors of a trial are kept.

    Attributes:
        examples: largest number of examples with a wrong label; the worst are kept.
        pairs: largest number of pairs of labels; the most frequent are kept.
    """

    examples: int
    pairs: int


@dataclass(frozen=True)
class LabelPair:
    """How often a label was predicted in place of another.

    Attributes:
        label: the true label.
        predicted: the predicted label.
        count: number of examples.
    """

    label: str
    predicted: str
    count: int


@dataclass(frozen=True)
class WrongExample:
    """A held-out example with a wrong label. At most ``MAX_LABELS`` labels are listed.

    Attributes:
        example: index of the example in the held-out part.
        n_wrong: number of missed and wrongly predicted labels.
        misranking: how wrong the ranking is, see ``measures.worst``.
        labels: its true labels, in label order.
        predicted: its predicted labels, in label order.
        scores: the score of each listed label that the pipeline has.
    """

    example: int
    n_wrong: int
    misranking: float
    labels: list[str]
    predicted: list[str]
    scores: dict[str, float]


@dataclass(frozen=True)
class TrialErrors:
    """The errors of a trial.

    Attributes:
        confusion: if every example has exactly one label: how often each label was ranked first for the
            examples of each label. Otherwise None.
        co_errors: how often one label was missed while another one was wrongly predicted.
        examples: the examples with the most wrong labels, worst first.
    """

    confusion: list[LabelPair] | None
    co_errors: list[LabelPair]
    examples: list[WrongExample]


def find_errors(
    label_sets: Sequence[tuple[str, ...]],
    Y: Labels,
    predicted: Labels,
    scores: Floats,
    labels: Sequence[str],
    limits: ErrorLimits,
    unknown: Labels | None = None,
) -> TrialErrors:
    """Find the errors of predictions.

    Args:
        label_sets: the true labels of each of n examples, with those that the pipeline does not have.
        Y: (n, k) true label sets.
        predicted: (n, k) predicted label sets.
        scores: (n, k) scores.
        labels: the k label names.
        limits: how many errors are kept.
        unknown: (n, k) unknown labels, which are never wrong; None if there are none.
    """
    if unknown is not None:
        predicted, scores = without_unknown(predicted, scores, unknown)
    pairs = co_errors(Y, predicted).tocoo()
    counted = Counter(
        {
            (labels[i], labels[j]): count
            for i, j, count in zip(pairs.row.tolist(), pairs.col.tolist(), pairs.data.tolist(), strict=True)
        }
    )
    confused: Counter[tuple[str, str]] | None = None
    if label_sets and all(len(label_set) == 1 for label_set in label_sets):
        first = ranking(scores)[:, 0].tolist()
        confused = Counter((true, labels[top]) for (true,), top in zip(label_sets, first, strict=True))
    worst = worst_examples(Y, predicted, scores, limits.examples)
    wrong = wrong_labels(Y[worst], predicted[worst])
    misranked = misranking(Y[worst], scores[worst])
    column = {label: j for j, label in enumerate(labels)}
    examples = []
    for row, example in enumerate(worst.tolist()):
        assigned = predicted.indices[predicted.indptr[example] : predicted.indptr[example + 1]]
        listed = sorted(label_sets[example])[:MAX_LABELS]
        also = [labels[j] for j in np.sort(assigned)[:MAX_LABELS].tolist()]
        examples.append(
            WrongExample(
                example=example,
                n_wrong=int(wrong[row]),
                misranking=float(misranked[row]),
                labels=listed,
                predicted=also,
                scores={
                    name: float(scores[example, column[name]])
                    for name in sorted({*listed, *also})
                    if name in column and np.isfinite(scores[example, column[name]])
                },
            )
        )
    return TrialErrors(
        confusion=None if confused is None else most_frequent(confused, limits.pairs),
        co_errors=most_frequent(counted, limits.pairs),
        examples=examples,
    )


def most_frequent(counts: Counter[tuple[str, str]], limit: int) -> list[LabelPair]:
    """Return the most frequent pairs, most frequent first; ties are in label order.

    >>> most_frequent(Counter({("b", "a"): 1, ("a", "b"): 1, ("a", "c"): 4}), 2)
    [LabelPair(label='a', predicted='c', count=4), LabelPair(label='a', predicted='b', count=1)]
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [LabelPair(label, predicted, count) for (label, predicted), count in ordered[:limit]]
