"""Multilabel pairwise perceptrons (MLPP): a perceptron for every pair of labels, and a vote.

Loza Mencía and Fürnkranz, "Pairwise Learning of Multilabel Classifications with Perceptrons" (2008), section
IV and figure 3; the artificial label is that of Brinker, Fürnkranz and Hüllermeier, "A Unified Model for
Multilabel Classification and Ranking" (2006).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from models.arrays import AnyArray, Floats, Ints, Labels, Matrix
from models.base import LearnerParameters, State
from models.base.incremental import IncrementalLearner
from models.base.memory import GIB, check_weights_size
from models.base.validation import as_feature_matrix
from models.perceptrons.pairs import Pairs, Voting, gains, pairs_of, votes
from models.perceptrons.quick_voting import Promise, QuickVotes, quick_vote
from models.serialization.state import read_array, require

DOUBLE_LIMIT = 1 * GIB
"""Bytes of weights up to which they are float64; above they are float32."""

_PRODUCT_BYTES = 1 << 26
"""Inner products held at once while scoring many examples."""

_TESTED_PRODUCTS = 500
"""Inner products an example that the learning curve may cost on average, beyond those that training needs."""


class MLPPParameters(LearnerParameters):
    """Parameters of ``mlpp``."""

    algorithm: Literal["mlpp"]
    epochs: int = Field(1, ge=1, le=1_000)
    """How often the training examples are presented. More do little good and no harm (figure 7)."""
    voting: Voting = "max_wins"
    """What a perceptron's vote counts: 1, or the size of its inner product."""
    calibrated: bool = False
    """Add an artificial label that stands between relevant and irrelevant labels; label sets are then the
    labels that receive more votes than it."""
    shuffle: bool = False
    """Present the examples in an order drawn with the seed, anew each epoch, instead of the data set's."""


