"""The pivots of a boosted model, in the order in which the training chose them."""

from __future__ import annotations

from dataclasses import dataclass

from models.arrays import AnyArray, Floats, Ints


@dataclass(frozen=True)
class Pivots:
    """Some pivots: for each one the round, the label, and the two predictions of the stump for the label.

    Attributes:
        positions: (n,) positions among all pivots of the model, which are ordered by round, then label.
        rounds: (n,) rounds, from 1.
        labels: (n,) label indices.
        features: (n,) feature indices.
        thresholds: (n,) the present side has the documents above them; None if stumps test presence.
        absent: (n,) a₀, the prediction for the absent side, float32.
        present: (n,) a₁, the prediction for the present side, float32.
    """

    positions: Ints
    rounds: Ints
    labels: Ints
    features: Ints
    thresholds: Floats | None
    absent: AnyArray
    present: AnyArray
