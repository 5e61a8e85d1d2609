"""Rejects requests with a label covering that no training on a data set could use."""

from __future__ import annotations

from app.datasets import service as datasets
from app.db import tables
from app.db.session import Database
from app.http.errors import from_learning
from models.boosting.adaboost_lc import AdaBoostLCParameters
from models.catalog import LearnerConfig
from models.errors import ParameterError


def check_covering(
    db: Database, learner: LearnerConfig, dataset: tables.Dataset, *, left_out: int, pointer: str = ""
) -> None:
    """Raise an error if no training on the data set could use the learner's covering.

    A label is certain to have a training example only if it has more examples than are left out of the
    training part. The job itself checks what depends on the other labels.

    Args:
        db: the database, which has the labels of the data set.
        learner: any learner; only a covering that names labels can be rejected.
        dataset: a ready data set.
        left_out: the largest number of examples that are not in a training part.
        pointer: JSON pointer of the part of the request that contains the learner.

    Raises:
        Invalid: the covering names labels that the data set does not have, or leaves labels uncovered.
    """
    if not isinstance(learner, AdaBoostLCParameters) or not any(learner.covering.label_references()):
        return
    counts = datasets.label_counts(db, dataset.id)
    try:
        learner.covering.check([label for label, count in counts.items() if count > left_out], list(counts))
    except ParameterError as error:
        raise from_learning(ParameterError(str(error), pointer + error.pointer)) from error
