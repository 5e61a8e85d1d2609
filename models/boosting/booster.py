"""The base class of AdaBoost.MH and MP-Boost: training, and prediction with the final hypothesis."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from models.arrays import AnyArray, Floats, Ints, Labels, Matrix, Vector
from models.base import Context, LearnerParameters, Monitor, State, Step, ValidationSet
from models.base.pivots import Pivots
from models.base.weighted import WeightedLearner
from models.boosting.early_stopping import EarlyStoppingMonitor, draw_held_out
from models.boosting.hypothesis import Hypothesis, WeakHypothesis
from models.boosting.parameters import BoostingParameters, EarlyStopping
from models.boosting.pivot_history import PivotHistory
from models.boosting.stumps import Stumps, presence_stumps, threshold_stumps
from models.boosting.variants import BoostingVariant

_MAX_NAMED = 10  # labels in a warning


class Rounds(Protocol):
    """The state of a training between two rounds."""

    def choose_pivots(self) -> Ints | None:
        """The candidates for the next pivots; None if no candidate reduces Z."""
        ...

    def boost(self, pivots: Ints) -> tuple[WeakHypothesis, Floats]:
        """Take a round with these candidates as pivots.

        Returns:
            The weak hypothesis, and Z* for each pivot.
        """
        ...

    def stop(self, labels: Ints) -> None:
        """End the training of labels, if each label has its own pivot."""
        ...


class Booster(WeightedLearner):
    """Base class of AdaBoost.MH and MP-Boost.

    The pivots of the rounds so far determine the weights, and the weights determine the next pivot. So a
    snapshot contains these pivots only. A resumed training repeats the rounds without searching for pivots,
    and gets the same bits.

    The initial distribution D gives each example its share of the weights of all examples, so that an example
    of weight 2 is learned like two equal examples. The bound is then that of the weighted Hamming loss.

    Attributes:
        hypothesis_: the final hypothesis.
        pivot_history_: the pivots of each round.
    """

    parameters: ClassVar[type[LearnerParameters]] = BoostingParameters
    hypothesis_: Hypothesis
    pivot_history_: PivotHistory
    _pivot_per_label: bool

    def __init__(
        self,
        rounds: int = 200,
        variant: BoostingVariant = "real",
        smoothing: float | None = None,
        stump: str = "auto",
        bins: int | None = None,
        early_stopping: EarlyStopping | Mapping[str, Any] | None = None,
        random_state: int = 0,
    ) -> None:
        self.rounds = rounds
        self.variant = variant
        self.smoothing = smoothing
        self.stump = stump
        self.bins = bins
        self.early_stopping = early_stopping
        self.random_state = random_state

    @property
    def has_fixed_scale(self) -> bool:
        """Scores are sums over rounds, which grow as fast as the examples let them."""
        return False

    @property
    def uses_validation(self) -> bool:
        """Whether early stopping is on."""
        return self.early_stopping is not None

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """The pivots of a label that one example contains, and the contribution of each to the label's score.

        The contribution is Σ (a₁ − a₀): the score with the pivot minus the score without it. The sum of the
        contributions and of the score of an empty document is the example's score.
        """
        return self.hypothesis_.contributions(x, label)

    def _get_state(self) -> State:
        """The final hypothesis and the pivots of each round as named arrays."""
        return self.hypothesis_.state() | self.pivot_history_.state()

    def pivots(self, label: int | None, *, after: int, limit: int) -> Pivots:
        """The pivots of each round; see the base class."""
        return self.pivot_history_.select(self.hypothesis_, label, after, limit)

    def _set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Restores the state that ``get_state`` returned."""
        self.hypothesis_ = Hypothesis.from_state(state)
        self.pivot_history_ = PivotHistory.from_state(state, len(self.hypothesis_.labels))
        self.n_features_in_, self.n_labels_ = self.hypothesis_.shape
        return self

    def score_one(self, x: Vector) -> Floats:
        """The scores of one example; see the base class."""
        return self.hypothesis_.scores(x).ravel()

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
        by_presence = p.tests_presence(numeric_features=context.numeric_features)
        p.check_documents(numeric_features=context.numeric_features)
        stopping, weights = None, context.weights
        if p.early_stopping is not None:
            validation = context.validation
            if validation is None:
                held_out = draw_held_out(
                    Y, p.early_stopping.validation_fraction, self.random_state, context.groups
                )
                validation = ValidationSet(X[held_out], Y[held_out])
                X, Y = X[~held_out], Y[~held_out]
                weights = None if weights is None else weights[~held_out]
            stopping = EarlyStoppingMonitor(
                validation,
                p.early_stopping,
                by_presence=by_presence,
                per_label=self._pivot_per_label,
            )
        total = Y.shape[0] if weights is None else float(weights.sum())
        smoothing = p.smoothing or 1 / (total * Y.shape[1])
        shares = None if weights is None else weights / total
        stumps = presence_stumps(X) if by_presence else threshold_stumps(X, p.bins)
        rounds = self._rounds(stumps, Y, shares, p.variant, smoothing, context)
        hypotheses: list[WeakHypothesis] = []
        history: list[Ints] = list(resume["pivots"]) if resume is not None else []
        replayed = len(history)
        stopped_early: list[int] = []
        log_Z = np.zeros(self.n_labels_ if self._pivot_per_label else 1)
        for number in range(1, p.rounds + 1):
            pivots = history[number - 1] if number <= replayed else rounds.choose_pivots()
            if pivots is None:
                break
            hypothesis, Z = rounds.boost(pivots)
            hypotheses.append(hypothesis)
            log_Z[hypothesis.labels if self._pivot_per_label else [0]] += np.log(Z)
            measures = {"loss_bound": float(np.exp(log_Z).mean())}
            exhausted = np.zeros(0, dtype=np.int64)
            if stopping is not None and p.early_stopping is not None:
                measures[f"held_out_{p.early_stopping.metric}"], exhausted = stopping.update(hypothesis)
            if number > replayed:
                history.append(pivots)
                snapshot = partial(_snapshot, tuple(history))
                scores = partial(self._scores_so_far, hypotheses, by_presence)
                monitor(Step(number, p.rounds, "rounds", measures, snapshot, scores))
            if len(exhausted):
                stopped_early.extend(exhausted.tolist())
                if not self._pivot_per_label:
                    break
                rounds.stop(exhausted)
        if stopping is not None:
            hypotheses = stopping.truncate(hypotheses)
        self.hypothesis_ = Hypothesis.compressed(
            (X.shape[1], Y.shape[1]), hypotheses, by_presence=by_presence
        )
        self.pivot_history_ = PivotHistory.of(hypotheses)
        self.summary_.facts["rounds"] = len(history)
        self._note_pivots(hypotheses, context.features)
        taken = np.zeros(len(log_Z), dtype=np.int64)
        for pivots in history:
            taken += pivots >= 0
        self._warn_about_stops(p.rounds, taken, stopped_early, context.labels)

    def _scores_so_far(self, hypotheses: list[WeakHypothesis], by_presence: bool, X: Matrix) -> Floats:
        shape = (self.n_features_in_, self.n_labels_)
        return Hypothesis.compressed(shape, hypotheses, by_presence=by_presence).scores(X)

    @abstractmethod
    def _rounds(
        self,
        stumps: Stumps,
        Y: Labels,
        shares: Floats | None,
        variant: BoostingVariant,
        smoothing: float,
        context: Context,
    ) -> Rounds:
        """The state of a training before its first round.

        Args:
            stumps: the candidates.
            Y: (g, k) relevant labels.
            shares: (g,) weight of each example, divided by the sum of the weights; None if all are equal.
            variant: the variant.
            smoothing: ε of equation 4.
            context: contains the features that a label may use.
        """

    @abstractmethod
    def _note_pivots(self, hypotheses: Sequence[WeakHypothesis], features: Sequence[str] | None) -> None:
        """Add the numbers of table 1 and other facts about the pivots to ``summary_``.

        Args:
            hypotheses: the weak hypothesis of each round.
            features: names of the features.
        """

    def _warn_about_stops(
        self, rounds: int, taken: Ints, stopped_early: list[int], names: Sequence[str] | None
    ) -> None:
        """Add warnings about searches for pivots that ended before the last round.

        Args:
            rounds: the parameter.
            taken: (searches,) rounds of each search.
            stopped_early: labels that ended by early stopping.
            names: names of the labels.
        """
        ended = np.flatnonzero(taken < rounds)
        by_early_stopping = (
            np.isin(ended, stopped_early)
            if self._pivot_per_label
            else np.full(len(ended), bool(stopped_early))
        )
        for searches, reason in (
            (ended[by_early_stopping], "the metric on the held-out examples stopped improving"),
            (ended[~by_early_stopping], "no feature can reduce the training loss any further"),
        ):
            if not len(searches):
                continue
            if not self._pivot_per_label:
                self.summary_.warnings.append(
                    f"training stopped after {taken[0]} of {rounds} rounds: {reason}"
                )
                continue
            named = [str(label) if names is None else names[label] for label in searches.tolist()]
            shown = ", ".join(named[:_MAX_NAMED]) + (", …" if len(named) > _MAX_NAMED else "")
            self.summary_.warnings.append(
                f"{len(named)} labels stopped after {taken[searches].min()} to {taken[searches].max()} of "
                f"{rounds} rounds: {reason} ({shown})"
            )


def _snapshot(history: tuple[Ints, ...]) -> State:
    return {"pivots": np.array(history)}
