"""Quick weighted voting: the best labels of a full vote from only a part of the inner products.

Park and Fürnkranz, "Efficient Pairwise Classification" (2007): the pairs of a label need no evaluation once
the label can no longer win. This version finds the ``top`` best labels instead of one, for votes of any
weight.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from models.arrays import AnyArray, Bools, Floats, Ints, Matrix, read_only
from models.base.quick_votes import QuickVotes
from models.perceptrons.pairs import Pairs, Voting, side_votes


class VoteBounds:
    """Upper bounds of the weighted votes of each label, from two inner products per label.

    A label i receives Σ_j max(0, ±w_ij·x). Each term is at most the sum of its positive parts over the
    features. Summed over j, the sum of the positive parts is an inner product with weights that do not depend
    on x: A_if = Σ_j max(0, ±w_ijf) for positive values of a feature, and B_if = Σ_j max(0, ∓w_ijf) for
    negative values.

    Args:
        weights: (r, pairs) weights.
        pairs: the pairs of the k labels.
    """

    def __init__(self, weights: AnyArray, pairs: Pairs) -> None:
        self.epsilon = float(np.finfo(weights.dtype).eps)
        r, k = weights.shape[0], pairs.n_labels
        self.if_positive, self.if_negative = np.zeros((r, k)), np.zeros((r, k))
        for start in range(0, r, 256):  # a block that stays in the processor's cache for all labels
            block = slice(start, start + 256)
            positive, negative = np.maximum(weights[block], 0), np.maximum(-weights[block], 0)
            for label in range(k):
                label_pairs, first = pairs.of_label[label], pairs.is_first[label]
                before, after = label_pairs[~first], label_pairs[first]
                for own, other, total in (
                    (positive, negative, self.if_positive),
                    (negative, positive, self.if_negative),
                ):
                    total[block, label] = own.take(after, axis=1).sum(axis=1, dtype=np.float64)
                    total[block, label] += other.take(before, axis=1).sum(axis=1, dtype=np.float64)

    def upper_bounds(self, X: Matrix) -> Floats:
        """Return (n, k) upper bounds of the weighted votes, with a margin for all rounding errors."""
        positive, negative = X.maximum(0), (-X).maximum(0)
        votes_for = np.asarray(positive @ self.if_positive + negative @ self.if_negative)
        votes_against = np.asarray(positive @ self.if_negative + negative @ self.if_positive)
        terms = np.diff(X.indptr)[:, np.newaxis] + self.if_positive.shape[1]
        return np.asarray(votes_for + (votes_for + votes_against) * (4.0 * self.epsilon * terms))


def quick_vote(
    X: Matrix,
    weights: AnyArray,
    boundary: AnyArray | None,
    top: int,
    *,
    pairs: Pairs,
    bounds: VoteBounds | None,
    priorities: Ints,
) -> QuickVotes:
    """Find the ``top`` best labels of each example.

    Every label has an upper bound of its votes. If all pairs of the label with the highest bound (the first
    among equals) have been evaluated, this label is the next result. Otherwise all remaining pairs of one of
    the labels with the highest bound are evaluated. With ``max_wins``, each evaluated pair lowers the bound
    of the losing label by 1. With ``weighted``, the bounds are those of :class:`VoteBounds`. The paper
    chooses a label after each single pair, which saves up to half of the inner products. But this is slower
    if many inner products are computed at once.

    Args:
        X: (n, r) examples in the precision of the weights.
        weights: (r, pairs) weights.
        boundary: (n, k) inner products of the pairs with the artificial label; None without artificial label.
        top: number of labels to find.
        pairs: the pairs of the k labels.
        bounds: for ``weighted`` voting; None for ``max_wins``.
        priorities: (k,) among labels with the same bound, the label with the largest number here is evaluated
            first. Frequent labels first is a good choice.
    """
    n, k = X.shape[0], pairs.n_labels
    top = min(top, k)
    labels, scores = np.empty((n, top), dtype=np.int64), np.empty((n, top))
    products = np.zeros(n, dtype=np.int64)
    upper = np.full((n, k), k - 1.0) if bounds is None else bounds.upper_bounds(X.astype(np.float64))
    for i in range(n):
        vote = _PartialVote(
            X[i : i + 1], weights, pairs, "max_wins" if bounds is None else "weighted", upper[i]
        )
        products[i] = 0 if bounds is None else 2 * k
        if boundary is not None:
            vote.add_artificial_label(boundary[i])
        for rank in range(top):
            labels[i, rank] = best = vote.best_label(priorities)
            scores[i, rank] = vote.bound[best] - vote.artificial_votes
            vote.bound[best] = -np.inf
        products[i] += vote.n_products
    return QuickVotes(labels, scores, products)


class _PartialVote:
    """The votes of one example, of the pairs evaluated so far.

    Attributes:
        bound: (k,) upper bounds of the votes of the labels; for complete labels, the votes themselves.
        artificial_votes: votes of the artificial label.
        n_products: number of inner products computed so far.
    """

    def __init__(self, x: Matrix, weights: AnyArray, pairs: Pairs, voting: Voting, bound: Floats) -> None:
        k = pairs.n_labels
        self.pairs, self.voting, self.weights, self.bound = pairs, voting, weights, bound
        self.cells = x.indices.astype(np.intp)[:, np.newaxis] * weights.shape[1]
        self.x: Matrix = csr_array(
            (read_only(x.data), np.arange(x.nnz, dtype=np.int32), np.array([0, x.nnz], dtype=np.int32)),
            shape=(1, x.nnz),
        )
        self.products: AnyArray = np.zeros(len(pairs), dtype=weights.dtype)
        self.pending: Bools = ~np.eye(k, dtype=np.bool_)  # pairs that are not evaluated yet
        self.complete: Bools = np.zeros(k, dtype=np.bool_)  # labels whose pairs are all evaluated
        self.boundary_votes: Floats = np.zeros(k)
        self.artificial_votes, self.n_products = 0.0, 0

    def add_artificial_label(self, products: AnyArray) -> None:
        """Count the votes of the pairs with the artificial label, from their inner products."""
        self.boundary_votes = side_votes(products, np.True_, self.voting)
        self.artificial_votes = float(side_votes(products, np.False_, self.voting).sum())
        self.bound = self.bound + self.boundary_votes
        self.n_products += len(products)

    def best_label(self, priorities: Ints) -> int:
        """Return the label with the most votes among those whose bound the caller has not set to -inf."""
        while True:
            best = int(self.bound.argmax())
            if self.complete[best]:
                return best
            candidates = ((self.bound == self.bound[best]) & ~self.complete).nonzero()[0]
            self._evaluate_pairs(int(candidates[priorities[candidates].argmax()]))

    def _evaluate_pairs(self, label: int) -> None:
        """Evaluate all pending pairs of a label."""
        others = self.pending[label].nonzero()[0]
        evaluated = self.pairs.index[label, others]
        pair_weights = self.weights.reshape(-1).take(self.cells + evaluated)
        # A sparse product, as in full voting, so that the results agree to the last bit.
        self.products[evaluated] = np.asarray(self.x @ pair_weights)[0]
        self.n_products += len(evaluated)
        self.pending[label] = self.pending[:, label] = False
        if self.voting == "max_wins":
            self.bound[others] -= (self.products[evaluated] >= 0) == (label < others)
        own = self.products[self.pairs.of_label[label]]
        votes = side_votes(own, self.pairs.is_first[label], self.voting)
        self.bound[label], self.complete[label] = votes.sum() + self.boundary_votes[label], True
