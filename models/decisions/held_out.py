"""Held-out scores, on which decisions are tuned and probabilities are calibrated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from models.arrays import Bools, Floats, Ints, Labels

N_FOLDS = 3
"""Number of folds of held-out scores, and of positive examples that a label needs in order to be tuned."""

HeldOutSource: TypeAlias = Literal["folds", "validation", "test_then_train"]


@dataclass(frozen=True)
class HeldOut:
    """Scores of h examples by learners that were not trained on them, on the scale of the fitted learner.

    Attributes:
        scores: (h, k) the scores.
        Y: (h, k) the relevant labels of the examples.
        unknown: (h, k) their unknown labels; None if there are none.
        folds: (h,) the fold, 0 … ``N_FOLDS`` − 1, of each example. A learner that was trained on the other
            folds scored it. If the examples are validation examples, the fitted learner itself scored all of
            them, and the folds only serve to value a decision on examples on which it was not tuned.
        tunable: (k,) whether a label has enough positive examples for tuning.
        source: where the examples come from: folds of the training examples, validation examples, or either
            of them and examples of partial fits, each scored before it was learned.
    """

    scores: Floats
    Y: Labels
    unknown: Labels | None
    folds: Ints
    tunable: Bools
    source: HeldOutSource = "folds"

    def relevant(self) -> Bools:
        """Return whether each example has each label, (h, k)."""
        relevant: Bools = self.Y.toarray() != 0
        return relevant

    def known(self) -> Bools | None:
        """Return whether each label of each example is known, (h, k); None if all are."""
        return None if self.unknown is None else self.unknown.toarray() == 0

    def where(self, rows: Bools) -> HeldOut:
        """Return the examples that a mask, (h,), selects."""
        return replace(
            self,
            scores=self.scores[rows],
            Y=self.Y[rows],
            unknown=None if self.unknown is None else self.unknown[rows],
            folds=self.folds[rows],
        )


def rows_of(known: Bools | None, rows: Bools) -> Bools | None:
    """Return the rows of a mask, (h, k), that another mask, (h,), selects; None for None."""
    return None if known is None else known[rows]
