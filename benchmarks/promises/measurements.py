"""The promises, each with what measures it, on a corpus."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.promises import decided, library, updated
from benchmarks.promises.corpora import CORPORA, UNITS, divide
from benchmarks.promises.library import Cell
from benchmarks.promises.results import add
from benchmarks.tables import Result
from models.labels.indicator_matrix import collect_labels

UNSEEN_SHARE = 0.2
"""Share of the labels that the training does not see."""

MIN_LABELS = 5
MIN_UNSEEN = 20
"""Fewest documents of unseen labels that are measured."""

MIN_SINGLE = 0.6
"""Smallest share of documents with one label for which these alone are measured, too."""


def _single(cell: Cell) -> Result | None:
    """Measure the promise on documents with exactly one label."""
    parts = cell.parts.where(_has_one, _has_one)
    if len(parts.order) == len(cell.parts.order) and parts.test.n_examples == cell.parts.test.n_examples:
        return decided.single(cell.trained)
    if len(parts.order) < max(cell.size, MIN_SINGLE * len(cell.parts.order)):
        return None
    return decided.single(replace(cell, parts=parts).trained)


def _has_one(labels: tuple[str, ...]) -> bool:
    return len(labels) == 1


def _unseen(cell: Cell) -> Result | None:
    """Measure the promise on documents of labels that the training does not see."""
    labels = collect_labels(cell.parts.pool.labels)
    if len(labels) < MIN_LABELS:
        return None
    n_unseen = math.ceil(UNSEEN_SHARE * len(labels))
    unseen = {*np.random.default_rng(cell.seed).choice(labels, n_unseen, replace=False).tolist()}
    parts = cell.parts.where(unseen.isdisjoint, lambda labels: bool(labels) and unseen.issuperset(labels))
    if len(parts.order) < cell.size or parts.test.n_examples < MIN_UNSEEN:
        return None
    return decided.unseen(replace(cell, parts=parts).trained)


PROMISES: Mapping[str, Callable[[Cell], Result | None]] = {
    "single": _single,
    "precision": lambda cell: decided.precision(cell.trained),
    "probabilities": lambda cell: decided.probabilities(cell.trained),
    "agreement": lambda cell: decided.agreement(cell.trained),
    "review": lambda cell: decided.review(cell.trained),
    "unseen": _unseen,
    "partial_fit": updated.partial_fit,
    "if_better": updated.if_better,
    "self_training": updated.self_training,
}
"""What measures each promise; None if the corpus is not suitable."""


def measure(
    name: str, sizes: Sequence[int], seeds: Sequence[int], promises: Sequence[str], learner: str, split: str
) -> list[Result]:
    """Return a result for each promise and size, with sums over seeds.

    Raises:
        MissingCorpusError: the corpus is not on this machine.
    """
    examples = CORPORA[name]()
    sums: dict[tuple[str, int], Result] = {}
    for seed in seeds:
        parts = divide(examples, split, sizes, seed)
        for size in sizes:
            if size > len(parts.order):
                continue
            cell = Cell(parts, size, seed, learner, name in UNITS)
            for promise in promises:
                if result := PROMISES[promise](cell):
                    sums[promise, size] = add(sums.get((promise, size), {}), {"seeds": 1, **result})
            library.forget()
    head = {"learner": learner, "split": split, "corpus": name}
    return [
        {"promise": promise, "size": size, **head, **rounded(result)}
        for (promise, size), result in sums.items()
    ]


def rounded(value: Any) -> Any:
    """Return a result with numbers of four digits.

    >>> rounded({"f1": [0.123456], "n": 3})
    {'f1': [0.1235], 'n': 3}
    """
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return round(value, 4)
