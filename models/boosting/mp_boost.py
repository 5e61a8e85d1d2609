"""MP-Boost (Esuli, Fagni and Sebastiani): every round each label has a pivot of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Labels
from models.base import Context
from models.boosting.booster import Booster, Rounds
from models.boosting.hypothesis import Rule
from models.boosting.own_pivots import Allowed, OwnPivotsRounds
from models.boosting.parameters import BoostingParameters
from models.boosting.stumps import Stumps
from models.boosting.variants import Variant
from models.errors import ParameterError


class MPBoostParameters(BoostingParameters):
    """Parameters of MP-Boost."""

    algorithm: Literal["mp_boost"]


class MPBoost(Booster):
    """MP-Boost with one-question weak hypotheses.

    Each round every label takes the feature whose question minimises its own Z_s^j (equation 12, algorithm
    2), and its weights, which add up to 1 by themselves, are divided by that Z. With ``Context.candidates``
    (local feature selection) each label searches its own features. On the training examples the Hamming
    loss is at most (1/m) Σ_j Π_s Z*_s^j.

    Args:
        rounds: rounds S.
        variant: ``real``, ``real_abstaining`` or ``discrete``.
        smoothing: ε of equation 4; None is 1/(g·m).
        stump: ``presence``, ``threshold``, or ``auto``: threshold where ``Context.numeric`` says so, else
            presence.
        early_stopping: see ``EarlyStopping``; each label stops by itself. None takes all rounds.
        random_state: seed that draws the held-out examples.

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
    _each_label_alone = True

    def _rounds(
        self, stumps: Stumps, Y: Labels, variant: Variant, smoothing: float, context: Context
    ) -> Rounds:
        allowed = None
        if context.candidates is not None:
            if context.candidates.shape != (self.n_features_in_, self.n_labels_):
                raise ParameterError(
                    f"candidates are {context.candidates.shape}; features by labels are "
                    f"{(self.n_features_in_, self.n_labels_)}"
                )
            allowed = _allowed(stumps, context.candidates)
        return OwnPivotsRounds(stumps, Y, variant, smoothing, allowed)

    def _note_pivots(self, _rules: Sequence[Rule], _features: Sequence[str] | None) -> None:
        of_labels = self.hypothesis_.pivots_of()
        self.summary_.facts["distinct_pivots"] = float(of_labels.mean())
        self.summary_.facts["distinct_pivots_of_all_labels"] = len(np.unique(self.hypothesis_.features))


def _allowed(stumps: Stumps, selected: csr_array[Any, tuple[int, int]]) -> list[Allowed]:
    """Each label's candidates under local feature selection."""
    columns = selected.tocsc()
    columns.eliminate_zeros()
    columns.sort_indices()
    allowed = []
    for label in range(columns.shape[1]):
        features = columns.indices[columns.indptr[label] : columns.indptr[label + 1]].astype(np.int64)
        if stumps.by_presence:
            twins = stumps.twins[features]
            features, twins = features[twins >= 0], twins[twins >= 0]
            candidates, first = np.unique(twins, return_index=True)
            allowed.append(Allowed(candidates, features[first]))
        else:
            candidates = np.flatnonzero(np.isin(stumps.features, features))
            allowed.append(Allowed(candidates, stumps.features[candidates]))
    return allowed
