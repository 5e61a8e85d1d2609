"""Multilabel pairwise perceptrons (MLPP): a perceptron for every pair of labels, and a vote.

Loza Mencía and Fürnkranz, "Pairwise Learning of Multilabel Classifications with Perceptrons" (2008), section
IV and figure 3. The artificial label is from Brinker, Fürnkranz and Hüllermeier, "A Unified Model for
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

from models.arrays import AnyArray, Bools, Floats, Ints, Labels, Matrix, read_only
from models.base import LearnerParameters, State
from models.base.abilities import Explaining
from models.base.incremental import IncrementalLearner
from models.base.memory import GIB, check_weights_size
from models.base.validation import as_feature_matrix
from models.perceptrons.initial_weights import Initial, initial_weights
from models.perceptrons.pairs import Pairs, Voting, full_votes, pairs_of, side_votes
from models.perceptrons.quick_voting import QuickVotes, VoteBounds, quick_vote
from models.serialization.state import read_array, require

FLOAT64_LIMIT = 1 * GIB
"""Weights are float64 up to this number of bytes, and float32 above it."""

_PRODUCT_BYTES = 1 << 26
"""Memory for the inner products of the examples that are scored at once."""

_TEST_PRODUCTS = 500
"""Inner products that the learning curve may cost for each training example on average."""


class MLPPParameters(LearnerParameters):
    """Parameters of ``mlpp``."""

    algorithm: Literal["mlpp"]
    epochs: int = Field(1, ge=1, le=1_000)
    """Number of passes over the training examples. More passes help little and do not harm (figure 7)."""
    voting: Voting = "max_wins"
    """Weight of a perceptron's vote: 1 (``max_wins``) or the absolute inner product (``weighted``)."""
    calibrated: bool = False
    """Add an artificial label that separates relevant from irrelevant labels. The predicted labels are then
    those with more votes than the artificial label."""
    margin: float = Field(0.0, ge=0, le=1e6)
    """Also update a perceptron whose inner product is on the right side, but closer to 0 than this number
    (Krauth and Mézard, 1987). Try 1 to 4 for features of unit length and several epochs."""
    initial: Initial = "zeros"
    """Initial weights: zeros, or random from a normal distribution with standard deviation 1e-3."""
    shuffle: bool = False
    """Present the examples in random order, drawn with the seed for each epoch, instead of the order of the
    data set."""


