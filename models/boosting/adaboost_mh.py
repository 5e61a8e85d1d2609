"""AdaBoost.MH (section 2 of the MP-Boost paper): one pivot a round, shared by all labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from models.arrays import Labels
from models.base import Context
from models.boosting.booster import Booster, Rounds
from models.boosting.hypothesis import Rule
from models.boosting.parameters import BoostingParameters
from models.boosting.shared_pivot import SharedPivotRounds
from models.boosting.stumps import Stumps
from models.boosting.variants import Variant
from models.errors import ParameterError

FIRST_PIVOTS = 100
"""Rounds of which a version tells the pivot."""


class AdaBoostMHParameters(BoostingParameters):
    """Parameters of AdaBoost.MH."""

    algorithm: Literal["adaboost_mh"]


class AdaBoostMH(Booster):
    """AdaBoost.MH with one-question weak hypotheses.

    Each round takes the feature whose question minimises Z_s (equation 6), predicts a₀ or a₁ for each label
    (equation 4) and multiplies the weights D of all pairs by exp(−Φ Φ̂_s)/Z_s (equations 1 and 2). The
    score is the sum of all predictions (equation 7). On the training examples the Hamming loss is at most Π
    Z*_s, the product of the true normalisers.

    Args:
        rounds: rounds S.
        variant: ``real``, ``real_abstaining`` or ``discrete``.
        smoothing: ε of equation 4; None is 1/(g·m).
        stump: ``presence``, ``threshold``, or ``auto``: threshold where ``Context.numeric`` says so, else
            presence.
        early_stopping: see ``EarlyStopping``; None takes all rounds.
        random_state: seed that draws the held-out examples.

    ``summary_.facts["first_pivots"]`` names the pivots of the first 100 rounds, in their order.

    >>> import numpy as np
    >>> X = np.array([[1, 0], [1, 1], [0, 1], [0, 1]])  # documents by terms
    >>> Y = np.array([[1, 0], [1, 1], [0, 1], [0, 1]])  # documents by labels
    >>> learner = AdaBoostMH(rounds=5).fit(X, Y)
    >>> learner.predict([[1, 0], [0, 1]]).tolist()
    [[1, 0], [0, 1]]
    >>> learner.summary_.facts["first_pivots"]
    ['0', '1', '0', '1', '0']
    """

    algorithm = "adaboost_mh"
    parameters = AdaBoostMHParameters
    _each_label_alone = False

    def _rounds(
        self, stumps: Stumps, Y: Labels, variant: Variant, smoothing: float, context: Context
    ) -> Rounds:
        if context.candidates is not None:
            raise ParameterError(
                "adaboost_mh shares each pivot among all labels, so features cannot be selected label by "
                "label; choose another selection policy, or mp_boost",
                "/features/selection/policy",
            )
        return SharedPivotRounds(stumps, Y, variant, smoothing)

    def _note_pivots(self, rules: Sequence[Rule], features: Sequence[str] | None) -> None:
        self.summary_.facts["distinct_pivots"] = len(np.unique(self.hypothesis_.features))
        first = [int(rule.features[0]) for rule in rules[:FIRST_PIVOTS] if len(rule.features)]
        self.summary_.facts["first_pivots"] = [str(f) if features is None else features[f] for f in first]
