"""Computes held-out scores: of the folds of the training examples, or of validation examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone

from models.arrays import AnyArray, Floats, Ints, Labels, Matrix
from models.base import Context, Learner, State, Step
from models.decisions import N_FOLDS, HeldOut
from models.decisions.score_scale import ScoreScale
from models.pipeline.snapshot import select_prefix
from models.splits import stratified_folds


@dataclass(frozen=True)
class FoldStep:
    """A completed step of a learner that is trained on all folds but one.

    Attributes:
        completed: number of completed steps over all folds.
        total: maximum number of steps over all folds.
        step: the step of the learner.
        state: the fold and the held-out scores so far, as part of a snapshot.
    """

    completed: int
    total: int
    step: Step
    state: State


class HeldOutScores:
    """Computes held-out scores for a fitted learner.

    If there are validation examples (``context.validation``), no fold is trained: the fitted learner scores
    them. Their folds are drawn so that a decision can be valued on examples on which it was not tuned.

    Otherwise a learner of the same kind is trained for each fold of the training examples, on the other
    folds.

    A label can be tuned if it has as many positive examples as there are folds, and one in the training part
    of every fold.

    Args:
        learner: the learner, fitted on all examples.
        X: (g, r) features of the training part.
        Y: (g, k) relevant labels of the training part.
        context: the context with which the learner was fitted.
        seed: seed of the folds.
        monitor: called after every step of a fold's learner.
        resume: the snapshot to resume from; empty to start from the beginning.
    """

    def __init__(
        self,
        learner: Learner,
        X: Matrix,
        Y: Labels,
        *,
        context: Context,
        seed: int,
        monitor: Callable[[FoldStep], None],
        resume: Mapping[str, AnyArray],
    ) -> None:
        self._learner = learner
        self._X = X
        self._Y = Y
        self._context = context
        self._seed = seed
        self._monitor = monitor
        self._resume = resume
        self._first_fold = int(resume["fold"]) if "fold" in resume else 0

    def run(self) -> HeldOut | None:
        """Return the held-out scores; None if no label can be tuned on folds. No fold is then trained."""
        validation = self._context.validation
        if validation is not None:
            return HeldOut(
                scores=np.asarray(self._learner.decision_function(validation.X)),
                Y=validation.Y,
                unknown=validation.unknown,
                folds=stratified_folds(validation.Y, N_FOLDS, seed=self._seed),
                tunable=_counts(validation.Y) >= N_FOLDS,
            )
        tunable = _counts(self._Y) >= N_FOLDS
        if not tunable.any():
            return None
        folds = stratified_folds(self._Y, N_FOLDS, seed=self._seed)
        for fold in range(N_FOLDS):
            # A learner without a positive example of a label cannot score the label.
            tunable &= _counts(self._Y[folds != fold]) > 0
        scores, scales = self._held_out_scores(folds)
        return HeldOut(
            scores,
            self._Y,
            self._context.unknown,
            folds,
            tunable,
            tuple(ScoreScale(*scale) for scale in scales) if self._learner.has_fixed_scale else None,
        )

    def _held_out_scores(self, folds: Ints) -> tuple[Floats, Floats]:
        """Return (g, k) the scores of each example by a learner that was trained on the other folds.

        The second result, (``N_FOLDS``, 2, k), contains mean and spread of each learner's training scores.
        """
        k = self._Y.shape[1]
        scores = self._resume.get("held_out", np.zeros(self._Y.shape)).copy()
        scales = self._resume.get("fold_scales", np.ones((N_FOLDS, 2, k))).copy()
        for fold in range(self._first_fold, N_FOLDS):
            learner = self._learner_of_fold(fold, folds, scores, scales)
            training = folds != fold
            scores[~training] = learner.decision_function(self._X[~training])
            if self._learner.has_fixed_scale:
                unknown = self._context.unknown
                known = None if unknown is None else unknown[training].toarray() == 0
                scale = ScoreScale.of(np.asarray(learner.decision_function(self._X[training])), known)
                scales[fold] = scale.center, scale.spread
        return scores, scales

    def _learner_of_fold(self, fold: int, folds: Ints, scores: Floats, scales: Floats) -> Learner:
        # The fold's learner keeps all labels, also those without a positive example, so that votes compare.
        learner: Learner = clone(self._learner)
        training = folds != fold
        unknown, weights = self._context.unknown, self._context.weights
        context = replace(
            self._context,
            unknown=None if unknown is None else unknown[training],
            weights=None if weights is None else weights[training],
        )

        def report(step: Step, /) -> None:
            self._monitor(
                FoldStep(
                    completed=fold * step.total + step.completed,
                    total=N_FOLDS * step.total,
                    step=step,
                    state={"fold": np.array(fold), "held_out": scores.copy(), "fold_scales": scales.copy()},
                )
            )

        interrupted = "fold" in self._resume and fold == self._first_fold
        learner.fit(
            self._X[training],
            self._Y[training],
            context=context,
            monitor=report,
            resume=select_prefix("learner", self._resume) if interrupted else None,
        )
        return learner


def _counts(Y: Labels) -> Ints:
    """Return the number of positive examples of each label."""
    return np.bincount(Y.indices, minlength=Y.shape[1])
