"""Base class of MMP and the binary relevance perceptrons: one perceptron for each label, without bias."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from models.arrays import AnyArray, Floats, Ints, Matrix, Vector
from models.base import State
from models.base.abilities import Explaining
from models.base.incremental import IncrementalLearner
from models.base.memory import check_weights_size
from models.base.products import product
from models.perceptrons.initial_weights import initial_weights
from models.serialization.state import read_array


class OnePerLabelPerceptrons(IncrementalLearner, Explaining):
    """Base class of the learners with one perceptron for each label.

    Attributes:
        weights_: (r, k) weights. Each row holds the weights of a feature, because training reads and changes
            the rows of the features of one example at a time.
        operations_: perceptron operations of the training so far: inner products and updates (table I).
        updates_: number of updates among them.
    """

    weights_: Floats
    operations_: int
    updates_: int

    def score_one(self, x: Vector) -> Floats:
        """Return the scores of one example; see the base class."""
        return self._scores(x).ravel()

    def _scores(self, X: Matrix | Vector) -> Floats:
        return product(X, self.weights_)

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """Return the terms w_f·x_f of the label's inner product. The score is their sum."""
        return x.indices.astype(np.int64), x.data * self.weights_[x.indices, label]

    def _read_fitted_arrays(self, state: Mapping[str, AnyArray]) -> State:
        return {
            "weights": read_array(state, "weights", "float64", (None, self.n_labels_)),
            "operations": read_array(state, "operations", "int64", (2,)),
        }

    def _fitted_arrays(self) -> State:
        return {"weights": self.weights_, "operations": np.array([self.operations_, self.updates_])}

    def _set_fitted_arrays(self, arrays: State) -> None:
        self.weights_ = arrays["weights"]
        self.operations_, self.updates_ = arrays["operations"].tolist()
        self.n_features_in_ = self.weights_.shape[0]

    def _initial_arrays(self, r: int, k: int, parameters: Any, /) -> State:
        check_weights_size(r * k, 8, f"{k} perceptrons over {r} features")
        return {"weights": self._initial_weights(r, k, parameters), "operations": np.zeros(2, dtype=np.int64)}

    def _grown_arrays(self, old: Ints, k: int, parameters: Any, /) -> State:
        r = self.n_features_in_
        weights = self._initial_arrays(r, k, parameters)["weights"]
        weights[:, old] = self.weights_
        return {**self._fitted_arrays(), "weights": weights}

    def _initial_weights(self, r: int, k: int, parameters: Any, /) -> Floats:
        """Return the (r, k) weights before the first example."""
        seed = (self.random_state, self.n_presented_)
        weights: Floats = initial_weights((r, k), np.float64, parameters.initial, seed)
        return weights

    def _summarize(self) -> None:
        self.summary_.facts |= {
            "perceptrons": self.n_labels_,
            "perceptron_operations": self.operations_,
            "perceptron_updates": self.updates_,
            "operations_per_prediction": self.n_labels_,
            "weight_precision": "float64",
        }
