"""The result of quick voting, which finds the best labels from only a part of the inner products."""

from __future__ import annotations

from dataclasses import dataclass

from models.arrays import Floats, Ints


@dataclass(frozen=True)
class QuickVotes:
    """Result of quick voting.

    Attributes:
        labels: (n, top) label indices, best first.
        scores: (n, top) their scores, identical to those of full voting to the last bit.
        products: (n,) number of inner products computed for each example. Full voting computes k(k-1)/2, or
            k(k+1)/2 with the artificial label; quick voting never computes more.
        known: (n, k) the scores of all labels whose votes were counted, those of ``labels`` included, and −∞
            for the other labels.
    """

    labels: Ints
    scores: Floats
    products: Ints
    known: Floats