class MLPP(IncrementalLearner, Explaining):
    """A perceptron for each pair of labels u < v, trained on the examples that have exactly one of the two.

    The target is +1 for an example with u and without v, and -1 for an example with v and without u:
    w ← w + (y - o)·x, with sgn(0) = +1 (figure 3, eq. 2). To score an example, each of the k(k-1)/2
    perceptrons votes for one of its two labels. The score of a label is its number of votes.

    With ``calibrated``, each label also forms a pair with an artificial label. The perceptrons of these pairs
    are the binary relevance perceptrons. The score is then the votes of the label minus the votes of the
    artificial label. Without it, ``predict`` selects the labels with more than half of the k - 1 votes.

    Training costs |y|·(k - |y|) inner products for each example, and one update for each wrong output. This
    is at most 2L times the operations of MMP, where L is the mean number of labels (eq. 9).

    A point of the learning curve needs all k(k-1)/2 votes, far more inner products than training. So the
    learning curve tests every n-th example before the learner trains on it, with the smallest n such that the
    tests cost at most 500 inner products per example on average (n = 1 for k ≤ 32).
    ``summary_.facts["tested_every"]`` is n. A partial fit of a pipeline tests every example.

    Weights are float64 if they fit in 1 GiB, else float32. Inner products are computed in the same precision.

    Attributes:
        pair_weights_: (r, k(k-1)/2) weights of the pairs in lexicographic order. Each row holds the weights
            of a feature, because training reads and changes the rows of the features of one example at a
            time.
        boundary_weights_: (r, k) weights of the pairs of each label with the artificial label; (r, 0) without
            artificial label.
        operations_: perceptron operations of the training so far: inner products and updates (table I),
            without those of the learning curve.
        updates_: number of updates among them.

    >>> X, Y = [[1.0, 0], [0, 1], [1, 1]], [[1, 0, 0], [0, 1, 0], [1, 1, 0]]
    >>> MLPP().fit(X, Y).decision_function([[1.0, 0.0]])
    array([[2., 1., 0.]])
    """

    parameters: ClassVar[type[LearnerParameters]] = MLPPParameters
    algorithm: ClassVar[str] = "mlpp"
    randomized: ClassVar[bool] = True
    needs_scaled_features: ClassVar[bool] = True

    pair_weights_: AnyArray
    boundary_weights_: AnyArray
    operations_: int
    updates_: int
    _bounds: VoteBounds | None

    def quick_top(self, X: Any, top: int, thresholds: Floats | None = None) -> QuickVotes:
        """Return the best labels of each example without counting all votes (quick weighted voting).

        Quick voting usually saves inner products and never needs more than full voting, but it saves time
        only if inner products are expensive. Full voting reads the weights of a feature in sequence; quick
        voting collects single weights, which is several times slower for each inner product. The savings
        depend on the example. The first call of weighted voting after training or loading computes the bounds
        of the votes in one pass over the weights.

        Args:
            X: (n, r) examples.
            top: number of labels; all labels if there are fewer.
            thresholds: (k,) if given, the votes of all labels with a score above their threshold are counted,
                too. With thresholds of 0 and ``calibrated``, these are the predicted labels: those with more
                votes than the artificial label.

        Returns:
            The same labels in the same order and with the same scores as the first ``top`` of full voting,
            and the number of inner products for each example; see
            :func:`models.perceptrons.quick_voting.quick_vote`.
        """
        check_is_fitted(self)
        matrix = as_feature_matrix(X, n_features=self.n_features_in_)
        pairs = pairs_of(self.n_labels_)
        if self.voting == "weighted" and self._bounds is None:
            self._bounds = VoteBounds(self.pair_weights_, pairs)
        data = matrix.astype(self.pair_weights_.dtype)
        return quick_vote(
            data,
            self.pair_weights_,
            np.asarray(data @ self.boundary_weights_) if self.boundary_weights_.shape[1] else None,
            top,
            thresholds,
            pairs=pairs,
            bounds=self._bounds if self.voting == "weighted" else None,
            priorities=self.label_counts_,
        )

    def _scores(self, X: Matrix) -> Floats:
        data = X.astype(self.pair_weights_.dtype)
        block_rows = max(1, _PRODUCT_BYTES // (max(1, self.pair_weights_.shape[1]) * data.dtype.itemsize))
        if X.shape[0] <= block_rows:
            return self._full_votes(data)
        starts = range(0, X.shape[0], block_rows)
        return np.vstack([self._full_votes(data[start : start + block_rows]) for start in starts])

    def _full_votes(self, X: Matrix) -> Floats:
        """Return (n, k) scores by full voting, of examples in the precision of the weights."""
        result = full_votes(np.asarray(X @ self.pair_weights_), pairs_of(self.n_labels_), self.voting)
        if self.boundary_weights_.shape[1]:
            products = np.asarray(X @ self.boundary_weights_)
            result += side_votes(products, np.True_, self.voting)
            result -= side_votes(products, np.False_, self.voting).sum(axis=1, keepdims=True)
        return result

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """Return the sum of the label's pair weights, signed in its favor, times the value of the feature.

        Votes are not additive in the features. The explanation is the closest linear form: Σ_v ±w_lv·x over
        all pairs of the label, including the artificial label. It would be the votes if each pair counted w·x
        for one label and -w·x for the other.
        """
        pairs = pairs_of(self.n_labels_)
        rows = self.pair_weights_[x.indices]
        signs = np.where(pairs.is_first[label], 1.0, -1.0)
        weights = np.einsum("fp,p->f", rows[:, pairs.of_label[label]], signs)
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
        self._bounds = None

    def _initial_arrays(self, r: int, k: int, parameters: MLPPParameters, /) -> State:
        n_pairs, boundary = k * (k - 1) // 2, k if parameters.calibrated else 0
        dtype = weight_dtype(r * (n_pairs + boundary))
        check_weights_size(
            r * (n_pairs + boundary),
            np.dtype(dtype).itemsize,
            f"the {n_pairs + boundary:,} pairs of {k} labels over {r:,} features",
        )
        seed = (self.random_state, self.n_presented_)
        return {
            "pair_weights": initial_weights((r, n_pairs), dtype, parameters.initial, (*seed, 0)),
            "boundary_weights": initial_weights((r, boundary), dtype, parameters.initial, (*seed, 1)),
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
        self,
        X: Matrix,
        Y: Labels,
        _unknown: Labels | None,
        _weights: Floats | None,
        parameters: MLPPParameters,
        _first_time: bool,
        /,
    ) -> tuple[Ints, Floats]:
        self._bounds = None
        pairs, n = pairs_of(self.n_labels_), X.shape[0]
        tested = self._tested_rows(n)
        scores, to_test = np.empty((len(tested), self.n_labels_)), set(tested.tolist())
        trainer = _Trainer(self.pair_weights_, self.boundary_weights_, pairs, parameters.margin)
        relevance = Y.toarray().astype(np.bool_)
        begin, features, indices = X.indptr.tolist(), X.indices.astype(np.intp), read_only(X.indices)
        values = X.data.astype(self.pair_weights_.dtype)
        begin_labels, labels = Y.indptr.tolist(), Y.indices.astype(np.intp)
        n_tested = 0
        for i in range(n):
            example = slice(begin[i], begin[i + 1])
            if i in to_test:
                ends = np.array([0, begin[i + 1] - begin[i]], dtype=X.indices.dtype)
                row = csr_array((values[example], indices[example], ends), shape=(1, X.shape[1]))
                scores[n_tested] = self._full_votes(row)[0]
                n_tested += 1
            relevant = labels[begin_labels[i] : begin_labels[i + 1]]
            trainer.train(features[example], values[example], relevant, relevance[i])
        self.operations_ += trainer.products + trainer.updates
        self.updates_ += trainer.updates
        return tested, scores

    def _test_interval(self) -> int:
        """Return the n for which the learning curve tests every n-th example."""
        return max(1, -(-len(pairs_of(self.n_labels_)) // _TEST_PRODUCTS))

    def _decide(self, scores: Floats) -> Bools:
        # Without the artificial label, scores are votes. A label then needs more than half of them.
        return super()._decide(scores if self.calibrated else scores - (self.n_labels_ - 1) / 2)

    def _tested_rows(self, n: int) -> Ints:
        """Return those of the next n examples that the learning curve tests."""
        interval = self._test_interval() if self._tests_into is None else 1
        return np.arange(-self.n_presented_ % interval, n, interval, dtype=np.int64)

    def _summarize(self) -> None:
        n_pairs = self.pair_weights_.shape[1] + self.boundary_weights_.shape[1]
        self.summary_.facts |= {
            "perceptrons": n_pairs,
            "perceptron_operations": self.operations_,
            "perceptron_updates": self.updates_,
            "operations_per_prediction": n_pairs,
            "weight_precision": str(self.pair_weights_.dtype),
            "weight_bytes": self.pair_weights_.nbytes + self.boundary_weights_.nbytes,
            "tested_every": self._test_interval(),
        }


def weight_dtype(n_weights: int) -> type[np.float64 | np.float32]:
    """Return the type of the weights: float64 if ``n_weights`` of them fit in 1 GiB, else float32.

    >>> weight_dtype(103 * 102 // 2 * 25_000).__name__, weight_dtype(115 * 114 // 2 * 25_000).__name__
    ('float64', 'float32')
    """
    return np.float64 if n_weights * 8 <= FLOAT64_LIMIT else np.float32


class _Trainer:
    """Trains pair weights in place, one example at a time.

    Args:
        pair_weights: (r, pairs) weights.
        boundary_weights: (r, k) weights, or (r, 0).
        pairs: the pairs of the k labels.
        margin: smallest inner product on the right side that needs no update.

    Attributes:
        products: number of inner products so far.
        updates: number of updates so far.
    """

    def __init__(
        self, pair_weights: AnyArray, boundary_weights: AnyArray, pairs: Pairs, margin: float
    ) -> None:
        self.pairs, self.margin, self.products, self.updates = pairs, margin, 0, 0
        self.width, self.boundary_width = pair_weights.shape[1], boundary_weights.shape[1]
        self.flat, self.boundary_flat = pair_weights.reshape(-1), boundary_weights.reshape(-1)
        self.two = pair_weights.dtype.type(2)

    def train(
        self, f: NDArray[np.intp], x: AnyArray, relevant: NDArray[np.intp], relevance: NDArray[np.bool_]
    ) -> None:
        """Train on one example.

        Args:
            f: indices of its features.
            x: values of these features.
            relevant: indices of its labels.
            relevance: (k,) whether it has each label.
        """
        pairs = self.pairs
        if len(relevant) == 1:
            trained, positive = pairs.of_label[relevant[0]], pairs.is_first[relevant[0]]
        else:
            irrelevant = (~relevance).nonzero()[0]
            trained = pairs.index[relevant[:, np.newaxis], irrelevant].ravel()
            positive = (relevant[:, np.newaxis] < irrelevant).ravel()
        if len(trained):
            self._update(self.flat, self.width, f, x, trained, positive)
        if self.boundary_width:
            all_labels = np.arange(self.boundary_width)
            self._update(self.boundary_flat, self.boundary_width, f, x, all_labels, relevance)

    def _update(
        self,
        flat: AnyArray,
        width: int,
        f: NDArray[np.intp],
        x: AnyArray,
        columns: NDArray[np.intp],
        positive: NDArray[np.bool_],
    ) -> None:
        """Train the perceptrons ``columns`` on x: w ← w + (y - o)·x, with y = +1 if ``positive``, else -1.

        Within the margin, the update is 2y·x, too.
        """
        cells = f[:, np.newaxis] * width + columns
        weights = flat.take(cells)
        products = np.einsum("i,ij->j", x, weights)
        mistakes = (products >= 0) != positive
        if self.margin:
            mistakes |= np.abs(products) < self.margin
        wrong = mistakes.nonzero()[0]
        self.products += len(columns)
        if len(wrong):
            step = np.where(positive[wrong], self.two, -self.two)
            flat[cells.take(wrong, axis=1)] = weights.take(wrong, axis=1) + x[:, np.newaxis] * step
            self.updates += len(wrong)
