"""Splits the examples of a data set into the parts of a training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.training.schemas import GivenSplit, RandomSplit, TrainingJobCreate
from models.arrays import Ints, Labels
from models.data.digests import document_groups
from models.data.duplicates import SPLIT_CODES, Duplicates
from models.data.store import StoredExamples
from models.errors import UnsuitableDataError
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.splits import TRAINING, stratified_split

TEST, VALIDATION = 1, 2
"""The numbers of the held-out parts. The training part is ``models.splits.TRAINING``."""


def draw_parts(stored: StoredExamples, tree: LabelTree | None, split: RandomSplit, seed: int) -> Ints:
    """Return the part of each example, (g,). Equal documents are in one part.

    Raises:
        UnsuitableDataError: there are fewer documents than parts.
    """
    Y, groups = labels_and_documents(stored, tree, 3 if split.validation_fraction else 2, "parts")
    return stratified_split(Y, [split.test_fraction, split.validation_fraction], seed=seed, groups=groups)


def labels_and_documents(
    stored: StoredExamples, tree: LabelTree | None, n_parts: int, name: str
) -> tuple[Labels, Ints]:
    """Return what parts are drawn by: the label sets of the examples, (g, k), and their documents, (g,).

    Args:
        stored: the examples.
        tree: the label tree, if the data set has one.
        n_parts: number of parts to draw.
        name: what the parts are called in the error.

    Raises:
        UnsuitableDataError: there are fewer documents than parts.
    """
    groups = document_groups(stored)
    n_documents = int(groups.max(initial=-1)) + 1
    if n_documents < n_parts:
        what, why, remedy = "examples", "", "add examples"
        if n_documents < stored.n_examples:
            what, why = "different documents", ", because equal documents stay together"
            remedy = f"add documents, or assign the {name} in the data set"
        raise UnsuitableDataError(
            f"the data set has too few {what} ({n_documents}) for the {n_parts} {name} of the split{why}; "
            f"{remedy}"
        )
    label_sets = stored.label_sets()
    return indicator_matrix(label_sets, collect_labels(label_sets, tree), tree), groups


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


def duplicate_warnings(stored: StoredExamples, parts: Parts, *, drawn: bool) -> list[str]:
    """Return warnings of equal documents in the parts of a data set.

    Args:
        stored: the data set.
        parts: its parts.
        drawn: whether the parts were drawn, so that equal documents are in one part.
    """
    splits = np.full(stored.n_examples, SPLIT_CODES[None], dtype=np.int8)
    splits[parts.training.positions()] = SPLIT_CODES["train"]
    if parts.validation is not None:
        splits[parts.validation.positions()] = SPLIT_CODES["validation"]
    if parts.test is not None:
        splits[parts.test.positions()] = SPLIT_CODES["test"]
    used = splits != SPLIT_CODES[None]
    number_of: dict[tuple[str, ...], int] = {}
    labels = np.array([number_of.setdefault(names, len(number_of)) for names in stored.label_sets()])
    duplicates = Duplicates.of(stored.document_digests()[used], labels[used], splits[used])
    warnings = [*duplicates.leaks()]
    if drawn and duplicates.n_duplicates:
        n_examples = int(used.sum())
        warnings.append(
            f"examples with a document that occurs more than once: {duplicates.n_equal:,} of {n_examples:,}; "
            "those of one document stay together in one part, so that the parts consist of "
            f"{n_examples - duplicates.n_duplicates:,} documents"
        )
    if duplicates.n_conflicting:
        warnings.append(
            f"equal documents with different labels: {duplicates.n_conflicting:,}; a version predicts the "
            "same labels for all of them"
        )
    return warnings
