"""Continues the training of a pipeline with more examples, such as corrections."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from models import catalog
from models.arrays import Floats
from models.base import Context, TrainingSummary
from models.base.incremental import IncrementalLearner
from models.data.examples import Documents
from models.errors import ParameterError
from models.labels.indicator_matrix import indicator_matrix
from models.mail import MailDocument
from models.pipeline.pipeline import Pipeline


def train_further(
    pipeline: Pipeline,
    documents: Documents | Sequence[MailDocument],
    label_sets: Sequence[Sequence[str]],
    *,
    weights: Floats | None = None,
) -> Pipeline:
    """Return a pipeline whose learner has also learned from more examples, in one pass in their order.

    Everything else stays as it was fitted: the features with their vocabulary and weights, the labels, the
    thresholds and the calibration. The given pipeline does not change, and can predict at the same time.

    Args:
        pipeline: a fitted pipeline.
        documents: n documents of the kind of the training documents.
        label_sets: the labels of each document. With a label tree, their ancestors apply too.
        weights: (n,) how much each example counts; None if all count once.

    Raises:
        ParameterError: the learner cannot learn further, a label is unknown, the documents are of another
            kind, or the learner does not accept weights.
        UnsuitableDataError: the learner cannot learn from these documents.
    """
    learner = pipeline.learner_
    if not isinstance(learner, IncrementalLearner):
        raise ParameterError(
            f"{learner.algorithm} cannot continue a training; train a new version, or use one of "
            f"{', '.join(catalog.INCREMENTAL_LEARNERS)}"
        )
    known = {*pipeline.labels_}
    for label_set in label_sets:
        for label in label_set:
            if label not in known:
                raise ParameterError(f"the model has no label {label!r}")
    if weights is not None:
        catalog.check_weights(learner)
    continued = copy.copy(pipeline)
    continued.learner = continued.learner_ = further = learner.copy()
    context = Context(labels=pipeline.labels_, features=pipeline.features_.names_, weights=weights)
    Y = indicator_matrix(label_sets, pipeline.labels_, pipeline.tree_)
    further.partial_fit(pipeline.feature_matrix(documents), Y, context=context)
    earlier = pipeline.summary_
    continued.summary_ = TrainingSummary(
        list(dict.fromkeys([*earlier.warnings, *further.summary_.warnings])),
        {**earlier.facts, **further.summary_.facts},
    )
    return continued