class MLPP(IncrementalLearner):
    """A perceptron for each pair of labels u < v, trained on the examples that have exactly one of the two.

    An example with u and without v teaches w_uv the output +1, one with v and without u the output -1:
    w ← w + (y - o)·x, with sgn(0) = +1 (figure 3, eq. 2). To score, all k(k-1)/2 perceptrons vote for one of
    their two labels; the score of a label is its votes.

    With ``calibrated``, each label also plays against an artificial label; these perceptrons are the binary
    relevance perceptrons. The score is then the label's votes minus the artificial label's votes.

    Training costs |y|·(k - |y|) inner products an example, and an update for each that was wrong: at most 2L
    times the operations of MMP, L being the mean number of labels (eq. 9).

    The learning curve needs all k(k-1)/2 votes, far more than training does. So every example is tested
    before it is learned from where these are at most 500 (k ≤ 32), else every n-th, so that the tests cost
    500 inner products an example on average; ``summary_.facts["tested_every"]`` is n.

    Weights are float64 where they fit in 1 GiB, else float32, and inner products are computed in that
    precision.

    Args:
        epochs: passes over the training examples.
        voting: ``max_wins`` or ``weighted``.
        calibrated: add the artificial label.
        shuffle: draw the order of the examples for each epoch.
        random_state: seed of the order.

    Attributes:
        pair_weights_: (r, k(k-1)/2) weights of the pairs in lexicographic order; feature by feature, so that
            the rows of an example's features are together.
        boundary_weights_: (r, k) weights of the pairs of each label with the artificial label; (r, 0) where
            there is none.
        operations_: perceptron operations of the training so far: inner products and updates (table I),
            without those of the learning curve.
        updates_: how many of them were updates.

    >>> X, Y = [[1.0, 0], [0, 1], [1, 1]], [[1, 0, 0], [0, 1, 0], [1, 1, 0]]
    >>> MLPP().fit(X, Y).decision_function([[1.0, 0.0]])
    array([[2., 1., 0.]])
    """

    parameters: ClassVar[type[LearnerParameters]] = MLPPParameters
    algorithm: ClassVar[str] = "mlpp"

    pair_weights_: AnyArray
    boundary_weights_: AnyArray
    operations_: int
    updates_: int
    _promise: Promise | None

    def __init__(
        self,
        epochs: int = 1,
        voting: Voting = "max_wins",
        calibrated: bool = False,
        shuffle: bool = False,
        random_state: int = 0,
    ) -> None:
        self.epochs = epochs
        self.voting = voting
        self.calibrated = calibrated
        self.shuffle = shuffle
        self.random_state = random_state

    def quick_top(self, X: Any, top: int) -> QuickVotes:
        """The best labels of each example, without casting all votes (quick weighted voting).

        It saves inner products, and time only where these are dear: full voting reads the weights of an
        example's features one after the other, quick voting picks them out, which takes several times longer
        for each product. How many are saved depends on the example; weighted voting takes 2k more than full
        voting where its bounds settle nothing. The first call after training or loading prepares these
        bounds, in one pass over the weights.

        Args:
            X: (n, r) examples.
            top: how many labels; all of them where there are fewer.

        Returns:
            the same labels in the same order, with the same scores, as full voting would put first, and how
            many inner products each example took; see :func:`models.perceptrons.quick_voting.quick_vote`.
        """
        check_is_fitted(self)
        matrix = as_feature_matrix(X, n_features=self.n_features_in_)
        pairs = pairs_of(self.n_labels_)
        if self.voting == "weighted" and self._promise is None:
            self._promise = Promise(self.pair_weights_, pairs)
        data = matrix.astype(self.pair_weights_.dtype)
        return quick_vote(
            data,
            self.pair_weights_,
            np.asarray(data @ self.boundary_weights_) if self.boundary_weights_.shape[1] else None,
            top,
            pairs=pairs,
            promise=self._promise if self.voting == "weighted" else None,
            favourites=self.label_counts_,
        )

    def _scores(self, X: Matrix) -> Floats:
        data = X.astype(self.pair_weights_.dtype)
        at_once = max(1, _PRODUCT_BYTES // (max(1, self.pair_weights_.shape[1]) * data.dtype.itemsize))
        if X.shape[0] <= at_once:
            return self._vote(data)
        starts = range(0, X.shape[0], at_once)
        return np.vstack([self._vote(data[start : start + at_once]) for start in starts])

    def _vote(self, X: Matrix) -> Floats:
        """Full voting on examples in the precision of the weights."""
        result = votes(np.asarray(X @ self.pair_weights_), pairs_of(self.n_labels_), self.voting)
        if self.boundary_weights_.shape[1]:
            products = np.asarray(X @ self.boundary_weights_)
            result += gains(products, np.True_, self.voting)
            result -= gains(products, np.False_, self.voting).sum(axis=1, keepdims=True)
        return result

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """The sum of the label's pair weights, signed in its favour, times the feature's value.

        Votes are not additive in the features. This is the linear reading nearest to them: Σ_v ±w_lv·x over
        all pairs of the label (the artificial label's included), which is what the votes would be if each
        counted w·x for the one label and -w·x for the other.
        """
        pairs = pairs_of(self.n_labels_)
        rows = self.pair_weights_[x.indices]
        signs = np.where(pairs.is_first[label], 1.0, -1.0)
        weights = np.einsum("fp,p->f", rows[:, pairs.games[label]], signs)
        if self.boundary_weights_.shape[1]:
            weights = weights + self.boundary_weights_[x.indices, label]
        return x.indices.astype(np.int64), weights * x.data

    def _read_fitted_arrays(self, state: Mapping[str, AnyArray]) -> State:
        k = self.n_labels_
        pair_weights = read_array(state, "pair_weights", ("float64", "float32"), (None, k * (k - 1) // 2))
        require(len(pair_weights) > 0, "there are no features")
        boundary = (len(pair_weights), k if self.calibrated else 0)
        return {
            "pair_weights": pair_weights,
            "boundary_weights": read_array(state, "boundary_weights", str(pair_weights.dtype), boundary),
            "operations": read_array(state, "operations", "int64", (2,)),
        }

    def _fitted_arrays(self) -> State:
        return {
            "pair_weights": self.pair_weights_,
            "boundary_weights": self.boundary_weights_,
            "operations": np.array([self.operations_, self.updates_]),
        }

    def _set_fitted_arrays(self, arrays: State) -> None:
        self.pair_weights_, self.boundary_weights_ = arrays["pair_weights"], arrays["boundary_weights"]
        self.operations_, self.updates_ = arrays["operations"].tolist()
        self.n_features_in_ = self.pair_weights_.shape[0]
        self._promise = None

    def _initial_arrays(self, r: int, k: int, parameters: MLPPParameters, /) -> State:
        n_pairs, boundary = k * (k - 1) // 2, k if parameters.calibrated else 0
        dtype = precision(r * (n_pairs + boundary))
        check_weights_size(
            r * (n_pairs + boundary),
            np.dtype(dtype).itemsize,
            f"the {n_pairs + boundary:,} pairs of {k} labels over {r:,} features",
        )
        return {
            "pair_weights": np.zeros((r, n_pairs), dtype=dtype),
            "boundary_weights": np.zeros((r, boundary), dtype=dtype),
            "operations": np.zeros(2, dtype=np.int64),
        }

    def _grown_arrays(self, old: Ints, k: int, parameters: MLPPParameters, /) -> State:
        grown = self._initial_arrays(self.n_features_in_, k, parameters)
        before, after = pairs_of(len(old)), pairs_of(k)
        grown["pair_weights"][:, after.index[old[before.first], old[before.second]]] = self.pair_weights_
        if self.boundary_weights_.shape[1]:
            grown["boundary_weights"][:, old] = self.boundary_weights_
        return {**grown, "operations": self._fitted_arrays()["operations"]}

    def _learn_chunk(
        self, X: Matrix, Y: Labels, _parameters: MLPPParameters, _first_time: bool, /
    ) -> tuple[Ints, Floats]:
        self._promise = None
        pairs, n = pairs_of(self.n_labels_), X.shape[0]
        tested = self._tested(n)
        scores, due = np.empty((len(tested), self.n_labels_)), set(tested.tolist())
        trainer = _Trainer(self.pair_weights_, self.boundary_weights_, pairs)
        relevance = Y.toarray().astype(np.bool_)
        begin, features = X.indptr.tolist(), X.indices.astype(np.intp)
        values = X.data.astype(self.pair_weights_.dtype)
        begin_labels, labels = Y.indptr.tolist(), Y.indices.astype(np.intp)
        done = 0
        for i in range(n):
            example = slice(begin[i], begin[i + 1])
            if i in due:
                ends = np.array([0, begin[i + 1] - begin[i]], dtype=X.indices.dtype)
                row = csr_array((values[example], X.indices[example], ends), shape=(1, X.shape[1]))
                scores[done] = self._vote(row)[0]
                done += 1
            relevant = labels[begin_labels[i] : begin_labels[i + 1]]
            trainer.learn(features[example], values[example], relevant, relevance[i])
        self.operations_ += trainer.products + trainer.updates
        self.updates_ += trainer.updates
        return tested, scores

    def _every(self) -> int:
        """The learning curve tests every how manieth example."""
        return max(1, -(-len(pairs_of(self.n_labels_)) // _TESTED_PRODUCTS))

    def _tested(self, n: int) -> Ints:
        """Which of the next n examples the learning curve tests."""
        every = self._every()
        return np.arange(-self.n_presented_ % every, n, every, dtype=np.int64)

    def _summarize(self) -> None:
        n_pairs = self.pair_weights_.shape[1] + self.boundary_weights_.shape[1]
        self.summary_.facts |= {
            "perceptrons": n_pairs,
            "perceptron_operations": self.operations_,
            "perceptron_updates": self.updates_,
            "operations_per_prediction": n_pairs,
            "weight_precision": str(self.pair_weights_.dtype),
            "weight_bytes": self.pair_weights_.nbytes + self.boundary_weights_.nbytes,
            "tested_every": self._every(),
        }


def precision(n_weights: int) -> type[np.float64 | np.float32]:
    """The precision of so many pair weights: float64 where they fit in 1 GiB, else float32.

    >>> precision(103 * 102 // 2 * 25_000).__name__, precision(115 * 114 // 2 * 25_000).__name__
    ('float64', 'float32')
    """
    return np.float64 if n_weights * 8 <= DOUBLE_LIMIT else np.float32


class _Trainer:
    """Trains pair weights in place, an example at a time.

    Attributes:
        products: inner products so far.
        updates: updates so far.
    """

    def __init__(self, pair_weights: AnyArray, boundary_weights: AnyArray, pairs: Pairs) -> None:
        self.pairs, self.products, self.updates = pairs, 0, 0
        self.width, self.boundary_width = pair_weights.shape[1], boundary_weights.shape[1]
        self.flat, self.boundary_flat = pair_weights.reshape(-1), boundary_weights.reshape(-1)
        self.two = pair_weights.dtype.type(2)

    def learn(
        self, f: NDArray[np.intp], x: AnyArray, relevant: NDArray[np.intp], relevance: NDArray[np.bool_]
    ) -> None:
        """One example: features f, their values x, relevant labels as indices and as (k,) booleans."""
        pairs = self.pairs
        if len(relevant) == 1:
            chosen, positive = pairs.games[relevant[0]], pairs.is_first[relevant[0]]
        else:
            irrelevant = (~relevance).nonzero()[0]
            chosen = pairs.index[relevant[:, np.newaxis], irrelevant].ravel()
            positive = (relevant[:, np.newaxis] < irrelevant).ravel()
        if len(chosen):
            self._teach(self.flat, self.width, f, x, chosen, positive)
        if self.boundary_width:
            everything = np.arange(self.boundary_width)
            self._teach(self.boundary_flat, self.boundary_width, f, x, everything, relevance)

    def _teach(
        self,
        flat: AnyArray,
        width: int,
        f: NDArray[np.intp],
        x: AnyArray,
        chosen: NDArray[np.intp],
        positive: NDArray[np.bool_],
    ) -> None:
        """Teach x to the perceptrons ``chosen``: w ← w + (y - o)·x, y = +1 where ``positive``, else -1."""
        cells = f[:, np.newaxis] * width + chosen
        weights = flat.take(cells)
        wrong = ((np.einsum("i,ij->j", x, weights) >= 0) != positive).nonzero()[0]
        self.products += len(chosen)
        if len(wrong):
            step = np.where(positive[wrong], self.two, -self.two)
            flat[cells.take(wrong, axis=1)] = weights.take(wrong, axis=1) + x[:, np.newaxis] * step
            self.updates += len(wrong)
