"""Estimates the memory of a training before it starts."""

from __future__ import annotations

import math

from models.arrays import Labels, Matrix
from models.base import Context, Learner
from models.base.memory import ProblemSize, check_memory
from models.decisions import DecisionRule, needs_held_out

STORED_VALUE_BYTES = 16
"""Memory of a stored value of the features, with the share of the copies that are made to score them."""

SCORE_BYTES = 48
"""Memory that the evaluation takes for each example and label: scores, ranks, and copies of both."""

UNKNOWN_BYTES = 16
"""Memory that the evaluation takes in addition for each example and label if some are unknown."""

SCORING_BYTES = 128 * 2**20
"""Memory of the temporary arrays of a batch of examples that is scored."""


def check_training(
    learner: Learner,
    decision: DecisionRule,
    X: Matrix,
    Y: Labels,
    context: Context,
    raw_values: int,
    limit: int | None,
) -> None:
    """Check that a training and its evaluation fit in memory.

    The estimate contains the features, the validation examples with their scores, and the larger one of the
    training (twice the learner's own estimate for a decision on held-out scores, which trains learners of
    folds beside the fitted one) and of the evaluation of the training part.

    Args:
        learner: the learner to fit.
        decision: the decision rule.
        X: (g, r) features of the training part.
        Y: (g, k) its relevant labels.
        context: the context of the training.
        raw_values: number of stored values from which the features of folds are computed; 0 without folds.
        limit: the limit in bytes; None if there is none.

    Raises:
        MemoryLimitError: the estimate exceeds the limit.
    """
    if limit is None:
        return
    size = ProblemSize.of(X, Y, context)
    needed = estimate(learner, decision, size)
    needed += STORED_VALUE_BYTES * raw_values
    if context.validation is not None:
        validation = context.validation
        needed += STORED_VALUE_BYTES * validation.X.nnz + SCORE_BYTES * math.prod(validation.Y.shape)
    check_memory(needed, limit, size, learner.algorithm)


def estimate(learner: Learner, decision: DecisionRule, size: ProblemSize) -> int:
    """Return the estimated memory of a training and its evaluation in bytes."""
    training = learner.estimate_bytes(size)
    trainings = 2 if needs_held_out(decision) else 1
    scores = SCORE_BYTES + (UNKNOWN_BYTES if size.unknown_entries else 0)
    evaluation = scores * size.examples * size.labels + SCORING_BYTES
    # A fitted learner takes at most half as much memory as its training, which also has a snapshot.
    return STORED_VALUE_BYTES * size.entries + max(trainings * training, training // 2 + evaluation)
