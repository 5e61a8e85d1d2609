"""Quick weighted voting: the best labels of a full vote from only a part of the inner products.

Park and Fürnkranz, "Efficient Pairwise Classification" (2007): the pairs of a label need no evaluation once
the label can no longer win. This version finds the ``top`` best labels instead of one, for votes of any
weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from models.arrays import AnyArray, Bools, Floats, Ints, Matrix, read_only
from models.perceptrons.pairs import Pairs, Voting, side_votes


class VoteBounds:
    """Upper bounds of the weighted votes of each label.

    A label i receives Σ_j max(0, ±w_ij·x). Each term is at most |w_ij|·|x|, which needs no inner product with
    x. It is also at most the sum of its positive parts over the features. Summed over j, the sum of the
    positive parts is an inner product of |x| with weights that depend only on the signs of x: A_if = Σ_j
    max(0, ±w_ijf) for positive values of a feature, and B_if = Σ_j max(0, ∓w_ijf) for negative values. This
    bound is much closer.

    Args:
        weights: (r, pairs) weights.
        pairs: the pairs of the k labels.

    Attributes:
        epsilon: relative precision of the weights.
        norms: (k, k) |w_ij| of the pair of two labels; 0 on the diagonal.
        if_positive: (r, k) A.
        if_negative: (r, k) B.
    """

    def __init__(self, weights: AnyArray, pairs: Pairs) -> None:
        self.epsilon = float(np.finfo(weights.dtype).eps)
        r, k = weights.shape[0], pairs.n_labels
        squares = np.zeros(len(pairs))
        self.if_positive, self.if_negative = np.zeros((r, k)), np.zeros((r, k))
        for start in range(0, r, 256):  # a block that stays in the processor's cache for all labels
            block = slice(start, start + 256)
            squares += np.einsum("fp,fp->p", weights[block], weights[block], dtype=np.float64)
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
        self.norms = np.zeros((k, k))
        self.norms[pairs.first, pairs.second] = self.norms[pairs.second, pairs.first] = np.sqrt(squares)

    def votes(self, x: Matrix, labels: Ints) -> Floats:
        """Return the close upper bounds of the votes of some labels, without a margin for rounding errors."""
        values = x.data.astype(np.float64)
        cells = np.ix_(x.indices, labels)
        weights = np.where(values[:, np.newaxis] > 0, self.if_positive[cells], self.if_negative[cells])
        return np.asarray(np.abs(values) @ weights)


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


def quick_vote(
    X: Matrix,
    weights: AnyArray,
    boundary: AnyArray | None,
    top: int,
    thresholds: Floats | None = None,
    *,
    pairs: Pairs,
    bounds: VoteBounds | None,
    priorities: Ints,
) -> QuickVotes:
    """Find the ``top`` best labels of each example, and all labels above their thresholds.

    Every label has an upper bound of its votes. If all pairs of the label with the highest bound (the first
    among equals) have been evaluated, this label is the next result. Otherwise all remaining pairs of one of
    the labels with the highest bound are evaluated. Then all labels are evaluated whose bound exceeds their
    threshold (section VI-E of the MLPP paper: a vote that only affects the ranking of irrelevant labels is
    not counted). The paper chooses a label after each single pair, which saves up to half of the inner
    products. But this is slower if many inner products are computed at once.

    With ``max_wins``, each evaluated pair lowers the bound of the losing label by 1. With ``weighted``, the
    bounds are those of :class:`VoteBounds`. A close bound costs as much as an inner product. So close bounds
    are only computed as long as there are fewer of them than pairs that are certain to be never evaluated:
    those of two labels that can neither be among the best nor exceed their thresholds. The cost therefore
    never exceeds that of full voting.

    Args:
        X: (n, r) examples in the precision of the weights.
        weights: (r, pairs) weights.
        boundary: (n, k) inner products of the pairs with the artificial label; None without artificial label.
        top: number of labels to find.
        thresholds: (k,) scores above which a label is found, too; None if only the best labels are wanted.
        pairs: the pairs of the k labels.
        bounds: for ``weighted`` voting; None for ``max_wins``.
        priorities: (k,) among labels with the same bound, the label with the largest number here is evaluated
            first. Frequent labels first is a good choice.
    """
    n, k = X.shape[0], pairs.n_labels
    top = min(top, k)
    labels, scores = np.empty((n, top), dtype=np.int64), np.empty((n, top))
    products, known = np.zeros(n, dtype=np.int64), np.full((n, k), -np.inf)
    for i in range(n):
        vote = _PartialVote(X[i : i + 1], weights, pairs, bounds, top, thresholds)
        if boundary is not None:
            vote.add_artificial_label(boundary[i])
        for rank in range(top):
            labels[i, rank] = best = vote.best_label(priorities)
            vote.taken[best] = True
        if thresholds is not None:
            vote.count_labels_above(thresholds, priorities)
        known[i, vote.complete] = vote.votes[vote.complete] - vote.artificial_votes
        scores[i] = known[i, labels[i]]
        products[i] = vote.n_products
    return QuickVotes(labels, scores, products, known)


class _PartialVote:
    """The votes of one example, of the pairs evaluated so far.

    Attributes:
        votes: (k,) votes of each label so far; all its votes if it is complete.
        complete: (k,) labels whose pairs are all evaluated.
        taken: (k,) labels that are among the results.
        artificial_votes: votes of the artificial label.
        n_products: number of inner products computed so far, those of close bounds included.
    """

    def __init__(
        self,
        x: Matrix,
        weights: AnyArray,
        pairs: Pairs,
        bounds: VoteBounds | None,
        top: int,
        thresholds: Floats | None,
    ) -> None:
        k = pairs.n_labels
        self.pairs, self.weights, self.bounds, self.top, self.thresholds = (
            pairs,
            weights,
            bounds,
            top,
            thresholds,
        )
        self.voting: Voting = "max_wins" if bounds is None else "weighted"
        self.features = x
        self.cells = x.indices.astype(np.intp)[:, np.newaxis] * weights.shape[1]
        self.x: Matrix = csr_array(
            (read_only(x.data), np.arange(x.nnz, dtype=np.int32), np.array([0, x.nnz], dtype=np.int32)),
            shape=(1, x.nnz),
        )
        self.products: AnyArray = np.zeros(len(pairs), dtype=weights.dtype)
        self.pending: Bools = ~np.eye(k, dtype=np.bool_)  # pairs that are not evaluated yet
        self.complete: Bools = np.zeros(k, dtype=np.bool_)
        self.taken: Bools = np.zeros(k, dtype=np.bool_)
        self.votes: Floats = np.zeros(k)
        self.boundary_votes: Floats = np.zeros(k)
        self.artificial_votes, self.n_products, self.n_bounds = 0.0, 0, 0
        self.margin: Floats = np.zeros(k)  # for all rounding errors of votes and bounds
        self.close: Floats = np.full(k, np.inf)  # close bounds of the votes of other labels
        if bounds is None:
            self.pair_bound: Floats = self.pending.astype(np.float64)
        else:
            values = x.data.astype(np.float64)
            self.pair_bound = bounds.norms * float(np.sqrt(values @ values))
            self.margin = self.pair_bound.sum(axis=1) * (8.0 * bounds.epsilon * (x.nnz + k))
        self.remaining: Floats = self.pair_bound.sum(axis=1)  # bound of the votes of the pending pairs

    def add_artificial_label(self, products: AnyArray) -> None:
        """Count the votes of the pairs with the artificial label, from their inner products."""
        self.boundary_votes = side_votes(products, np.True_, self.voting)
        self.artificial_votes = float(side_votes(products, np.False_, self.voting).sum())
        self.votes = self.votes + self.boundary_votes
        self.n_products += len(products)

    def best_label(self, priorities: Ints) -> int:
        """Return the label with the most votes among those that are not taken."""
        while True:
            upper = self._upper()
            open_bounds = np.where(self.taken, -np.inf, upper)
            best = int(open_bounds.argmax())
            if self.complete[best]:
                return best
            if not self._bound_closely(upper):
                candidates = ((open_bounds == open_bounds[best]) & ~self.complete).nonzero()[0]
                self._evaluate_pairs(int(candidates[priorities[candidates].argmax()]))

    def count_labels_above(self, thresholds: Floats, priorities: Ints) -> None:
        """Evaluate all pairs of the labels whose score can exceed their threshold."""
        while True:
            upper = self._upper()
            undecided = ((upper - self.artificial_votes > thresholds) & ~self.complete).nonzero()[0]
            if not len(undecided):
                return
            if not self._bound_closely(upper):
                highest = undecided[upper[undecided] == upper[undecided].max()]
                self._evaluate_pairs(int(highest[priorities[highest].argmax()]))

    def _upper(self) -> Floats:
        """Return (k,) upper bounds of the votes; for complete labels, the votes themselves."""
        upper = np.minimum(self.votes + self.remaining, self.close + self.boundary_votes) + self.margin
        # Products that overflow have no bound. Their scores are not finite, which the caller rejects.
        return np.where(self.complete, self.votes, np.where(np.isnan(upper), np.inf, upper))

    def _bound_closely(self, upper: Floats) -> bool:
        """Compute close bounds of labels if that cannot cost more than full voting.

        Returns:
            Whether a bound was computed.
        """
        if self.bounds is None:
            return False
        k = len(upper)
        wanted = (self.close == np.inf) & ~self.complete
        if not wanted.any():
            return False
        lower = np.where(self.complete, self.votes, self.votes - self.margin)
        excluded = ~self.complete & (upper < np.partition(lower, k - self.top)[k - self.top])
        if self.thresholds is not None:
            excluded &= upper - self.artificial_votes <= self.thresholds
        n_excluded = int(np.count_nonzero(excluded))
        affordable = n_excluded * (n_excluded - 1) // 2 - self.n_bounds
        labels = (wanted & ~excluded).nonzero()[0]
        if affordable < 1 or not len(labels):
            return False
        labels = labels[np.argsort(-upper[labels], kind="stable")[:affordable]]
        self.close[labels] = self.bounds.votes(self.features, labels)
        self.n_bounds += len(labels)
        self.n_products += len(labels)
        return True

    def _evaluate_pairs(self, label: int) -> None:
        """Evaluate all pending pairs of a label."""
        others = self.pending[label].nonzero()[0]
        evaluated = self.pairs.index[label, others]
        pair_weights = self.weights.reshape(-1).take(self.cells + evaluated)
        # A sparse product, as in full voting, so that the results agree to the last bit.
        self.products[evaluated] = np.asarray(self.x @ pair_weights)[0]
        self.n_products += len(evaluated)
        self.pending[label] = self.pending[:, label] = False
        self.votes[others] += side_votes(self.products[evaluated], others < label, self.voting)
        self.remaining[others] -= self.pair_bound[label, others]
        own = self.products[self.pairs.of_label[label]]
        votes = side_votes(own, self.pairs.is_first[label], self.voting)
        self.votes[label], self.complete[label] = votes.sum() + self.boundary_votes[label], True
