"""Assigns the examples of an experiment to folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.experiments.schemas import ExperimentCreate, FoldsSplit
from app.training.schemas import GivenSplit, RandomSplit
from models.arrays import Bools, Ints
from models.data.store import StoredExamples
from models.errors import UnsuitableDataError
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.splits import random_split, stratified_folds

ALWAYS_TRAINING = -1
UNUSED = -2


@dataclass(frozen=True)
class Folds:
    """The fold of each example.

    Attributes:
        of_example: (g,) the fold that holds an example out, or ``ALWAYS_TRAINING``, or ``UNUSED``.
    """

    of_example: Ints

    def training(self, fold: int) -> Bools:
        """Return the mask (g,) of the training examples of a fold."""
        return np.asarray((self.of_example != fold) & (self.of_example != UNUSED))

    def test(self, fold: int) -> Bools:
        """Returns the mask (g,) of the held-out examples of a fold."""
        return np.asarray(self.of_example == fold)


def n_folds(request: ExperimentCreate) -> int:
    """Return the number of folds; a given or random split has one."""
    return request.split.folds if isinstance(request.split, FoldsSplit) else 1


def assign_folds(request: ExperimentCreate, stored: StoredExamples, tree: LabelTree | None) -> Folds:
    """Assign examples to folds.

    Args:
        request: a request with its defaults filled in.
        stored: the examples of the data set.
        tree: the label tree, if the data set has one.

    Raises:
        UnsuitableDataError: there are too few examples for the split.
    """
    if isinstance(request.split, GivenSplit):
        codes = {"test": 0, "train": ALWAYS_TRAINING, None: UNUSED}
        return Folds(np.array([codes[split] for split in stored.splits()], dtype=np.int64))
    if isinstance(request.split, RandomSplit):
        if stored.n_examples < 2:
            raise UnsuitableDataError("one example cannot be split into two parts")
        test = random_split(stored.n_examples, request.split.test_fraction, seed=request.seed)
        return Folds(np.where(test, 0, ALWAYS_TRAINING))
    assert isinstance(request.split, FoldsSplit), "defaults are filled in"  # noqa: S101
    label_sets = stored.label_sets()
    Y = indicator_matrix(label_sets, collect_labels(label_sets, tree), tree)
    return Folds(stratified_folds(Y, request.split.folds, seed=request.seed))
