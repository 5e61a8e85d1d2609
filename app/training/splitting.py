"""Splits the examples of a data set into the parts of a training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.training.schemas import GivenSplit, RandomSplit, TrainingJobCreate
from models.arrays import Ints
from models.data.store import StoredExamples
from models.errors import UnsuitableDataError
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.splits import TRAINING, stratified_split

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


@dataclass(frozen=True)
class Parts:
    """The parts of a data set that a training uses.

    Attributes:
        training: the examples that the version is trained on.
        validation: the examples for early stopping and ``tuned_threshold``; None if there are none.
        test: the examples that the version is evaluated on; None if there are none.
    """

    training: StoredExamples
    validation: StoredExamples | None = None
    test: StoredExamples | None = None


def split_examples(stored: StoredExamples, request: TrainingJobCreate, tree: LabelTree | None) -> Parts:
    """Return the parts of a data set.

    Args:
        stored: the data set.
        request: a request with its defaults filled in.
        tree: the label tree, if the data set has one.

    Raises:
        UnsuitableDataError: there are too few examples for a random split.
    """
    split = request.split
    if isinstance(split, GivenSplit):
        # An example without a split belongs to no part.
        names = np.array([name or "" for name in stored.splits()])
        training, validation, test = (names == part for part in ("train", "validation", "test"))
    elif isinstance(split, RandomSplit):
        numbers = draw_parts(stored, tree, split, request.seed)
        training, validation, test = (numbers == part for part in (TRAINING, VALIDATION, TEST))
    else:
        return Parts(stored)
    return Parts(
        stored.where(training),
        stored.where(validation) if validation.any() else None,
        stored.where(test) if test.any() else None,
    )
