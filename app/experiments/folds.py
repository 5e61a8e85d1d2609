"""Assign the examples of an experiment to folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.experiments.schemas import AssignedSplit, ExperimentCreate, FoldsSplit
from app.training.schemas import GivenSplit, RandomSplit
from app.training.splitting import TEST, VALIDATION, draw_parts, fair_examples
from models.arrays import Bools, Ints
from models.data.store import StoredExamples
from models.labels import LabelTree
from models.splits import TRAINING, stratified_folds

ALWAYS_TRAINING = -1
UNUSED = -2
ALWAYS_VALIDATION = -3


@dataclass(frozen=True)
class Folds:
    """The fold of each example.

    Attributes:
        of_example: (g,) the fold that holds an example out, or ``ALWAYS_TRAINING``,
            ``ALWAYS_VALIDATION`` or ``UNUSED``.
    """

    of_example: Ints

    def training(self, fold: int) -> Bools:
        """Return the mask (g,) of the training examples of a fold."""
        return np.asarray((self.of_example != fold) & (self.of_example >= ALWAYS_TRAINING))

    def validation(self) -> Bools:
        """Return the mask (g,) of the examples for early stopping and tuned thresholds, in every fold."""
        return np.asarray(self.of_example == ALWAYS_VALIDATION)

    def test(self, fold: int) -> Bools:
        """Return the mask (g,) of the held-out examples of a fold."""
        return np.asarray(self.of_example == fold)


def held_out_folds(request: ExperimentCreate) -> Sequence[int]:
    """Return the numbers of the folds that are held out, ascending; a given or random split has one.

    Args:
        request: a request with its defaults filled in.
    """
    if isinstance(request.split, AssignedSplit):
        return request.split.folds or []
    return range(request.split.folds if isinstance(request.split, FoldsSplit) else 1)


def assign_folds(request: ExperimentCreate, stored: StoredExamples, tree: LabelTree | None) -> Folds:
    """Assign examples to folds.

    Args:
        request: a request with its defaults filled in.
        stored: the examples of the data set.
        tree: the label tree, if the data set has one.

    Raises:
        UnsuitableDataError: there are too few documents for the split.
    """
    if isinstance(request.split, GivenSplit):
        codes = {"test": 0, "train": ALWAYS_TRAINING, "validation": ALWAYS_VALIDATION, None: UNUSED}
        return Folds(np.array([codes[split] for split in stored.splits()], dtype=np.int64))
    if isinstance(request.split, RandomSplit):
        code_of_part = np.zeros(3, dtype=np.int64)
        code_of_part[[TRAINING, TEST, VALIDATION]] = ALWAYS_TRAINING, 0, ALWAYS_VALIDATION
        return Folds(code_of_part[draw_parts(stored, tree, request.split, request.seed)])
    if isinstance(request.split, AssignedSplit):
        return Folds(np.array([UNUSED if fold is None else fold for fold in stored.folds()], dtype=np.int64))
    assert isinstance(request.split, FoldsSplit), "defaults are filled in"  # noqa: S101
    is_fair, Y, groups = fair_examples(stored, tree, request.split.folds, "folds")
    of_example = np.full(stored.n_examples, ALWAYS_TRAINING)
    of_example[is_fair] = stratified_folds(Y, request.split.folds, seed=request.seed, groups=groups)
    return Folds(of_example)
