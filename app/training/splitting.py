"""Draws the parts of a random split."""

from __future__ import annotations

from app.training.schemas import RandomSplit
from models.arrays import Ints
from models.data.store import StoredExamples
from models.errors import UnsuitableDataError
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.splits import stratified_split

TEST, VALIDATION = 1, 2
"""The numbers of the held-out parts. The training part is ``models.splits.TRAINING``."""


def draw_parts(stored: StoredExamples, tree: LabelTree | None, split: RandomSplit, seed: int) -> Ints:
    """Return the part of each example, (g,).

    Raises:
        UnsuitableDataError: there are fewer examples than parts.
    """
    n_parts = 3 if split.validation_fraction else 2
    if stored.n_examples < n_parts:
        raise UnsuitableDataError(
            f"the data set has too few examples ({stored.n_examples}) for the {n_parts} parts of the split; "
            "add examples"
        )
    label_sets = stored.label_sets()
    Y = indicator_matrix(label_sets, collect_labels(label_sets, tree), tree)
    return stratified_split(Y, [split.test_fraction, split.validation_fraction], seed=seed)
