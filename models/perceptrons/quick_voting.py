"""Quick weighted voting: the winners of a full vote, from a part of the votes.

Park and Fürnkranz, "Efficient Pairwise Classification" (2007): a label need not play on once it can no longer
win. Here for the best ``top`` labels instead of the winner alone, and for votes of any weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from models.arrays import AnyArray, Bools, Floats, Ints, Matrix, read_only
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


class Promise:
    """The most that each label can receive in weighted voting, from two inner products a label.

    A label i receives Σ_j max(0, ±w_ij·x), and no term is larger than what the features that speak for i add
    up to. Summed over j, and feature by feature, this is an inner product with weights that are known
    beforehand: A_if = Σ_j max(0, ±w_ijf) for positive values, B_if = Σ_j max(0, ∓w_ijf) for negative ones.

    Args:
        weights: (r, pairs) weights.
        pairs: the pairs of the k labels.
    """

    def __init__(self, weights: AnyArray, pairs: Pairs) -> None:
        self.epsilon = float(np.finfo(weights.dtype).eps)
        r, k = weights.shape[0], pairs.n_labels
        self.favour, self.against = np.zeros((r, k)), np.zeros((r, k))
        for start in range(0, r, 256):  # a block that stays in the cache while each label takes its columns
            block = slice(start, start + 256)
            positive, negative = np.maximum(weights[block], 0), np.maximum(-weights[block], 0)
            for label in range(k):
                games, first = pairs.games[label], pairs.is_first[label]
                before, after = games[~first], games[first]
                for own, other, total in (
                    (positive, negative, self.favour),
                    (negative, positive, self.against),
                ):
                    total[block, label] = own.take(after, axis=1).sum(axis=1, dtype=np.float64)
                    total[block, label] += other.take(before, axis=1).sum(axis=1, dtype=np.float64)

    def bounds(self, X: Matrix) -> Floats:
        """(n, k) upper bounds of the weighted votes, with room for the rounding of every sum involved."""
        positive, negative = X.maximum(0), (-X).maximum(0)
        favour = np.asarray(positive @ self.favour + negative @ self.against)
        against = np.asarray(positive @ self.against + negative @ self.favour)
        terms = np.diff(X.indptr)[:, np.newaxis] + self.favour.shape[1]
        return np.asarray(favour + (favour + against) * (4.0 * self.epsilon * terms))


def quick_vote(
    X: Matrix,
    weights: AnyArray,
    boundary: AnyArray | None,
    top: int,
    *,
    pairs: Pairs,
    promise: Promise | None,
    favourites: Ints,
) -> QuickVotes:
    """The ``top`` labels of each example.

    Every label has an upper bound of its votes. The label with the highest bound (the first among equals) is
    a winner if it has played all its games; else a label with the highest bound plays all its open games.
    With ``max_wins`` every game lowers the loser's bound by 1; with ``weighted`` the bounds are those of
    :class:`Promise`. (The paper chooses anew after each game, which saves up to half of the products, but
    choosing so often costs more than it saves when products are computed many at once.)

    Args:
        X: (n, r) examples in the precision of the weights.
        weights: (r, pairs) weights.
        boundary: (n, k) inner products against the artificial label, None where there is none.
        top: labels wanted.
        pairs: the pairs of the k labels.
        promise: for ``weighted`` voting; None for ``max_wins``.
        favourites: (k,) among labels with the same bound the one with the largest number here plays first,
            as it is likeliest to settle the matter.
    """
    n, k = X.shape[0], pairs.n_labels
    top = min(top, k)
    labels, scores = np.empty((n, top), dtype=np.int64), np.empty((n, top))
    products = np.zeros(n, dtype=np.int64)
    bounds = np.full((n, k), k - 1.0) if promise is None else promise.bounds(X.astype(np.float64))
    for i in range(n):
        table = _Table(X[i : i + 1], weights, pairs, "max_wins" if promise is None else "weighted", bounds[i])
        products[i] = 0 if promise is None else 2 * k
        if boundary is not None:
            table.play_artificial(boundary[i])
        for place in range(top):
            labels[i, place] = winner = table.winner(favourites)
            scores[i, place] = table.bound[winner] - table.artificial
            table.bound[winner] = -np.inf
        products[i] += table.products
    return QuickVotes(labels, scores, products)


class _Table:
    """The games of one example.

    Attributes:
        bound: (k,) upper bounds of the labels' votes; the votes themselves for labels that have finished.
        artificial: votes of the artificial label.
        products: inner products computed so far.
    """

    def __init__(self, x: Matrix, weights: AnyArray, pairs: Pairs, voting: Voting, bound: Floats) -> None:
        k = pairs.n_labels
        self.pairs, self.voting, self.weights, self.bound = pairs, voting, weights, bound
        self.cells = x.indices.astype(np.intp)[:, np.newaxis] * weights.shape[1]
        self.x: Matrix = csr_array(
            (read_only(x.data), np.arange(x.nnz, dtype=np.int32), np.array([0, x.nnz], dtype=np.int32)),
            shape=(1, x.nnz),
        )
        self.outcome: AnyArray = np.zeros(len(pairs), dtype=weights.dtype)
        self.open: Bools = ~np.eye(k, dtype=np.bool_)
        self.finished: Bools = np.zeros(k, dtype=np.bool_)
        self.extra: Floats = np.zeros(k)
        self.artificial, self.products = 0.0, 0

    def play_artificial(self, products: AnyArray) -> None:
        """Enter the games against the artificial label, from their inner products."""
        self.extra = gains(products, np.True_, self.voting)
        self.artificial = float(gains(products, np.False_, self.voting).sum())
        self.bound = self.bound + self.extra
        self.products += len(products)

    def winner(self, favourites: Ints) -> int:
        """The label that ranks first among those whose bound has not been lowered to -inf."""
        while True:
            best = int(self.bound.argmax())
            if self.finished[best]:
                return best
            rivals = ((self.bound == self.bound[best]) & ~self.finished).nonzero()[0]
            self._play(int(rivals[favourites[rivals].argmax()]))

    def _play(self, label: int) -> None:
        """Play all open games of a label."""
        opponents = self.open[label].nonzero()[0]
        games = self.pairs.index[label, opponents]
        drawn = self.weights.reshape(-1).take(self.cells + games)
        # The same kernel as for full voting, so that even the last bits agree.
        self.outcome[games] = np.asarray(self.x @ drawn)[0]
        self.products += len(games)
        self.open[label] = self.open[:, label] = False
        if self.voting == "max_wins":
            self.bound[opponents] -= (self.outcome[games] >= 0) == (label < opponents)
        own = gains(self.outcome[self.pairs.games[label]], self.pairs.is_first[label], self.voting)
        self.bound[label], self.finished[label] = own.sum() + self.extra[label], True
