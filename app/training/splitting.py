"""Split the examples of a data set into the parts of a training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.training.schemas import GivenSplit, RandomSplit, TrainingJobCreate
from models.arrays import Bools, Ints, Labels
from models.data.digests import document_groups
from models.data.duplicates import SPLIT_CODES, Duplicates
from models.data.examples import is_fair_test
from models.data.store import StoredExamples
from models.errors import UnsuitableDataError
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.splits import TRAINING, stratified_split

TEST, VALIDATION = 1, 2
"""The numbers of the held-out parts. The training part is ``models.splits.TRAINING``."""


def draw_parts(stored: StoredExamples, tree: LabelTree | None, split: RandomSplit, seed: int) -> Ints:
    """Return the part of each example, (g,). Equal documents are in one part.

    Parts are drawn from the examples that are a fair test; the others are for training.

    Raises:
        UnsuitableDataError: there are fewer documents than parts.
    """
    n_parts = 3 if split.validation_fraction else 2
    is_fair, Y, groups = fair_examples(stored, tree, n_parts, "parts of the split")
    part_of = np.full(stored.n_examples, TRAINING)
    part_of[is_fair] = stratified_split(
        Y, [split.test_fraction, split.validation_fraction], seed=seed, groups=groups
    )
    return part_of


def fair_examples(
    stored: StoredExamples, tree: LabelTree | None, n_parts: int, parts: str
) -> tuple[Bools, Labels, Ints]:
    """Return the examples from which parts are drawn: those that are a fair test; see ``is_fair_test``.

    A copy of another example is no fair test, either.

    Args:
        stored: the data set.
        tree: its label tree, if it has one.
        n_parts: number of parts or folds that these examples are divided into.
        parts: what these are, for an error.

    Returns:
        (g,) which examples these are, and the label set and the document of each.

    Raises:
        UnsuitableDataError: there are fewer such documents than parts.
    """
    groups = document_groups(stored)
    is_fair = ~np.isin(groups, groups[~is_fair_test(stored.selections())])
    label_sets, documents = stored.where(is_fair).label_sets(), groups[is_fair]
    n_documents = len(np.unique(documents))
    if n_documents < n_parts:
        what, why, hint = "examples", "", "add examples"
        if n_documents < len(documents):
            what, why = "different documents", ", because equal documents stay together"
            hint = "add documents, or assign the parts in the data set"
        message = f"the data set has too few {what} ({n_documents}) for the {n_parts} {parts}{why}; {hint}"
        if n_others := int((~is_fair).sum()):
            message += (
                f". The other {n_others} are for training only, because the doubt or a mistake of a version "
                "selected them for a review: set review_sample of the router, and review its sample"
            )
        raise UnsuitableDataError(message)
    return is_fair, indicator_matrix(label_sets, collect_labels(label_sets, tree), tree), documents


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
