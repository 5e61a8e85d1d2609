"""The base class of AdaBoost.MH and MP-Boost: training, and prediction with the final hypothesis."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from typing_extensions import override

from models.arrays import AnyArray, Floats, Ints, Labels, Matrix, Vector
from models.base import Context, LearnerParameters, Problem, State, Training, ValidationSet
from models.base.abilities import Explaining, WithPivots
from models.base.pivots import Pivots
from models.base.weighted import WeightedLearner
from models.boosting.early_stopping import EarlyStoppingMonitor, draw_held_out
from models.boosting.hypothesis import Hypothesis, WeakHypothesis
from models.boosting.parameters import BoostingParameters
from models.boosting.pivot_history import PivotHistory
from models.boosting.rounds import Rounds
from models.boosting.stumps import Stumps, presence_stumps, threshold_stumps
from models.boosting.variants import BoostingVariant

_MAX_NAMED = 10  # labels in a warning


class Booster(WeightedLearner, Explaining, WithPivots):
    """Base class of AdaBoost.MH and MP-Boost.

    The initial distribution D gives each example its share of the weights of all examples, so that an example
    of weight 2 is learned like two equal examples. The bound is then that of the weighted Hamming loss.

    Attributes:
        hypothesis_: the final hypothesis.
        pivot_history_: the pivots of each round.
    """

    parameters: ClassVar[type[LearnerParameters]] = BoostingParameters
    randomized: ClassVar[bool] = True
    hypothesis_: Hypothesis
    pivot_history_: PivotHistory
    pivot_per_label: ClassVar[bool]
    """Whether each label has pivots of its own."""

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

    def _training(self, problem: Problem, parameters: Any) -> BoostingRounds:
        return BoostingRounds(self, problem, parameters)

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


class BoostingRounds(Training):
    """The rounds of a training.

    The pivots of the rounds so far determine the weights, and the weights determine the next pivot. So they
    are all that a training continues from: it repeats the rounds without searching for pivots, and gets the
    same bits.
    """

    unit: ClassVar[str] = "rounds"

    def __init__(self, learner: Booster, problem: Problem, parameters: BoostingParameters) -> None:
        super().__init__(parameters.rounds)
        context = problem.context
        self._learner = learner
        self._context = context
        self._by_presence = parameters.tests_presence(numeric_features=context.numeric_features)
        parameters.check_documents(numeric_features=context.numeric_features)
        self._stopping: EarlyStoppingMonitor | None = None
        if (early := parameters.early_stopping) is not None:
            validation = context.validation
            if validation is None:
                held_out = draw_held_out(
                    problem.Y, early.validation_fraction, learner.random_state, problem.groups
                )
                validation = ValidationSet(problem.X[held_out], problem.Y[held_out])
                problem = problem.where(~held_out)
            self._stopping = EarlyStoppingMonitor(
                validation, early, by_presence=self._by_presence, per_label=learner.pivot_per_label
            )
        X, Y, weights = problem.X, problem.Y, problem.weights
        self._shape = X.shape[1], Y.shape[1]
        total = Y.shape[0] if weights is None else float(weights.sum())
        smoothing = parameters.smoothing or 1 / (total * Y.shape[1])
        shares = None if weights is None else weights / total
        stumps = presence_stumps(X) if self._by_presence else threshold_stumps(X, parameters.bins)
        self._rounds = learner._rounds(  # noqa: SLF001 - a part of the learner
            stumps, Y, shares, parameters.variant, smoothing, context
        )
        self._hypotheses: list[WeakHypothesis] = []
        self._pivots: list[Ints] = []
        self._log_Z = np.zeros(Y.shape[1] if learner.pivot_per_label else 1)
        self._exhausted: list[int] = []

    @override
    def advance(self) -> Mapping[str, float] | None:
        if self._exhausted and not self._learner.pivot_per_label:
            return None
        pivots = self._rounds.choose_pivots()
        return None if pivots is None else self._boost(pivots)

    def _boost(self, pivots: Ints) -> dict[str, float]:
        """Take a round with these pivots, and return its measures."""
        hypothesis, Z = self._rounds.boost(pivots)
        self._pivots.append(pivots)
        self._hypotheses.append(hypothesis)
        self.completed = len(self._pivots)
        self._log_Z[hypothesis.labels if self._learner.pivot_per_label else [0]] += np.log(Z)
        measures = {"loss_bound": float(np.exp(self._log_Z).mean())}
        if self._stopping is not None:
            metric, exhausted = self._stopping.update(hypothesis)
            measures[f"held_out_{self._stopping.metric}"] = metric
            self._exhausted += exhausted.tolist()
            if len(exhausted) and self._learner.pivot_per_label:
                self._rounds.stop(exhausted)
        return measures

    @override
    def arrays(self) -> State:
        return {"pivots": np.array(self._pivots)}

    @override
    def restore(self, arrays: State) -> None:
        for pivots in arrays["pivots"]:
            self._boost(pivots)

    @override
    def scores(self) -> Callable[[Matrix], Floats]:
        return lambda X: self._compressed(self._hypotheses).scores(X)

    def _compressed(self, hypotheses: list[WeakHypothesis]) -> Hypothesis:
        return Hypothesis.compressed(self._shape, hypotheses, by_presence=self._by_presence)

    @override
    def finish(self) -> None:
        learner, context, hypotheses = self._learner, self._context, self._hypotheses
        if self._stopping is not None:
            hypotheses = self._stopping.truncate(hypotheses)
        learner.hypothesis_ = self._compressed(hypotheses)
        learner.pivot_history_ = PivotHistory.of(hypotheses)
        learner.summary_.facts["rounds"] = len(self._pivots)
        learner._note_pivots(hypotheses, context.features)  # noqa: SLF001 - a part of the learner
        taken = np.zeros(len(self._log_Z), dtype=np.int64)
        for pivots in self._pivots:
            taken += pivots >= 0
        self._warn_about_stops(taken)

    def _warn_about_stops(self, taken: Ints) -> None:
        """Add warnings about searches for pivots that ended early, after (searches,) rounds each."""
        names, per_label = self._context.labels, self._learner.pivot_per_label
        ended = np.flatnonzero(taken < self.total)
        by_early_stopping = (
            np.isin(ended, self._exhausted) if per_label else np.full(len(ended), bool(self._exhausted))
        )
        for searches, reason in (
            (ended[by_early_stopping], "the metric on the held-out examples stopped improving"),
            (ended[~by_early_stopping], "no feature can reduce the training loss any further"),
        ):
            if not len(searches):
                continue
            warnings = self._learner.summary_.warnings
            if not per_label:
                warnings.append(f"training stopped after {taken[0]} of {self.total} rounds: {reason}")
                continue
            named = [str(label) if names is None else names[label] for label in searches.tolist()]
            shown = ", ".join(named[:_MAX_NAMED]) + (", …" if len(named) > _MAX_NAMED else "")
            warnings.append(
                f"{len(named)} labels stopped after {taken[searches].min()} to {taken[searches].max()} of "
                f"{self.total} rounds: {reason} ({shown})"
            )
