"""Computes held-out scores: of the folds of the training examples, or of validation examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from models.arrays import AnyArray, Bools, Floats, Ints
from models.base import Context, Learner, Problem, State, Step
from models.decisions import N_FOLDS, HeldOut
from models.decisions.held_out import ScoreScale, align
from models.errors import UnsuitableDataError
from models.features.raw_values import RawValues
from models.pipeline.snapshot import select_prefix
from models.pipeline.training_set import Features
from models.splits import stratified_folds


@dataclass(frozen=True)
class FoldStep:
    """A completed step of a learner that is trained on all folds but one.

    Attributes:
        completed: number of completed steps over all folds.
        total: maximum number of steps over all folds.
        step: the step of the learner.
        state: returns the fold and a copy of the held-out scores so far, as part of a snapshot.
    """

    completed: int
    total: int
    step: Step
    state: Callable[[], State]


def validation_scores(
    features: Features, learner: Learner, context: Context, groups: Ints, *, seed: int
) -> HeldOut | None:
    """Return the scores of the validation examples by the fitted learner itself, which no fold needs.

    Their folds are drawn so that a decision can be valued on examples on which it was not tuned.

    Args:
        features: the features, fitted on the training examples.
        learner: the learner, fitted on them.
        context: the context with which it was fitted.
        groups: (n,) the document of each validation example.
        seed: seed of the folds.
    """
    validation = context.validation
    assert validation is not None  # noqa: S101 - the caller checks it
    return _decidable(
        HeldOut(
            scores=np.asarray(learner.decision_function(validation.X)),
            Y=validation.Y,
            unknown=validation.unknown,
            folds=stratified_folds(validation.Y, N_FOLDS, seed=seed, groups=groups),
            tunable=_counts(validation.Y) >= N_FOLDS,
            source="validation",
        ),
        ~features.says_nothing(validation.X),
    )


class FoldScores:
    """Computes the score of each training example by features and a learner that were not fitted on it.

    For each fold of the training examples, features and a learner of the same kinds are fitted on the other
    folds: a document whose own terms are in the vocabulary, or whose labels chose the terms, does not get the
    scores that new documents get.

    A label can be tuned if it has as many positive examples as there are folds, and one in the training part
    of every fold. A document without a known word has no scores, because nothing is predicted for it.

    Args:
        features: the features, fitted on all examples.
        learner: the learner, fitted on all examples.
        raw: what the features of the g training examples are computed from.
        problem: what the learner was fitted on. Examples of one of its groups share a fold.
        seed: seed of the folds.
        monitor: called after every step of a fold's learner.
        resume: the snapshot to resume from; empty to start from the beginning.
    """

    def __init__(
        self,
        features: Features,
        learner: Learner,
        raw: RawValues,
        problem: Problem,
        *,
        seed: int,
        monitor: Callable[[FoldStep], None],
        resume: Mapping[str, AnyArray],
    ) -> None:
        self._features = features
        self._learner = learner
        self._raw = raw
        self._problem = problem
        self._seed = seed
        self._monitor = monitor
        self._resume = resume
        self._first_fold = int(resume["fold"]) if "fold" in resume else 0

    def run(self) -> HeldOut | None:
        """Return the held-out scores on the scale of the fitted learner.

        Returns:
            None if no label can be tuned on folds, there are too few different documents, or the features
            cannot be fitted without one of the folds.
        """
        Y, unknown = self._problem.Y, self._problem.context.unknown
        tunable = _counts(Y) >= N_FOLDS
        if not tunable.any():
            return None
        folds = stratified_folds(Y, N_FOLDS, seed=self._seed, groups=self._problem.groups)
        if len(np.unique(folds)) < N_FOLDS:  # there are fewer different documents than folds
            return None
        for fold in range(N_FOLDS):
            # A learner without a positive example of a label cannot score the label.
            tunable &= _counts(Y[folds != fold]) > 0
        state = _FoldState.of(self._resume, Y.shape)
        for fold in range(self._first_fold, N_FOLDS):
            if not self._score(fold, folds == fold, state):
                return None
        held_out = HeldOut(state.scores, Y, unknown, folds, tunable, "folds")
        known = held_out.known()
        fixed = self._learner.has_fixed_scale
        aligned = align(
            held_out,
            ScoreScale.of(np.asarray(self._learner.decision_function(self._problem.X)), known),
            tuple(ScoreScale(*scale) for scale in state.scales) if fixed else None,
        )
        return _decidable(aligned, state.says_something)

    def _score(self, fold: int, rows: Bools, state: _FoldState) -> bool:
        """Score the examples of a fold by features and a learner that are fitted on the others.

        Returns:
            whether the features can be fitted: the other folds may have no term within their limits.
        """
        training = ~rows
        Y, context = self._problem.Y[training], self._problem.context.where(training)
        features: Features = clone(self._features)
        try:
            X = features.fit_raw(self._raw.where(training), Y, context.unknown)
        except UnsuitableDataError:
            return False
        context = replace(context, features=features.names_, candidates=features.candidates_)
        problem = replace(self._problem.where(training, X), context=context)
        learner = self._train(fold, problem, state)
        held_out = features.values(self._raw.where(rows))
        state.scores[rows] = learner.decision_function(held_out)
        state.says_something[rows] = ~features.says_nothing(held_out)
        if self._learner.has_fixed_scale:
            known = None if context.unknown is None else context.unknown.toarray() == 0
            scale = ScoreScale.of(np.asarray(learner.decision_function(X)), known)
            state.scales[fold] = scale.center, scale.spread
        return True

    def _train(self, fold: int, problem: Problem, state: _FoldState) -> Learner:
        # The fold's learner keeps all labels, also those without a positive example, so that votes compare.
        learner: Learner = clone(self._learner)

        def report(step: Step, /) -> None:
            self._monitor(
                FoldStep(
                    completed=fold * step.total + step.completed,
                    total=N_FOLDS * step.total,
                    step=step,
                    state=lambda: {"fold": np.array(fold), **state.arrays()},
                )
            )

        interrupted = "fold" in self._resume and fold == self._first_fold
        resume = select_prefix("learner", self._resume) if interrupted else None
        learner.fit_problem(problem, monitor=report, resume=resume)
        return learner


@dataclass(frozen=True)
class _FoldState:
    """The results of the folds so far.

    Attributes:
        scores: (g, k) the held-out scores.
        says_something: (g,) whether the features, fitted without its fold, know something of each example.
        scales: (``N_FOLDS``, 2, k) mean and spread of the training scores of each fold's learner.
    """

    scores: Floats
    says_something: Bools
    scales: Floats

    @classmethod
    def of(cls, resume: Mapping[str, AnyArray], shape: tuple[int, int]) -> _FoldState:
        g, k = shape
        return cls(
            resume.get("held_out", np.zeros((g, k))).copy(),
            resume.get("says_something", np.ones(g, dtype=np.bool_)).copy(),
            resume.get("fold_scales", np.ones((N_FOLDS, 2, k))).copy(),
        )

    def arrays(self) -> State:
        return {
            "held_out": self.scores.copy(),
            "says_something": self.says_something.copy(),
            "fold_scales": self.scales.copy(),
        }


def _decidable(held_out: HeldOut, says_something: Bools) -> HeldOut | None:
    """Return the examples for which scores decide; None if a fold has none of them."""
    if not says_something.all():
        held_out = held_out.where(says_something)
        held_out = replace(held_out, tunable=held_out.tunable & (_counts(held_out.Y) >= N_FOLDS))
    return held_out if len(np.unique(held_out.folds)) == N_FOLDS else None


def _counts(Y: csr_array) -> Ints:
    """Return the number of positive examples of each label."""
    return np.bincount(Y.indices, minlength=Y.shape[1])
