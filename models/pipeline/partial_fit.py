"""Continues the training of a pipeline with more examples, such as corrections."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from models import catalog
from models.arrays import Floats, Labels, Matrix
from models.base import Context, TrainingSummary
from models.base.incremental import IncrementalLearner
from models.data.examples import Documents
from models.decisions import needs_held_out
from models.decisions.auto import LabelSetSizes
from models.decisions.held_out import HeldOutSample
from models.errors import ParameterError
from models.labels.indicator_matrix import indicator_matrix
from models.mail import MailDocument
from models.pipeline.deciding import OF_DECISION, decide
from models.pipeline.pipeline import Pipeline
from models.pipeline.prediction import check_finite, full_scores


def partial_fit(
    pipeline: Pipeline,
    documents: Documents | Sequence[MailDocument],
    label_sets: Sequence[Sequence[str]],
    *,
    weights: Floats | None = None,
) -> Pipeline:
    """Return a pipeline whose learner has also learned from more examples, in one pass in their order.

    The features with their vocabulary and weights, and the labels, stay as they were fitted. A decision that
    is tuned on held-out scores, and the probabilities, are fitted again when a twentieth of all examples are
    new: on the held-out scores that the pipeline keeps, moved to the scale of the updated learner, and on the
    scores of the new examples before each was learned. The given pipeline does not change, and can predict at
    the same time.

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
    continued.learner_ = further = learner.copy()
    context = Context(labels=pipeline.labels_, features=pipeline.features_.names_)
    X = pipeline.feature_matrix(documents)
    Y = indicator_matrix(label_sets, pipeline.labels_, pipeline.tree_)
    if pipeline.held_out_ is not None or needs_held_out(pipeline.decision_):
        _learn_and_decide(continued, further, X, Y, full_scores(learner, X), weights, context)
    else:
        weighted = {} if weights is None else {"sample_weight": weights}
        further.partial_fit(X, Y, context=context, **weighted)
    earlier = continued.summary_
    continued.summary_ = TrainingSummary(
        list(dict.fromkeys([*earlier.warnings, *further.summary_.warnings])),
        {**earlier.facts, **further.summary_.facts},
    )
    return continued


def _learn_and_decide(
    pipeline: Pipeline,
    learner: IncrementalLearner,
    X: Matrix,
    Y: Labels,
    before: Floats,
    weights: Floats | None,
    context: Context,
) -> None:
    """Let the learner of a pipeline learn, and fit the decision of the pipeline again if it is due.

    Args:
        pipeline: the pipeline to change.
        learner: its learner.
        X: (n, r) features of the new examples.
        Y: (n, k) their labels.
        before: (n, k) their scores by the learner.
        weights: (n,) how much each counts; None if all count once.
        context: the context of the examples.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scores = learner.test_then_train(X, Y, weights, context=context)
    check_finite(scores)
    labels, tree = pipeline.labels_, pipeline.tree_
    sample = pipeline.held_out_ or HeldOutSample.empty(len(labels))
    # Nothing is predicted for a document without a known word, so its scores do not decide.
    decidable = ~pipeline.features_.says_nothing(X)
    if decidable.any():
        sample = sample.extended(before[decidable], scores[decidable], Y[decidable])
    if sample.is_due(learner.n_examples_):
        sample = sample.decided()
        decided = decide(
            pipeline.decision_,
            learner,
            sample.held_out,
            labels,
            parents=tree.parent_indices(labels) if tree is not None else None,
            sizes=LabelSetSizes.of(sample.held_out.Y, sample.held_out.unknown),
            without_example=learner.label_counts_ == 0,
        )
        pipeline.rule_, pipeline.calibration_, pipeline.curves_ = (
            decided.rule,
            decided.calibration,
            decided.curves,
        )
        if (report := decided.report) is not None:
            pipeline.decision_report_ = report.model_copy(
                update={"partial_fit_examples": int(sample.new.sum())}
            )
        others = [text for text in pipeline.summary_.warnings if not text.startswith(OF_DECISION)]
        pipeline.summary_ = TrainingSummary([*others, *decided.warnings], pipeline.summary_.facts)
        if decided.reference is not None:
            names = ("unknown_terms", "mean_unknown_terms")
            of_terms = {name: getattr(pipeline.reference_, name) for name in names}
            pipeline.reference_ = decided.reference.model_copy(update=of_terms)
    pipeline.held_out_ = sample
