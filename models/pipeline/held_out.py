"""Selects the threshold of every label; if it is tuned, on scores of held-out folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone

from models import catalog
from models.arrays import AnyArray, Bools, Floats, Ints, Labels, Matrix
from models.base import Context, Learner, State, Step
from models.decisions import N_FOLDS, DecisionRule, TunedThresholdDecision
from models.decisions.thresholds import transferable, tuned_thresholds
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


@dataclass(frozen=True)
class Thresholds:
    """The selected thresholds.

    Attributes:
        values: (k,) the score above which each label is predicted.
        reset: (k,) true for a label whose tuned threshold was replaced by the default because it is not valid
            for the final learner.
    """

    values: Floats
    reset: Bools


class ThresholdSelection:
    """Selects the thresholds of a fitted learner.

    Only the decision ``tuned_threshold`` tunes thresholds. Other decisions use the learner's default
    threshold. A label cannot be tuned if it has fewer positive examples than folds, or none in the training
    part of a fold. Its threshold is

    - the default threshold, if the scores are positive for a label and negative against it;
    - the label's highest held-out score, if the scores are votes or only an order, because then no default
      threshold is meaningful.

    If there are validation examples (``context.validation``), no fold is trained: the thresholds are tuned
    on the scores of the fitted learner for these examples. A label can then be tuned if it has as many
    positive validation examples as there would be folds.

    If no label can be tuned, no fold is trained and all labels keep the default threshold. If scores have a
    meaningful zero and a tuned threshold is not valid for the final learner, the label keeps the default,
    too.

    Args:
        learner: the learner, fitted on all examples.
        decision: the decision rule.
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
        decision: DecisionRule,
        X: Matrix,
        Y: Labels,
        *,
        context: Context,
        seed: int,
        monitor: Callable[[FoldStep], None],
        resume: Mapping[str, AnyArray],
    ) -> None:
        self._learner = learner
        self._decision = decision
        self._X = X
        self._Y = Y
        self._context = context
        self._seed = seed
        self._monitor = monitor
        self._resume = resume
        self._first_fold = int(resume["fold"]) if "fold" in resume else 0

    def run(self) -> Thresholds:
        """Select the thresholds."""
        n_labels = self._Y.shape[1]
        default = catalog.default_threshold(self._learner, n_labels)
        never = np.zeros(n_labels, dtype=bool)
        validation, unknown = self._context.validation, self._context.unknown
        if validation is not None and isinstance(self._decision, TunedThresholdDecision):
            thresholds = tuned_thresholds(
                np.asarray(self._learner.decision_function(validation.X)),
                validation.Y,
                np.bincount(validation.Y.indices, minlength=n_labels) >= N_FOLDS,
                default=default if catalog.has_zero_threshold(self._learner) else None,
                fbr=self._decision.fbr,
                unknown=validation.unknown,
            )
            return Thresholds(thresholds, reset=never)
        tunable = np.bincount(self._Y.indices, minlength=n_labels) >= N_FOLDS
        if not isinstance(self._decision, TunedThresholdDecision) or not tunable.any():
            return Thresholds(np.full(n_labels, default), reset=never)
        folds = stratified_folds(self._Y, N_FOLDS, seed=self._seed)
        for fold in range(N_FOLDS):
            # A learner without a positive example of a label cannot score the label.
            tunable &= np.bincount(self._Y[folds != fold].indices, minlength=n_labels) > 0
        scores = self._held_out_scores(folds)
        fbr = self._decision.fbr
        has_zero = catalog.has_zero_threshold(self._learner)
        tuned = tuned_thresholds(
            scores, self._Y, tunable, default=default if has_zero else None, fbr=fbr, unknown=unknown
        )
        if not has_zero:
            return Thresholds(tuned, reset=never)
        training_scores = np.asarray(self._learner.decision_function(self._X))
        reset = tunable & ~transferable(tuned, scores, training_scores, self._Y, unknown)
        return Thresholds(np.where(reset, default, tuned), reset)

    def _held_out_scores(self, folds: Ints) -> Floats:
        """Return (g, k) the scores of each example by a learner that was trained on the other folds."""
        scores = self._resume.get("held_out", np.zeros(self._Y.shape)).copy()
        for fold in range(self._first_fold, N_FOLDS):
            scores[folds == fold] = self._scores_of_fold(fold, folds, scores)
        return scores

    def _scores_of_fold(self, fold: int, folds: Ints, scores: Floats) -> Floats:
        # The fold's learner keeps all labels, also those without a positive example, so that votes compare.
        learner = clone(self._learner)
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
                    state={"fold": np.array(fold), "held_out": scores.copy()},
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
        return np.asarray(learner.decision_function(self._X[~training]))
