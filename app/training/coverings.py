"""Reject requests with a label covering that no training on a data set could use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.datasets import service as datasets
from app.db import tables
from app.db.session import Database
from app.errors import from_library_error
from models.catalog import LearnerConfig
from models.covering import Covering
from models.errors import ParameterError


def coverings_of_learners(learners: Iterable[tuple[str, LearnerConfig]]) -> Iterator[tuple[str, Covering]]:
    """Yield the coverings of learners, each with its JSON pointer.

    Args:
        learners: any learners, each with the JSON pointer of the part of the request that contains it.
    """
    for pointer, learner in learners:
        covering = learner.training_covering()
        if covering is not None:
            yield f"{pointer}/learner/covering", covering


def check_coverings(
    db: Database, coverings: Iterable[tuple[str, Covering]], dataset: tables.Dataset, *, left_out: int
) -> None:
    """Raise an error if no training on the data set could use a covering.

    A label is certain to have a training example only if it has more examples than are left out of the
    training part. The job itself checks what depends on the other labels.

    Args:
        db: the database, which has the labels of the data set.
        coverings: coverings with their JSON pointers. Only one that names labels can be rejected. One that
            occurs several times is checked once.
        dataset: a ready data set.
        left_out: the largest number of examples that are not in a training part; -1 if the version has all
            labels anyway.

    Raises:
        Invalid: a covering names labels that the data set does not have, or leaves labels uncovered.
    """
    naming = {
        id(covering): (pointer, covering)
        for pointer, covering in coverings
        if any(covering.label_references())
    }
    if not naming:
        return
    counts = datasets.label_counts(db, dataset.id)
    certain = [label for label, count in counts.items() if count > left_out]
    for pointer, covering in naming.values():
        try:
            covering.check(certain, counts.keys(), pointer=pointer)
        except ParameterError as error:
            raise from_library_error(error) from error
