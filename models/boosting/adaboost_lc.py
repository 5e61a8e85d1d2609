"""AdaBoost.LC: boosting for a covering of the labels.

Amit, Dekel & Singer, "A boosting algorithm for label covering in multilabel problems", figure 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from models.arrays import AnyArray, Floats, Ints, Labels, Matrix
from models.base import Context, Learner, LearnerParameters, Monitor, State, Step
from models.boosting.covering import Covering, HammingCovering
from models.boosting.covering_weights import CoveringProblem
from models.boosting.templates import InfiniteWeightError, Templates, TemplateSpelling
from models.errors import ParameterError
from models.serialization.state import read_array


class AdaBoostLCParameters(LearnerParameters):
    """Boosting of the covering loss (Amit, Dekel & Singer, figure 2)."""

    algorithm: Literal["adaboost_lc"]
    rounds: Annotated[int, Field(ge=1, le=100_000)] = 50
    """Boosting rounds T."""
    covering: Covering = HammingCovering(kind="hamming")
    """How mistakes are counted, and so what is minimised."""
    template: TemplateSpelling = "parallel"
    """Which features a round updates together: all of them (parallel), the best one for each label
    (sequential), or the best for each label of these groups of feature names."""
    smoothing: Annotated[float, Field(ge=0, le=1e9)] | None = None
    """Added to W₊ and W₋ in d. If left out, 1e-4 times the mean of W₊ + W₋ over the pairs of feature and
    label where it is positive, anew each round."""


class AdaBoostLC(Learner):
    """Boosting with a covering of the labels: the training decides which mistakes count together.

    The score of label l is the sum over features j of α(j, l) h_j(x), where h_j(x) is x_j divided by the
    largest absolute value in the training part. Each round weighs the examples by their share of the
    covering loss, sums the weights that speak for and against every pair of feature and label, and moves
    α by a template of features along d = ½ ln(W₊/W₋) (figure 2). Every round lowers the training loss, by
    eq. 8 at least.

    A round costs two sparse-dense products, X α and Xᵀ q, and little more: relevant labels are few, so that
    W₊ and W₋ come apart for the price of one product. Beyond X, α and W a training holds the features of each
    example once for each of its labels (up to 3 GiB; where that is not enough they are gathered anew each
    round, which costs about a quarter of a product more) and a block of scores, never all scores.

    Args:
        rounds: boosting rounds T.
        covering: a covering or its JSON spelling; None for ``{"kind": "hamming"}``. The label names in it
            are those of ``context.labels``, or ``"0"``, ``"1"``, ... without a context.
        template: ``"parallel"``, ``"sequential"`` or groups of feature names (of ``context.features``, or
            ``"0"``, ``"1"``, ...).
        smoothing: added to W₊ and W₋ in d; None for 1e-4 times the mean of W₊ + W₋ over the pairs where it
            is positive, anew each round.

    Attributes:
        coef_: (r, k) α(j, l) over the scale of h, so that scores are X times it.

    >>> X = [[1, 0], [1, 0], [0, 1], [1, 1]]
    >>> Y = [[1, 0], [1, 0], [0, 1], [1, 1]]
    >>> AdaBoostLC(rounds=10, covering={"kind": "zero_one"}).fit(X, Y).predict([[1, 0], [0, 1]])
    array([[1, 0],
           [0, 1]])
    """

    parameters: ClassVar[type[LearnerParameters]] = AdaBoostLCParameters
    algorithm: ClassVar[str] = "adaboost_lc"

    coef_: Floats

    def __init__(
        self,
        rounds: int = 50,
        covering: Any = None,
        template: str | Sequence[Sequence[str]] = "parallel",
        smoothing: float | None = None,
    ) -> None:
        self.rounds = rounds
        self.covering = covering
        self.template = template
        self.smoothing = smoothing

    def validated_parameters(self) -> AdaBoostLCParameters:
        """The parameters, checked; a covering of None is the Hamming covering.

        Raises:
            ParameterError: a parameter is of the wrong type or out of range.
        """
        if self.covering is None:
            given = {**self.get_params(deep=False), "covering": HammingCovering(kind="hamming")}
            return type(self)(**given).validated_parameters()
        parameters: AdaBoostLCParameters = super().validated_parameters()
        return parameters

    def _fit(
        self,
        X: Matrix,
        Y: Labels,
        parameters: AdaBoostLCParameters,
        context: Context,
        monitor: Monitor,
        resume: State | None,
    ) -> None:
        labels = _names(context.labels, Y.shape[1])
        features = _names(context.features, X.shape[1])
        parallel = parameters.template == "parallel"
        problem = CoveringProblem(X, Y, parameters.covering.compile(labels), join_twins=parallel)
        templates = Templates.of(parameters.template, X, features, problem.columns, problem.scale)
        weights = np.zeros((len(problem.columns.first), Y.shape[1]))
        completed = 0
        if resume is not None:
            weights[...] = resume["coef"][problem.columns.first]
            completed = int(resume["completed"][0])

        def snapshot() -> State:
            return {
                "coef": problem.columns.spread(weights),
                "completed": np.array([completed], dtype=np.int64),
            }

        def scores(X: Matrix) -> Floats:
            return np.asarray(X @ problem.columns.spread(weights))

        found = problem.weigh(weights)
        try:
            while completed < parameters.rounds:
                try:
                    changed = templates.advance(weights, found, parameters.smoothing)
                except InfiniteWeightError as error:
                    feature = features[problem.columns.first[error.column]]
                    raise _infinite(feature, labels[error.label]) from None
                if not changed:
                    self.summary_.warnings.append(
                        f"training stopped after {completed} of {parameters.rounds} rounds: "
                        "no feature speaks for or against a label any more"
                    )
                    break
                found = problem.weigh(weights)
                completed += 1
                measures = {"covering_loss": found.loss, "covering_error": found.error}
                monitor(Step(completed, parameters.rounds, "rounds", measures, snapshot, scores))
        finally:
            self.coef_ = problem.columns.spread(weights)
            self.summary_.facts.update(
                rounds=completed,
                covering_loss=found.loss,
                covering_error=found.error,
                distinct_features=int(self.coef_.any(axis=1).sum()),
            )

    def _scores(self, X: Matrix) -> Floats:
        return np.asarray(X @ self.coef_)

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """The features of one example and what each adds to a label's score; their sum is the score."""
        weights = x.data * self.coef_[x.indices, label]
        counts = weights != 0
        return x.indices[counts].astype(np.int64), weights[counts]

    def get_state(self) -> State:
        """The fitted state: ``coef``, (r, k)."""
        return {"coef": self.coef_}

    def set_state(self, state: Mapping[str, AnyArray]) -> AdaBoostLC:
        """Become the fitted learner whose ``get_state`` this was."""
        self.coef_ = read_array(state, "coef", "float64", (None, None))
        self.n_features_in_, self.n_labels_ = self.coef_.shape
        return self


def _infinite(feature: str, label: str) -> ParameterError:
    return ParameterError(
        f"without smoothing, feature {feature!r} gets an infinite weight for label {label!r}: "
        "all its training examples speak for the label, or all against it; give a smoothing above 0",
        "/learner/smoothing",
    )


def _names(given: Sequence[str] | None, count: int) -> Sequence[str]:
    return [str(index) for index in range(count)] if given is None else given
