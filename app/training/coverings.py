"""Coverings that no training on a data set can use, refused with the request."""

from __future__ import annotations

from app.datasets import service as datasets
from app.db import tables
from app.db.session import Database
from app.http.errors import from_learning
from models.boosting.adaboost_lc import AdaBoostLCParameters
from models.catalog import LearnerUnion
from models.errors import ParameterError


def check_covering(
    db: Database, learner: LearnerUnion, dataset: tables.Dataset, *, left_out: int, place: str = ""
) -> None:
    """Refuse a covering that no training on this data set can use.

    Which labels have a training example is known only for those with more examples than are left out of the
    training part; what depends on the others the job itself will say.

    Args:
        db: where the data set's labels stand.
        learner: any learner; only one with a covering that names labels can be refused.
        dataset: a ready data set.
        left_out: examples at most that are not in a training part.
        place: JSON pointer of what holds the learner in the request.

    Raises:
        Invalid: the covering names labels that the data set has not, or leaves labels uncovered.
    """
    if not isinstance(learner, AdaBoostLCParameters) or not any(learner.covering.label_references()):
        return
    counts = datasets.label_counts(db, dataset.id)
    try:
        learner.covering.check([label for label, count in counts.items() if count > left_out], list(counts))
    except ParameterError as error:
        raise from_learning(ParameterError(str(error), place + error.pointer)) from error
