"""Splits the examples of a data set into the parts of a training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.training.schemas import GivenSplit, RandomSplit, TrainingJobCreate
from models.arrays import Bools, Ints, Labels
from models.data.examples import is_fair_test
from models.data.store import StoredExamples
from models.errors import UnsuitableDataError
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.splits import TRAINING, stratified_split

TEST, VALIDATION = 1, 2
"""The numbers of the held-out parts. The training part is ``models.splits.TRAINING``."""


def draw_parts(stored: StoredExamples, tree: LabelTree | None, split: RandomSplit, seed: int) -> Ints:
    """Return the part of each example, (g,).

    Parts are drawn from the examples that are a fair test; the others are for training.

    Raises:
        UnsuitableDataError: there are fewer examples than parts.
    """
    n_parts = 3 if split.validation_fraction else 2
    is_fair, Y = fair_examples(stored, tree, n_parts, "parts of the split")
    part_of = np.full(stored.n_examples, TRAINING)
    part_of[is_fair] = stratified_split(Y, [split.test_fraction, split.validation_fraction], seed=seed)
    return part_of


def fair_examples(
    stored: StoredExamples, tree: LabelTree | None, n_parts: int, parts: str
) -> tuple[Bools, Labels]:
    """Return which examples are a fair test, (g,), and their label sets; see ``is_fair_test``.

    Args:
        stored: the data set.
        tree: its label tree, if it has one.
        n_parts: number of parts or folds that these examples are divided into.
        parts: what these are, for an error.

    Raises:
        UnsuitableDataError: there are fewer such examples than parts.
    """
    is_fair = is_fair_test(stored.selections())
    fair = stored.where(is_fair)
    if fair.n_examples < n_parts:
        message = (
            f"the data set has too few examples ({fair.n_examples}) for the {n_parts} {parts}; add examples"
        )
        if n_others := stored.n_examples - fair.n_examples:
            message += (
                f". The other {n_others} are for training only, because the doubt or a mistake of a version "
                "selected them for a review: set review_sample of the router, and review its sample"
            )
        raise UnsuitableDataError(message)
    label_sets = fair.label_sets()
    return is_fair, indicator_matrix(label_sets, collect_labels(label_sets, tree), tree)


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
