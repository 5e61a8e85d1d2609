"""AdaBoost.LC: boosting for a covering of the labels.

Amit, Dekel & Singer, "A boosting algorithm for label covering in multilabel problems", figure 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array

from models.arrays import AnyArray, Floats, Ints, Labels, Matrix
from models.boosting.covering import CompiledCovering, Covering, HammingCovering, Piece
from models.boosting.templates import Templates, TemplateSpelling
from models.errors import ParameterError
from models.learner import Context, Learner, LearnerParameters, Monitor, State, Step

_BLOCK = 8_388_608
"""Scores (examples times labels) held at once: 64 MiB."""

_SMOOTHING = 1e-4
"""Default smoothing, as a share of the mean of W₊ + W₋ where it is positive."""


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
    smoothing: Annotated[float, Field(ge=0)] | None = None
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
    W₊ and W₋ come apart for the price of one product. Memory beyond X, α and W is a block of examples.

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

    def validated(self) -> AdaBoostLCParameters:
        """The parameters, checked; a covering of None is the Hamming covering.

        Raises:
            ParameterError: a parameter is of the wrong type or out of range.
        """
        if self.covering is None:
            given = {**self.get_params(deep=False), "covering": HammingCovering(kind="hamming")}
            return type(self)(**given).validated()
        parameters: AdaBoostLCParameters = super().validated()
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
        problem = _Problem(X, Y, parameters.covering.compile(labels))
        templates = Templates.of(parameters.template, X, features, problem.scale)
        self.coef_ = np.zeros((X.shape[1], Y.shape[1]))
        completed = 0
        if resume is not None:
            self.coef_[...] = resume["coef"]
            completed = int(resume["completed"][0])
        state = problem.evaluate(self.coef_)
        while completed < parameters.rounds:
            d = _step(state, parameters.smoothing)
            change = templates.update(state.agree, state.differ, d, state.total)
            _refuse_infinite(change, features, labels)
            if not change.any():
                self.notes_.warnings.append(
                    f"training stopped after {completed} of {parameters.rounds} rounds: "
                    "no feature speaks for or against a label any more"
                )
                break
            change /= problem.scale
            self.coef_ += change
            state = problem.evaluate(self.coef_)
            completed += 1
            monitor(
                Step(
                    completed,
                    parameters.rounds,
                    "rounds",
                    {"covering_loss": state.loss, "covering_error": state.error},
                    self._snapshot(completed),
                )
            )
        self.notes_.facts.update(
            rounds=completed,
            covering_loss=state.loss,
            covering_error=state.error,
            distinct_features=int(self.coef_.any(axis=1).sum()),
        )

    def _snapshot(self, completed: int) -> Any:
        return lambda: {"coef": self.coef_.copy(), "completed": np.array([completed], dtype=np.int64)}

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
        self.coef_ = state["coef"]
        self.n_features_in_, self.n_labels_ = self.coef_.shape
        return self


@dataclass(frozen=True)
class _Weights:
    """What figure 2 asks of the training examples at some α.

    Attributes:
        agree: (r, k) W₊.
        differ: (r, k) W₋.
        total: (k,) sum of the weights q of each label over examples and elements.
        loss: mean covering loss.
        error: mean covering error.
    """

    agree: Floats
    differ: Floats
    total: Floats
    loss: float
    error: float


class _Problem:
    """The training examples, ready to be weighed again and again.

    Args:
        X: (g, r) features.
        Y: (g, k) label sets.
        covering: compiled for the labels.

    Attributes:
        scale: the largest absolute feature value, which h divides by.
    """

    def __init__(self, X: Matrix, Y: Labels, covering: CompiledCovering) -> None:
        self.X = X
        self.Y = Y
        self.scale = float(np.abs(X.data).max()) if X.nnz else 1.0
        self.signed = bool(X.nnz and X.data.min() < 0)
        # A product with a block writes (r, k) sums: blocks grow with them, so that they stay a small part.
        size = max(_BLOCK, X.shape[1] * Y.shape[1]) // Y.shape[1]
        self.blocks: list[tuple[slice, slice, list[Piece]]] = [
            (
                slice(a, a + size),
                slice(int(Y.indptr[a]), int(Y.indptr[min(a + size, Y.shape[0])])),
                covering.pieces(Y[a : a + size]),
            )
            for a in range(0, Y.shape[0], size)
        ]

    def evaluate(self, coef: Floats) -> _Weights:
        """The sums of figure 2, the loss and the error under scores X times ``coef``."""
        r, k = coef.shape
        width = 2 * r if self.signed else r
        negatives = np.zeros((width, k))
        positives = np.zeros((width, k))
        total = np.zeros(k)
        loss = error = 0.0
        for rows, entries, pieces in self.blocks:
            block = self.X[rows]
            q = block @ coef
            q_positive = np.empty(entries.stop - entries.start)
            for piece in pieces:
                found = piece.evaluate(q[piece.rows])
                q[piece.rows] = found.negatives
                q_positive[piece.positions] = found.positives
                loss += found.loss.sum()
                error += found.error.sum()
            folded = _fold(block) if self.signed else block
            negatives += folded.T @ q
            labels = self.Y[rows]
            part = (
                folded.T @ csr_array((q_positive, labels.indices, labels.indptr), shape=labels.shape)
            ).tocoo()
            positives[part.row, part.col] += part.data
            total += q.sum(axis=0) + np.bincount(labels.indices, weights=q_positive, minlength=k)
        if self.signed:
            agree = positives[:r] + negatives[r:]
            differ = negatives[:r] + positives[r:]
        else:
            agree, differ = positives, negatives
        agree /= self.scale
        differ /= self.scale
        n = self.Y.shape[0]
        return _Weights(agree, differ, total, loss / n, error / n)


def _fold(block: Matrix) -> Matrix:
    """|X| with negative values r columns further on: (n, 2r), so that one product keeps the signs apart."""
    r = block.shape[1]
    columns = block.indices + np.where(block.data < 0, r, 0).astype(block.indices.dtype)
    return csr_array((np.abs(block.data), columns, block.indptr), shape=(block.shape[0], 2 * r))


def _step(weights: _Weights, smoothing: float | None) -> Floats:
    """Figure 2's d = ½ ln((W₊ + ε)/(W₋ + ε)), 0 where both are 0; infinite where one is and ε is 0."""
    epsilon = smoothing
    if epsilon is None:
        both = weights.agree + weights.differ
        positive = np.count_nonzero(both)
        epsilon = _SMOOTHING * float(both.sum()) / positive if positive else 0.0
    d = weights.agree + epsilon
    denominator = weights.differ + epsilon
    if epsilon == 0:
        neither = (d == 0) & (denominator == 0)
        d[neither] = denominator[neither] = 1.0
    with np.errstate(divide="ignore"):
        d /= denominator
        np.log(d, out=d)
    d *= 0.5
    return d


def _refuse_infinite(change: Floats, features: Sequence[str], labels: Sequence[str]) -> None:
    # One pass without temporaries: an infinity survives in the sum.
    with np.errstate(invalid="ignore"):
        if np.isfinite(change.sum()):
            return
    feature, label = np.argwhere(~np.isfinite(change))[0]
    raise ParameterError(
        f"without smoothing, feature {features[feature]!r} gets an infinite weight for label "
        f"{labels[label]!r}: all its training examples speak for the label, or all against it; "
        "give a smoothing above 0",
        "/learner/smoothing",
    )


def _names(given: Sequence[str] | None, count: int) -> Sequence[str]:
    return [str(index) for index in range(count)] if given is None else given
