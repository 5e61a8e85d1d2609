"""AdaBoost.LC: boosting for a covering of the labels.

Amit, Dekel & Singer, "A boosting algorithm for label covering in multilabel problems", figure 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from models.arrays import AnyArray, Floats, Ints, Matrix, Vector
from models.base import Learner, LearnerParameters, Problem, State, Training
from models.base.abilities import Explaining
from models.base.products import product
from models.boosting.templates import InfiniteWeightError, TemplateParameter, Templates
from models.boosting.weight_sums import CoveringTrainingSet
from models.covering import Covering, HammingCovering
from models.errors import ParameterError
from models.serialization.state import read_array


class AdaBoostLCParameters(LearnerParameters):
    """Boosting of the covering loss (Amit, Dekel & Singer, figure 2)."""

    algorithm: Literal["adaboost_lc"]
    rounds: Annotated[int, Field(ge=1, le=100_000)] = 50
    """Boosting rounds T."""
    covering: Covering = HammingCovering(kind="hamming")
    """How mistakes are counted. The training minimises the loss of this covering."""
    template: TemplateParameter = "parallel"
    """Which features a round updates together: all of them (`parallel`), the best feature for each label
    (`sequential`), or for each label the best template of a list. A template is an array of feature names,
    whose entries b are equal, or an object that gives each feature its entry, such as
    `{"red": 1.0, "blue": 0.5}`. Only the proportions of entries matter: they are scaled so that Σ b |h(x)| is
    at most 1 for every training example, and 1 for one of them."""
    smoothing: Annotated[float, Field(ge=0, le=1e9)] | None = None
    """Added to W₊ and W₋ in d. By default, 1e-4 times the mean of W₊ + W₋ over the pairs of feature and
    label in which it is positive, computed in each round."""

    def training_covering(self) -> Covering:
        """Return the covering whose loss the training minimizes."""
        return self.covering


class AdaBoostLC(Learner, Explaining):
    """Boosting for a covering of the labels: the covering states which mistakes count together.

    The score of label l is the sum over features j of α(j, l) h_j(x), where h_j(x) is x_j divided by the
    largest absolute value in the training part. In each round, an example's weight is its share of the
    covering loss. For every pair of feature and label, W₊ sums the weights for the label and W₋ the weights
    against it. Then α changes along d = ½ ln(W₊/W₋) for the features of a template (figure 2). Every round
    lowers the training loss at least by the bound of eq. 8.

    A round costs two sparse-dense products, X α and Xᵀ q, and little more, because relevant labels are few.
    In addition to X, α and W, a training stores a block of scores, and the features of each example once for
    each of its labels. These features take at most 3 GiB: if they need more, each round gathers them again,
    which costs about a quarter of a product.

    Coverings and templates use the names of labels and features in the context; without them, these are
    called "0", "1", ...

    Attributes:
        coef_: (r, k) α(j, l) over the scale of h, so that the scores are X times it.

    >>> X = [[1, 0], [1, 0], [0, 1], [1, 1]]
    >>> Y = [[1, 0], [1, 0], [0, 1], [1, 1]]
    >>> AdaBoostLC(rounds=10, covering={"kind": "zero_one"}).fit(X, Y).predict([[1, 0], [0, 1]])
    array([[1, 0],
           [0, 1]])
    """

    parameters: ClassVar[type[LearnerParameters]] = AdaBoostLCParameters
    algorithm: ClassVar[str] = "adaboost_lc"

    coef_: Floats

    def _training(self, problem: Problem, parameters: AdaBoostLCParameters) -> CoveringRounds:
        return CoveringRounds(self, problem, parameters)

    def score_one(self, x: Vector) -> Floats:
        """Return the scores of one example; see the base class."""
        return self._scores(x).ravel()

    def _scores(self, X: Matrix | Vector) -> Floats:
        return product(X, self.coef_)

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """The features of one example and what each adds to a label's score; their sum is the score."""
        contributions = x.data * self.coef_[x.indices, label]
        nonzero = contributions != 0
        return x.indices[nonzero].astype(np.int64), contributions[nonzero]

    def _get_state(self) -> State:
        """The fitted state: ``coef``, (r, k)."""
        return {"coef": self.coef_}

    def _set_state(self, state: Mapping[str, AnyArray]) -> AdaBoostLC:
        """Restores the state that ``get_state`` returned."""
        self.coef_ = read_array(state, "coef", "float64", (None, None))
        self.n_features_in_, self.n_labels_ = self.coef_.shape
        return self


class CoveringRounds(Training):
    """The rounds of figure 2."""

    unit: ClassVar[str] = "rounds"

    def __init__(self, learner: AdaBoostLC, problem: Problem, parameters: AdaBoostLCParameters) -> None:
        X, Y, context = problem.X, problem.Y, problem.context
        super().__init__(parameters.rounds)
        self._learner = learner
        self._smoothing = parameters.smoothing
        self._labels = _names(context.labels, Y.shape[1])
        self._features = _names(context.features, X.shape[1])
        parallel = parameters.template == "parallel"
        covering = parameters.covering.compile(self._labels)
        self._set = CoveringTrainingSet(X, Y, covering, merge_equal=parallel)
        columns = self._columns = self._set.columns
        self._templates = Templates.of(parameters.template, X, self._features, columns, self._set.scale)
        self._weights = np.zeros((len(columns.first_feature), Y.shape[1]))
        self._sums = self._set.sums(self._weights)

    @override
    def advance(self) -> Mapping[str, float] | None:
        try:
            changed = self._templates.update(self._weights, self._sums, self._smoothing)
        except InfiniteWeightError as error:
            feature = self._features[self._columns.first_feature[error.column]]
            raise _infinite_weight(feature, self._labels[error.label]) from None
        if not changed:
            self._learner.summary_.warnings.append(
                f"training stopped after {self.completed} of {self.total} rounds: "
                "another round would change no weight"
            )
            return None
        self._sums = self._set.sums(self._weights)
        self.completed += 1
        return {"covering_loss": self._sums.loss, "covering_error": self._sums.error}

    @override
    def arrays(self) -> State:
        return {"coef": self._columns.expand(self._weights)}

    @override
    def restore(self, arrays: State) -> None:
        self._weights[...] = arrays["coef"][self._columns.first_feature]
        self._sums = self._set.sums(self._weights)

    @override
    def scores(self) -> Callable[[Matrix], Floats]:
        return lambda X: np.asarray(X @ self._columns.expand(self._weights))

    @override
    def finish(self) -> None:
        learner = self._learner
        learner.coef_ = self._columns.expand(self._weights)
        learner.summary_.facts.update(
            rounds=self.completed,
            covering_loss=self._sums.loss,
            covering_error=self._sums.error,
            distinct_features=int(learner.coef_.any(axis=1).sum()),
        )


def _infinite_weight(feature: str, label: str) -> ParameterError:
    return ParameterError(
        f"without smoothing, the weight of feature {feature!r} for label {label!r} is infinite, because the "
        "feature occurs only with the label or only without it; give a smoothing above 0",
        "/learner/smoothing",
    )


def _names(names: Sequence[str] | None, count: int) -> Sequence[str]:
    return [str(index) for index in range(count)] if names is None else names
