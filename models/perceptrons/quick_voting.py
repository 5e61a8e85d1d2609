"""Quick weighted voting: the winners of a full vote, from a part of the votes.

Park and Fürnkranz, "Efficient Pairwise Classification" (2007): a label need not play on once it can no longer
win. Here for the best ``top`` labels instead of the winner alone, and for votes of any weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from models.arrays import AnyArray, Bools, Floats, Ints, Matrix
from models.perceptrons.pairs import Pairs, Voting, gains


@dataclass(frozen=True)
class QuickVotes:
    """The outcome of quick voting.

    Attributes:
        labels: (n, top) label indices, best first.
        scores: (n, top) their scores, bit for bit those of full voting.
        products: (n,) inner products computed for each example; full voting takes k(k-1)/2 (with the
            artificial label, k(k+1)/2).
    """

    labels: Ints
    scores: Floats
    products: Ints


def quick_vote(
    X: Matrix,
    weights: AnyArray,
    boundary: AnyArray | None,
    top: int,
    *,
    pairs: Pairs,
    voting: Voting,
    norms: AnyArray | None,
    favourites: Ints,
) -> QuickVotes:
    """The ``top`` labels of each example.

    Every label has an upper bound of its votes: those it has, and the most it can still win. For ``max_wins``
    an open game is worth 1; for ``weighted`` |w·x| ≤ ‖w‖·‖x‖. The label with the highest bound (the first
    among equals) is a winner if it has played all its games; else a label with the highest bound plays its
    open games.

    Args:
        X: (n, r) examples in the precision of the weights.
        weights: (r, pairs) weights.
        boundary: (n, k) inner products against the artificial label, None where there is none.
        top: labels wanted.
        pairs: the pairs of the k labels.
        voting: what a vote counts.
        norms: (pairs,) norms of the pairs' weights; needed for ``weighted``.
        favourites: (k,) among labels with the same bound the one with the largest number here plays first,
            as it is likeliest to settle the matter.
    """
    n, k = X.shape[0], pairs.n_labels
    top = min(top, k)
    labels, scores = np.empty((n, top), dtype=np.int64), np.empty((n, top))
    products = np.zeros(n, dtype=np.int64)
    for i in range(n):
        own = None if boundary is None else boundary[i]
        table = _Table(X[i : i + 1], weights, own, pairs, voting, norms)
        for place in range(top):
            labels[i, place] = winner = table.winner(favourites)
            scores[i, place] = table.bound[winner] - table.artificial
            table.bound[winner] = -np.inf
        products[i] = table.products
    return QuickVotes(labels, scores, products)


class _Table:
    """The games of one example.

    Attributes:
        bound: (k,) upper bounds of the labels' votes; the votes themselves for labels that have finished.
        artificial: votes of the artificial label.
        products: inner products computed so far.
    """

    def __init__(
        self,
        x: Matrix,
        weights: AnyArray,
        boundary: AnyArray | None,
        pairs: Pairs,
        voting: Voting,
        norms: AnyArray | None,
    ) -> None:
        k = pairs.n_labels
        self.pairs, self.voting, self.weights = pairs, voting, weights
        self.cells = x.indices.astype(np.intp)[:, np.newaxis] * weights.shape[1]
        self.x: Matrix = csr_array(
            (x.data, np.arange(x.nnz, dtype=np.int32), np.array([0, x.nnz], dtype=np.int32)),
            shape=(1, x.nnz),
        )
        self.outcome: AnyArray = np.empty(len(pairs), dtype=weights.dtype)
        self.played: Bools = np.zeros(len(pairs), dtype=np.bool_)
        self.finished: Bools = np.zeros(k, dtype=np.bool_)
        self.products = 0 if boundary is None else k
        self.extra: Floats = np.zeros(k)
        self.artificial = 0.0
        if boundary is not None:
            self.extra = gains(boundary, np.True_, voting)
            self.artificial = float(gains(boundary, np.False_, voting).sum())
        if voting == "max_wins" or norms is None:
            self.worth: Floats = np.ones(len(pairs))
        else:
            # Rounding may carry a product beyond the product of the norms, by about this much.
            slack = 1.0 + 4.0 * (x.nnz + k) * float(np.finfo(weights.dtype).eps)
            self.worth = norms.astype(np.float64) * (float(np.linalg.norm(x.data)) * slack)
        self.bound: Floats = self.worth[pairs.games].sum(axis=1) + self.extra
        if voting == "weighted":  # what is taken off a bound later is rounded, and must not take off too much
            self.bound *= 1.0 + 4.0 * k * float(np.finfo(np.float64).eps)

    def winner(self, favourites: Ints) -> int:
        """The label that ranks first among those whose bound has not been lowered to -inf."""
        while True:
            best = int(self.bound.argmax())
            if self.finished[best]:
                return best
            rivals = ((self.bound == self.bound[best]) & ~self.finished).nonzero()[0]
            self._play(int(rivals[favourites[rivals].argmax()]))

    def _play(self, label: int) -> None:
        """Play all open games of a label, and tell its opponents."""
        games = self.pairs.games[label]
        open_games = games[~self.played[games]]
        drawn = self.weights.reshape(-1).take(self.cells + open_games)
        self.outcome[open_games] = np.asarray(self.x @ drawn)[0]
        self.played[open_games] = True
        self.products += len(open_games)
        won = gains(self.outcome[games], self.pairs.is_first[label], self.voting)
        self.finished[label] = True
        self.bound[label] = won.sum() + self.extra[label]
        self._lower_opponents(label)

    def _lower_opponents(self, label: int) -> None:
        others = np.delete(np.arange(self.pairs.n_labels), label)
        waiting = others[~self.finished[others]]
        games = self.pairs.index[waiting, label]
        lost = self.worth[games] - gains(self.outcome[games], waiting < label, self.voting)
        self.bound[waiting] -= lost
