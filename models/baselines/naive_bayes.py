"""Multinomial naive Bayes, for label sets and for single labels.

This is the baseline of Loza Mencía and Fürnkranz (2008, section VI-A: "a multilabel variant of the
multinomial naive Bayes algorithm", with tf-idf values instead of counts) and of the multi-class boosting
assignment (``nbayes.train``, with Laplace smoothing).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array

from models.arrays import AnyArray, Bools, Floats, Ints, Labels, Matrix, Vector, read_only, with_data
from models.base import Context, LearnerParameters, State
from models.base.abilities import Explaining
from models.base.incremental import IncrementalLearner
from models.base.memory import check_weights_size
from models.base.products import product
from models.base.weighted import WeightedLearner, counting_examples, with_rows
from models.baselines.class_weight import ClassWeight
from models.errors import UnsuitableDataError
from models.serialization.state import read_array, require

_LOG_OF_ZERO = float(np.log(np.finfo(np.float64).tiny))
"""Replaces the logarithm of a prior of 0, so that every score is finite."""

FIRST_CHUNK, LARGEST_CHUNK = 100, 10_000
"""A chunk has as many examples as all chunks before it, within these limits. It is tested on their totals."""


class NaiveBayesParameters(LearnerParameters):
    """Parameters of ``naive_bayes``."""

    algorithm: Literal["naive_bayes"]
    alpha: float = Field(1.0, gt=0, le=1e12)
    """Number added to the total of every feature (1 is Laplace smoothing)."""
    label_mode: Literal["multilabel", "single_label"] = "multilabel"
    """``multilabel`` compares each label with its complement. ``single_label`` compares the labels with each
    other."""
    class_weight: ClassWeight = "none"
    """``balanced`` gives the examples with a label and those without it the same total weight, or, with
    ``single_label``, the examples of each label. Otherwise every example counts once."""

    def trains_labels_separately(self) -> bool:
        """Return whether each label is compared with its own complement."""
        return self.label_mode == "multilabel"


class NaiveBayes(WeightedLearner, IncrementalLearner, Explaining):
    """Multinomial naive Bayes on counts or other nonnegative features, such as tf-idf.

    Let N_jf be the total of feature f over the examples with label j, N_j = Σ_f N_jf, n_j the number of these
    examples, and N̄_jf, N̄_j, n̄_j the same for the examples without j. With smoothing α over all r features,
    the likelihood is p(f|j) = (N_jf + α)/(N_j + α·r).

    - ``multilabel``: the score is the log-odds of the label against its complement,
      ln(n_j/n̄_j) + Σ_f x_f·ln(p(f|j)/p(f|j̄)).
    - ``single_label``: ln(n_j/g) + Σ_f x_f·ln p(f|j).

    Priors are not smoothed. A label of every example has the constant score +1. A label of no example has the
    smallest positive number as its prior. In ``multilabel`` mode, an example counts neither for a label nor
    for its complement if the label is unknown for it. An example of weight w counts w times in all totals and
    numbers of examples.

    With ``class_weight="balanced"``, a label and its complement get the same total weight, or in
    ``single_label`` mode all labels do, as with scikit-learn's ``compute_sample_weight``: the priors are
    equal, and α is added to the weighted totals.

    For the learning curve, training tests each chunk of examples on the totals of all earlier chunks. A chunk
    has as many examples as all earlier chunks together, but at most 10,000. The first 100 examples are not
    tested.

    Attributes:
        feature_totals_: (r, k) totals N_jf.
        all_totals_: (r,) totals over all examples.
        unknown_totals_: (r, k) totals over the examples for which each label is unknown; None if there are
            none.
        label_weights_: (2, k) total weight of the examples of each label, and of those for which it is
            unknown; None if all examples have the weight 1.
        total_weight_: (1,) total weight of all examples; None if all have the weight 1.
        weights_: (r, k) contribution of one unit of each feature to each score. After ``partial_fit``, the
            next prediction computes it from the totals.
        bias_: (k,) constant part of each score.

    >>> X, Y = [[3, 0], [0, 2], [1, 1]], [[1, 0], [0, 1], [1, 0]]
    >>> NaiveBayes().fit(X, Y).predict([[2, 0], [0, 2]])
    array([[1, 0],
           [0, 1]])
    """

    parameters: ClassVar[type[LearnerParameters]] = NaiveBayesParameters
    algorithm: ClassVar[str] = "naive_bayes"

    feature_totals_: Floats
    all_totals_: Floats
    unknown_totals_: Floats | None
    label_weights_: Floats | None
    total_weight_: Floats | None
    _derived: tuple[Floats, Floats] | None = None

    @property
    def weights_(self) -> Floats:
        """(r, k) contribution of one unit of each feature to each score."""
        return self._weights_and_bias()[0]

    @property
    def bias_(self) -> Floats:
        """(k,) constant part of each score."""
        return self._weights_and_bias()[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _check_features(self, X: Matrix, /) -> None:
        _check_nonnegative(X)

    def _passes(self, _parameters: NaiveBayesParameters, /) -> int:
        return 1

    def _chunk_length(self, _first_time: bool, /) -> int:
        return min(max(self.n_examples_, FIRST_CHUNK), LARGEST_CHUNK)

    def _scores_so_far(self) -> None:
        return None  # weights are computed from the totals once, at the end

    def score_one(self, x: Vector) -> Floats:
        """Return the scores of one example; see the base class."""
        return self._scores(x).ravel()

    def _scores(self, X: Matrix | Vector) -> Floats:
        _check_nonnegative(X)
        weights, bias = self._weights_and_bias()
        return self._with_constant_labels(product(X, weights) + bias)

    def _with_constant_labels(self, scores: Floats) -> Floats:
        scores[:, self._in_every_example()] = 1.0
        return scores

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """Return the log ratios of the likelihoods of the features, times their values.

        In ``multilabel`` mode, a term is x_f·ln(p(f|j)/p(f|j̄)). The score is their sum plus the log-odds of
        the prior. In ``single_label`` mode, the terms x_f·ln p(f|j) of the score are all negative, so each is
        reported relative to its mean over the labels. This shifts the scores of all labels by the same
        amount. A label with a constant score has no terms.
        """
        if self._in_every_example()[label]:
            return np.empty(0, dtype=np.int64), np.empty(0)
        rows = self.weights_[x.indices]
        ratios = rows[:, label] - (rows.mean(axis=1) if self.label_mode == "single_label" else 0.0)
        return x.indices.astype(np.int64), x.data * ratios

    def _read_fitted_arrays(self, state: Mapping[str, AnyArray]) -> State:
        feature_totals = read_array(state, "feature_totals", "float64", (None, self.n_labels_))
        _check_size(*feature_totals.shape)
        all_totals = read_array(state, "all_totals", "float64", feature_totals.shape[:1])
        arrays = {"feature_totals": feature_totals, "all_totals": all_totals}
        if "unknown_totals" in state:
            arrays["unknown_totals"] = read_array(state, "unknown_totals", "float64", feature_totals.shape)
        if "total_weight" in state:
            arrays["total_weight"] = read_array(state, "total_weight", "float64", (1,))
            arrays["label_weights"] = read_array(state, "label_weights", "float64", (2, self.n_labels_))
        require(not any((totals < 0).any() for totals in arrays.values()), "a total is negative")
        return arrays

    def _fitted_arrays(self) -> State:
        arrays = {"feature_totals": self.feature_totals_, "all_totals": self.all_totals_}
        if self.unknown_totals_ is not None:
            arrays["unknown_totals"] = self.unknown_totals_
        if self.total_weight_ is not None and self.label_weights_ is not None:
            arrays |= {"total_weight": self.total_weight_, "label_weights": self.label_weights_}
        return arrays

    def _set_fitted_arrays(self, arrays: State) -> None:
        self.feature_totals_, self.all_totals_ = arrays["feature_totals"], arrays["all_totals"]
        self.unknown_totals_ = arrays.get("unknown_totals")
        self.total_weight_, self.label_weights_ = arrays.get("total_weight"), arrays.get("label_weights")
        self.n_features_in_ = len(self.all_totals_)
        self._derived = None

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        context: Context | None = None,
    ) -> Self:
        """Continue to learn, see :meth:`IncrementalLearner.partial_fit`.

        Args:
            X: (n, r) features.
            y: (n, k) relevant labels as 0/1, or (n,) classes.
            classes: as for :meth:`IncrementalLearner.partial_fit`.
            sample_weight: (n,) how much each example counts, as for ``fit``.
            context: as for :meth:`IncrementalLearner.partial_fit`.

        Raises:
            ParameterError: a parameter is invalid, or the label names are not in label order.
            UnsuitableDataError: this algorithm cannot learn from this data.
            ValueError: X, y, the classes or the weights are invalid.
        """
        rows, weights = counting_examples(X, sample_weight)
        if rows is not None:
            X, y = with_rows(X)[rows], with_rows(y)[rows]
            context = None if context is None else context.where(rows)
        self._continue(X, y, classes, weights, context)
        return self

    def _decide(self, scores: Floats) -> Bools:
        if self.label_mode == "multilabel":
            return super()._decide(scores)
        return np.asarray(np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None])

    def _set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Restore the learner from the arrays of ``get_state``, ready for predictions by many threads."""
        super()._set_state(state)
        self._weights_and_bias()
        return self

    def _initial_arrays(self, r: int, k: int, _parameters: NaiveBayesParameters, /) -> State:
        _check_size(r, k)
        return {"feature_totals": np.zeros((r, k)), "all_totals": np.zeros(r)}

    def _grown_arrays(self, old: Ints, k: int, parameters: NaiveBayesParameters, /) -> State:
        grown = self._initial_arrays(self.n_features_in_, k, parameters)
        grown["feature_totals"][:, old] = self.feature_totals_
        if self.unknown_totals_ is not None:
            grown["unknown_totals"] = np.zeros((self.n_features_in_, k))
            grown["unknown_totals"][:, old] = self.unknown_totals_
        if self.total_weight_ is not None and self.label_weights_ is not None:
            grown["total_weight"] = self.total_weight_.copy()
            grown["label_weights"] = np.zeros((2, k))
            grown["label_weights"][:, old] = self.label_weights_
        return {**grown, "all_totals": self.all_totals_.copy()}

    def _learn_chunk(
        self,
        X: Matrix,
        Y: Labels,
        unknown: Labels | None,
        weights: Floats | None,
        _parameters: NaiveBayesParameters,
        _first_time: bool,
        /,
    ) -> tuple[Ints | None, Floats]:
        tested, scores = np.empty(0, dtype=np.int64), np.empty((0, self.n_labels_))
        if self.n_examples_:
            tested, scores = np.arange(X.shape[0]), self._scores_of_chunk(X)
        self._derived = None
        if weights is not None or self.total_weight_ is not None:
            weights = np.ones(X.shape[0]) if weights is None else weights
            self._add_weights(Y, unknown, weights)
            X = with_data(X, X.data * np.repeat(weights, np.diff(X.indptr)))
        totals = (X.T @ Y.astype(np.float64)).tocoo()
        self.feature_totals_[totals.coords] += totals.data
        if unknown is not None:
            if self.unknown_totals_ is None:
                self.unknown_totals_ = np.zeros_like(self.feature_totals_)
            totals = (X.T @ unknown.astype(np.float64)).tocoo()
            self.unknown_totals_[totals.coords] += totals.data
        self.all_totals_ += np.bincount(X.indices, weights=X.data, minlength=self.n_features_in_)
        return tested, scores

    def _add_weights(self, Y: Labels, unknown: Labels | None, weights: Floats) -> None:
        """Add the weights of a chunk to the total weights; all earlier examples without one count once."""
        if self.total_weight_ is None or self.label_weights_ is None:
            self.total_weight_ = np.array([float(self.n_examples_)])
            self.label_weights_ = np.array([self.label_counts_, self.unknown_counts_], dtype=np.float64)
        self.total_weight_ += weights.sum()
        self.label_weights_[0] += Y.T @ weights
        if unknown is not None:
            self.label_weights_[1] += unknown.T @ weights

    def _scores_of_chunk(self, X: Matrix) -> Floats:
        """Return the scores of a chunk, with the same bits as ``_scores``.

        If the chunk has few of the features, only their weights are computed, because the totals change at
        once: for one example, the weights of all features take many times as long.
        """
        features = np.unique(X.indices)
        if self._derived is not None or 2 * len(features) > X.shape[1]:
            return self._scores(X)
        weights, bias = self._compute_weights(features.astype(np.int64))
        columns = np.searchsorted(features, X.indices)
        part = csr_array((read_only(X.data), columns, read_only(X.indptr)), shape=(X.shape[0], len(features)))
        return self._with_constant_labels(product(part, weights) + bias)

    def _prepare_scores(self) -> None:
        self._weights_and_bias()

    def _weights_and_bias(self) -> tuple[Floats, Floats]:
        """Return the weights and biases, computed once for the present totals."""
        if self._derived is None:
            self._derived = self._compute_weights(slice(None))
        return self._derived

    def _compute_weights(self, features: Ints | slice) -> tuple[Floats, Floats]:
        """Compute the weights of some features (f, k), and the biases (k,), from the totals."""
        own, alpha = self.feature_totals_, self.alpha
        if self.total_weight_ is not None and self.label_weights_ is not None:
            counts, known = self.label_weights_[0], self.total_weight_[0] - self.label_weights_[1]
        else:
            counts, known = self.label_counts_.astype(np.float64), self._known_counts().astype(np.float64)
        positive, negative, prior = self._class_weights(counts, known)
        if positive is not None:
            own = own * positive
        weights = _log_likelihood(own, alpha, features)
        with np.errstate(divide="ignore"):
            bias, against = np.log(prior), np.log(1.0 - prior)
        bias, against = (np.maximum(part, _LOG_OF_ZERO) for part in (bias, against))
        if self.label_mode == "multilabel":
            complement = self.all_totals_[:, np.newaxis] - self.feature_totals_
            if self.unknown_totals_ is not None:
                complement -= self.unknown_totals_
            np.maximum(complement, 0.0, out=complement)
            if negative is not None:
                complement *= negative
            weights -= _log_likelihood(complement, alpha, features)
            bias -= against
        return weights, bias

    def _class_weights(self, counts: Floats, known: Floats) -> tuple[Floats | None, Floats | None, Floats]:
        """Return the weights of the examples with and without each label, and the prior of each label.

        Args:
            counts: (k,) number, or total weight, of the examples of each label.
            known: (k,) number, or total weight, of the examples for which each label is known.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            prior = np.where(known > 0, np.clip(counts / known, 0.0, 1.0), 0.0)
            if self.class_weight == "none":
                return None, None, prior
            if self.label_mode == "single_label":
                used = counts > 0
                share = counts.sum() / max(1, used.sum())
                return np.where(used, share / counts, 1.0), None, np.where(used, 1.0 / used.sum(), 0.0)
            # A label that all or no examples have cannot be balanced.
            both = (counts > 0) & (counts < known) & ~self._in_every_example()
            positive = np.where(both, known / (2.0 * counts), 1.0)
            negative = np.where(both, known / (2.0 * (known - counts)), 1.0)
            return positive, negative, np.where(both, 0.5, prior)

    def _summarize(self) -> None:
        self._warn_constant_labels()
        if self.label_mode == "single_label" and self.label_counts_.sum() > self.n_examples_:
            self.summary_.warnings.append(
                "some examples have several labels; each example counts for all of its labels"
            )


def _check_size(r: int, k: int) -> None:
    """Check the size of the totals and of the weights, which are computed again when a model is loaded."""
    check_weights_size(2 * r * k, 8, f"the totals and weights of {k:,} labels over {r:,} features")


def _log_likelihood(totals: Floats, alpha: float, features: Ints | slice) -> Floats:
    """Return ln p(f|j) of some features from the (r, k) totals N_jf, with the denominator over all r."""
    return np.asarray(np.log(totals[features] + alpha) - np.log(totals.sum(axis=0) + alpha * totals.shape[0]))


def _check_nonnegative(X: Matrix | Vector) -> None:
    """Raise an error if a feature has a negative value."""
    if X.data.size and X.data.min() < 0:
        raise UnsuitableDataError(
            f"Negative values in data passed to naive_bayes (the smallest is {X.data.min():g}): it requires "
            "nonnegative features, such as counts. Use unscaled features, or scale them to [0, 1]"
        )
