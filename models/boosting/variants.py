"""The three variants of the weak hypothesis: the loss of a stump, and its two predictions.

A stump splits the documents into two sides, absent (x = 0) and present (x = 1). For a label, the four W of
equation 5 of the MP-Boost paper are the weights of the positive and of the negative documents of each side.
They are arrays of shape (4, ...), with the rows ``ABSENT_POSITIVE`` ... ``PRESENT_NEGATIVE``.

The Z of every variant is an increasing function of a *loss* that adds up over labels:

=====================  ==========================================  =====================
variant                loss of a label                             Z of the total loss q
=====================  ==========================================  =====================
``real``               2 √(W₊⁰W₋⁰) + 2 √(W₊¹W₋¹)   (equation 6)     q
``real_abstaining``    W₊⁰ + W₋⁰ + 2 √(W₊¹W₋¹)                      q
``discrete``           2 min(W₊⁰, W₋⁰) + 2 min(W₊¹, W₋¹)           √(q (2w − q))
=====================  ==========================================  =====================

The last one is √(1 − r²) with r = w − q and w = 1, in a form that loses no digits if r is near 1.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from typing_extensions import TypeAliasType

from models.arrays import Floats

BoostingVariant = TypeAliasType(
    "BoostingVariant",
    Annotated[
        Literal["real", "real_abstaining", "discrete"],
        Field(description="How a weak hypothesis on one term votes."),
    ],
)

ABSENT_POSITIVE, ABSENT_NEGATIVE, PRESENT_POSITIVE, PRESENT_NEGATIVE = range(4)

TIE = 1e-12
"""Two Z are equal if they differ by less than this times the weight that Z sums."""


def loss(variant: BoostingVariant, W: Floats) -> Floats:
    """The losses of stumps.

    Args:
        variant: the variant.
        W: (4, ...) weights of the sides, none negative.

    Returns:
        (...) losses.
    """
    positive_absent, negative_absent, positive_present, negative_present = W
    if variant == "discrete":
        losses: Floats = np.minimum(positive_absent, negative_absent)
        losses += np.minimum(positive_present, negative_present)
        losses *= 2
        return losses
    losses = 2 * np.sqrt(positive_present * negative_present)
    if variant == "real":
        losses += 2 * np.sqrt(positive_absent * negative_absent)
    else:
        losses += positive_absent + negative_absent
    return losses


def normaliser(variant: BoostingVariant, total_loss: Floats, weight: Floats) -> Floats:
    """Z of stumps whose losses add up to ``total_loss`` over labels of total weight ``weight``."""
    if variant == "discrete":
        return np.sqrt(total_loss * np.maximum(2 * weight - total_loss, 0))
    return total_loss


def predictions(
    variant: BoostingVariant, W: Floats, total_loss: Floats, smoothing: float
) -> tuple[Floats, Floats]:
    """The predictions of the absent and the present side (equation 4, smoothed).

    Args:
        variant: the variant.
        W: (4, k) weights of the sides of the chosen stumps.
        total_loss: (k,) or scalar: the loss of each stump, over all labels that share it. It is 1 − r for
            ``discrete``; the other variants do not need it.
        smoothing: ε of numerator and denominator.

    Returns:
        a₀ and a₁, (k,) each.
    """
    if variant == "discrete":
        alpha = 0.5 * np.log((2 - total_loss + smoothing) / (total_loss + smoothing))
        return alpha * _sign(W[:2]), alpha * _sign(W[2:])
    present = 0.5 * np.log((W[PRESENT_POSITIVE] + smoothing) / (W[PRESENT_NEGATIVE] + smoothing))
    if variant == "real_abstaining":
        return np.zeros_like(present), present
    return 0.5 * np.log((W[ABSENT_POSITIVE] + smoothing) / (W[ABSENT_NEGATIVE] + smoothing)), present


def _sign(side: Floats) -> Floats:
    """Sign of W₊ − W₋; 0 if they are equal up to rounding, so that rounding never chooses a prediction."""
    difference = side[0] - side[1]
    return np.where(np.abs(difference) <= TIE * (side[0] + side[1]), 0.0, np.sign(difference))
