"""What AdaBoost.MH and MP-Boost share: the course of a training, and the committee that comes out of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from models.arrays import AnyArray, Floats, Ints, Labels, Matrix
from models.base import Context, Learner, LearnerParameters, Monitor, State, Step
from models.boosting.hypothesis import Hypothesis, Rule
from models.boosting.parameters import BoostingParameters, EarlyStopping
from models.boosting.stopping import Judge, held_out
from models.boosting.stumps import Stumps, presence_stumps, threshold_stumps
from models.boosting.variants import Variant

_NAMED = 10  # labels that a warning names


class Rounds(Protocol):
    """A training between two rounds."""

    def choose(self) -> Ints | None:
        """The candidates to be the next pivots; None where none reduces Z."""
        ...

    def take(self, pivots: Ints) -> tuple[Rule, Floats]:
        """Make the candidates this round's pivots: the weak hypothesis, and Z* of each search."""
        ...

    def rest(self, labels: Ints) -> None:
        """Let labels learn no more, where labels learn alone."""
        ...


class Booster(Learner):
    """Base of the boosting learners.

    Every candidate is weighed on the weights themselves, and these follow from the pivots of the rounds so
    far; so a snapshot is those pivots alone, and a resumed training takes them again, without searching, to
    the same bits.

    Attributes:
        hypothesis_: the final hypothesis.
    """

    parameters: ClassVar[type[LearnerParameters]] = BoostingParameters
    hypothesis_: Hypothesis
    _each_label_alone: bool

    def __init__(
        self,
        rounds: int = 200,
        variant: Variant = "real",
        smoothing: float | None = None,
        stump: str = "auto",
        early_stopping: EarlyStopping | Mapping[str, Any] | None = None,
        random_state: int = 0,
    ) -> None:
        self.rounds = rounds
        self.variant = variant
        self.smoothing = smoothing
        self.stump = stump
        self.early_stopping = early_stopping
        self.random_state = random_state

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """The pivots of a label that one example contains, and what each adds to the label's score.

        That is Σ (a₁ − a₀): the score with the pivot against the score without it. Together with the score
        of an empty document they add up to the example's score.
        """
        return self.hypothesis_.added(x, label)

    def get_state(self) -> State:
        """The final hypothesis as named arrays."""
        return self.hypothesis_.state()

    def set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Become the fitted learner whose ``get_state`` this was."""
        self.hypothesis_ = Hypothesis.from_state(state)
        self.n_features_in_, self.n_labels_ = self.hypothesis_.shape
        return self

    def _scores(self, X: Matrix) -> Floats:
        return self.hypothesis_.scores(X)

    def _fit(
        self,
        X: Matrix,
        Y: Labels,
        parameters: Any,
        context: Context,
        monitor: Monitor,
        resume: State | None,
    ) -> None:
        p: BoostingParameters = parameters
        by_presence = p.stump == "presence" or (p.stump == "auto" and not context.numeric_features)
        judge = None
        if p.early_stopping is not None:
            out = held_out(Y, p.early_stopping.validation_fraction, self.random_state)
            judge = Judge(
                X[out], Y[out], p.early_stopping, by_presence=by_presence, alone=self._each_label_alone
            )
            X, Y = X[~out], Y[~out]
        smoothing = p.smoothing or 1 / (Y.shape[0] * Y.shape[1])
        stumps = presence_stumps(X) if by_presence else threshold_stumps(X)
        rounds = self._rounds(stumps, Y, p.variant, smoothing, context)
        rules: list[Rule] = []
        history: list[Ints] = list(resume["pivots"]) if resume is not None else []
        replayed = len(history)
        satisfied: list[int] = []
        log_Z = np.zeros(self.n_labels_ if self._each_label_alone else 1)
        for number in range(1, p.rounds + 1):
            pivots = history[number - 1] if number <= replayed else rounds.choose()
            if pivots is None:
                break
            rule, Z = rounds.take(pivots)
            rules.append(rule)
            log_Z[rule.labels if self._each_label_alone else [0]] += np.log(Z)
            measures = {"loss_bound": float(np.exp(log_Z).mean())}
            tired = np.zeros(0, dtype=np.int64)
            if judge is not None and p.early_stopping is not None:
                measures[f"held_out_{p.early_stopping.metric}"], tired = judge.judge(rule)
            if number > replayed:
                history.append(pivots)
                snapshot = partial(_snapshot, tuple(history))
                scores = partial(self._scores_so_far, rules, by_presence)
                monitor(Step(number, p.rounds, "rounds", measures, snapshot, scores))
            if len(tired):
                satisfied.extend(tired.tolist())
                if not self._each_label_alone:
                    break
                rounds.rest(tired)
        if judge is not None:
            rules = judge.kept(rules)
        self.hypothesis_ = Hypothesis.compressed((X.shape[1], Y.shape[1]), rules, by_presence=by_presence)
        self.summary_.facts["rounds"] = len(history)
        self._note_pivots(rules, context.features)
        taken = np.zeros(len(log_Z), dtype=np.int64)
        for pivots in history:
            taken += pivots >= 0
        self._note_stops(p.rounds, taken, satisfied, context.labels)

    def _scores_so_far(self, rules: list[Rule], by_presence: bool, X: Matrix) -> Floats:
        shape = (self.n_features_in_, self.n_labels_)
        return Hypothesis.compressed(shape, rules, by_presence=by_presence).scores(X)

    @abstractmethod
    def _rounds(
        self, stumps: Stumps, Y: Labels, variant: Variant, smoothing: float, context: Context
    ) -> Rounds:
        """A training before its first round."""

    @abstractmethod
    def _note_pivots(self, rules: Sequence[Rule], features: Sequence[str] | None) -> None:
        """Note the numbers of table 1, and what there is to tell of the pivots.

        Args:
            rules: the weak hypotheses, by round.
            features: the features' names.
        """

    def _note_stops(self, asked: int, taken: Ints, satisfied: list[int], names: Sequence[str] | None) -> None:
        """Note who stopped before the last round, and why.

        Args:
            asked: rounds asked for.
            taken: (searches,) rounds taken.
            satisfied: labels that stopped because held-out examples gained no more.
            names: the labels' names.
        """
        early = np.flatnonzero(taken < asked)
        by_choice = (
            np.isin(early, satisfied) if self._each_label_alone else np.full(len(early), bool(satisfied))
        )
        for searches, why in (
            (early[by_choice], "held-out examples gained no more"),
            (early[~by_choice], "no feature can reduce the training loss any further"),
        ):
            if not len(searches):
                continue
            if not self._each_label_alone:
                self.summary_.warnings.append(f"training stopped after {taken[0]} of {asked} rounds: {why}")
                continue
            named = [str(label) if names is None else names[label] for label in searches.tolist()]
            shown = ", ".join(named[:_NAMED]) + (", …" if len(named) > _NAMED else "")
            self.summary_.warnings.append(
                f"{len(named)} labels stopped after {taken[searches].min()} to {taken[searches].max()} of "
                f"{asked} rounds: {why} ({shown})"
            )


def _snapshot(history: tuple[Ints, ...]) -> State:
    return {"pivots": np.array(history)}
