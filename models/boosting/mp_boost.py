"""MP-Boost (Esuli, Fagni and Sebastiani): in each round, each label has its own pivot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Floats, Labels
from models.base import Context
from models.boosting.booster import Booster
from models.boosting.hypothesis import WeakHypothesis
from models.boosting.mp_boost_rounds import AllowedCandidates, MPBoostRounds
from models.boosting.parameters import BoostingParameters
from models.boosting.rounds import Rounds
from models.boosting.stumps import Stumps
from models.boosting.variants import BoostingVariant
from models.errors import ParameterError


class MPBoostParameters(BoostingParameters):
    """Parameters of MP-Boost."""

    algorithm: Literal["mp_boost"]


class MPBoost(Booster):
    """MP-Boost with decision stumps as weak hypotheses.

    In each round, each label chooses the pivot whose stump minimises the label's Z_s^j (equation 12,
    algorithm 2). The weights of each label add up to 1 and are divided by that Z. With ``Context.candidates``
    (local feature selection), each label searches only the features selected for it. On the training examples
    the Hamming loss is at most (1/m) Σ_j Π_s Z*_s^j.

    >>> import numpy as np
    >>> X = np.array([[1, 0], [1, 1], [0, 1], [0, 1]])  # documents by terms
    >>> Y = np.array([[1, 0], [1, 1], [0, 1], [0, 1]])  # documents by labels
    >>> learner = MPBoost(rounds=1).fit(X, Y)
    >>> learner.hypothesis_.features.tolist()  # a pivot for each label
    [0, 1]
    >>> learner.predict([[1, 0], [0, 1]]).tolist()
    [[1, 0], [0, 1]]
    """

    algorithm = "mp_boost"
    parameters = MPBoostParameters
    pivot_per_label = True

    def _rounds(
        self,
        stumps: Stumps,
        Y: Labels,
        shares: Floats | None,
        variant: BoostingVariant,
        smoothing: float,
        context: Context,
    ) -> Rounds:
        allowed = None
        if context.candidates is not None:
            if context.candidates.shape != (self.n_features_in_, self.n_labels_):
                raise ParameterError(
                    f"candidates have the shape {context.candidates.shape}, but features by labels are "
                    f"{(self.n_features_in_, self.n_labels_)}"
                )
            allowed = _allowed(stumps, context.candidates)
        return MPBoostRounds(stumps, Y, variant, smoothing, allowed, shares=shares)

    def _note_pivots(self, _hypotheses: Sequence[WeakHypothesis], _features: Sequence[str] | None) -> None:
        self.summary_.facts["distinct_pivots"] = float(self.hypothesis_.distinct_pivots().mean())
        self.summary_.facts["distinct_pivots_of_all_labels"] = len(np.unique(self.hypothesis_.features))


def _allowed(stumps: Stumps, selected: csr_array[Any, tuple[int, int]]) -> list[AllowedCandidates]:
    """Each label's candidates under local feature selection, from (r, k) selected features."""
    columns = selected.tocsc()
    columns.eliminate_zeros()
    columns.sort_indices()
    allowed = []
    for label in range(columns.shape[1]):
        features = columns.indices[columns.indptr[label] : columns.indptr[label + 1]].astype(np.int64)
        if stumps.by_presence:
            candidates = stumps.candidate_of[features]
            features, candidates = features[candidates >= 0], candidates[candidates >= 0]
            candidates, first = np.unique(candidates, return_index=True)
            allowed.append(AllowedCandidates(candidates, features[first]))
        else:
            candidates = np.flatnonzero(np.isin(stumps.features, features))
            allowed.append(AllowedCandidates(candidates, stumps.features[candidates]))
    return allowed
