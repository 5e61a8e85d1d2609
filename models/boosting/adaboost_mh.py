"""AdaBoost.MH (section 2 of the MP-Boost paper): one pivot in each round, shared by all labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from models.arrays import Floats, Labels
from models.base import Context
from models.boosting.adaboost_mh_rounds import AdaBoostMHRounds
from models.boosting.booster import Booster
from models.boosting.hypothesis import WeakHypothesis
from models.boosting.parameters import BoostingParameters
from models.boosting.rounds import Rounds
from models.boosting.stumps import Stumps
from models.boosting.variants import BoostingVariant
from models.errors import ParameterError

FIRST_PIVOTS = 100
"""Number of rounds whose pivots a version lists."""


class AdaBoostMHParameters(BoostingParameters):
    """Parameters of AdaBoost.MH."""

    algorithm: Literal["adaboost_mh"]


class AdaBoostMH(Booster):
    """AdaBoost.MH with decision stumps as weak hypotheses.

    Each round chooses the pivot whose stump minimises Z_s (equation 6). The weak hypothesis predicts a₀ or a₁
    for each label (equation 4). The weights D of all pairs are multiplied by exp(−Φ Φ̂_s)/Z_s (equations 1 and
    2). The score is the sum of all predictions (equation 7). On the training examples the Hamming loss is at
    most Π Z*_s, the product of the true normalisers.

    ``summary_.facts["first_pivots"]`` names the pivots of the first 100 rounds, in order.

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
    pivot_per_label = False

    def _rounds(
        self,
        stumps: Stumps,
        Y: Labels,
        shares: Floats | None,
        variant: BoostingVariant,
        smoothing: float,
        context: Context,
    ) -> Rounds:
        if context.candidates is not None:
            raise ParameterError(
                "all labels of adaboost_mh share each pivot, so features cannot be selected for each label "
                "separately; choose another selection policy, or mp_boost",
                "/features/selection/policy",
            )
        return AdaBoostMHRounds(stumps, Y, variant, smoothing, shares=shares)

    def _note_pivots(self, hypotheses: Sequence[WeakHypothesis], features: Sequence[str] | None) -> None:
        self.summary_.facts["distinct_pivots"] = len(np.unique(self.hypothesis_.features))
        first = [int(one.features[0]) for one in hypotheses[:FIRST_PIVOTS] if len(one.features)]
        self.summary_.facts["first_pivots"] = [str(f) if features is None else features[f] for f in first]
