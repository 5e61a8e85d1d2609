"""Cuts of scores: the possible thresholds, what each of them predicts, and the one that reaches a goal.

``Cuts`` has all thresholds that can be best, to tune a decision. ``HeldOutCurves`` keeps some of them in the
model, from which the thresholds of a router follow after the training.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias

import numpy as np

from models.arrays import AnyArray, Bools, Floats, Ints
from models.decisions.apply import NEVER
from models.decisions.held_out import HeldOut
from models.measures.intervals import Interval, wilson
from models.serialization.state import State, read_array, require

MAX_POINTS = 64
"""Maximum number of points of a label. More would change the recall at a threshold by less than 2 %."""

_BLOCK = 2**20
"""Pairs of example and label that are counted at once, which limits the memory."""

_ROUNDING = 1e-12
"""Share of a count by which a recall may be missed, because of rounding."""

_SURE = 1.2815515655446004
"""The 90 % quantile of the standard normal distribution."""


class Points(Protocol):
    """Possible thresholds in descending order. The first one predicts as little as possible.

    Attributes:
        tp: (c,) the relevant pairs above each threshold; ascending.
        fp: (c,) the other pairs above each threshold; ascending.
        positives: the number of relevant pairs.
    """

    @property
    def tp(self) -> Floats: ...  # noqa: D102

    @property
    def fp(self) -> Floats: ...  # noqa: D102

    @property
    def positives(self) -> float: ...  # noqa: D102


class EstimatedPoints(Points, Protocol):
    """Thresholds with an estimate of what is right above them.

    Attributes:
        expected: (c,) the sum of the probabilities of all pairs above each threshold; ascending.
    """

    @property
    def expected(self) -> Floats: ...  # noqa: D102


def best_f1(points: Points) -> tuple[int, float]:
    """Return the highest cut with the best F1, and its F1."""
    # Equal fractions of integers are equal floats, so ties are exact.
    f1 = 2 * points.tp / np.maximum(points.tp + points.fp + points.positives, 1)
    best = int(np.argmax(f1))
    return best, float(f1[best])


@dataclass(frozen=True, slots=True)
class BestF1:
    """Predicts with the best F1.

    Attributes:
        fbr: if the best F1 is below this value, only what is above the highest score is predicted (SCutFBR,
            Yang 2001).
    """

    fbr: float

    def cut(self, points: Points) -> int | None:
        """Return the highest cut with the best F1; None if it is below ``fbr``."""
        best, f1 = best_f1(points)
        return best if f1 >= self.fbr else None


@dataclass(frozen=True, slots=True)
class LeastCost:
    """Predicts with the least total cost of mistakes.

    Attributes:
        false_label: cost of predicting the label for a document that does not have it; above 0.
        missed_label: cost of not predicting it for a document that has it; above 0.
    """

    false_label: float = 1.0
    missed_label: float = 1.0

    def cut(self, points: Points) -> int:
        """Return the highest cut with the least cost."""
        return int(np.argmax(self.missed_label * points.tp - self.false_label * points.fp))


@dataclass(frozen=True, slots=True)
class TargetPrecision:
    """Predicts a label as often as possible, if its precision is surely at least this value.

    Attributes:
        value: the precision, above 0 and at most 1.
    """

    value: float

    def cut(self, points: EstimatedPoints) -> int | None:
        """Return the lowest cut whose precision is surely at least the value; None if there is none.

        The precision above a cut is the mean calibrated probability of the n pairs above it. The observed
        share of right ones would be too high, because the best of many cuts is also the luckiest one. The
        mean must exceed the value by so much that as many pairs with exactly this precision would rarely
        reach it: the one-sided score test of a share at the level 10 % (Wilson 1927). So a few pairs never
        suffice, however probable they are, and a precision of 1 is never sure.
        """
        n, value = points.tp + points.fp, self.value
        enough = (n > 0) & (points.expected - value * n >= _SURE * np.sqrt(value * (1 - value) * n))
        return int(np.flatnonzero(enough)[-1]) if enough.any() else None


@dataclass(frozen=True, slots=True)
class TargetRecall:
    """Predicts a label as rarely as possible, with at least this recall.

    Attributes:
        value: the recall, above 0 and at most 1.
    """

    value: float

    def cut(self, points: Points) -> int:
        """Return the highest cut with at least this recall, or the lowest cut if no cut has it."""
        enough = points.tp >= self.value * points.positives * (1 - _ROUNDING)
        return int(np.argmax(enough)) if enough.any() else len(points.tp) - 1


Goal: TypeAlias = TargetPrecision | TargetRecall | LeastCost
"""What the thresholds of a decision or of a router must reach."""


@dataclass(frozen=True)
class Cuts:
    """The cuts of the scores of all labels together: one above all scores, one below each relevant pair.

    No other cut is better, because the cut above it has as many relevant pairs and fewer others. So only the
    scores of the relevant pairs are sorted; the other pairs are counted between them, a block at a time. For
    h examples, k labels and p relevant pairs this takes O(h·k·log p) steps, and O(p) memory and a block.

    Attributes:
        scores: (h, k) the scores. A pair with the score ∞ is predicted by every cut, with −∞ by none.
        counted: (h, k) whether each pair counts.
        distinct: the finite scores of relevant pairs, ascending.
    """

    scores: Floats
    counted: Bools
    distinct: Floats
    tp: Floats
    fp: Floats
    positives: float

    @classmethod
    def of(
        cls,
        scores: Floats,
        relevant: Bools,
        known: Bools | None = None,
        *,
        tp_weights: Floats | None = None,
        fp_weights: Floats | None = None,
    ) -> Self:
        """Count the pairs above each threshold.

        Args:
            scores: (h, k) scores.
            relevant: (h, k) whether each example has each label.
            known: (h, k) false for unknown labels, which do not count; None if there are none.
            tp_weights: (k,) what a relevant pair of each label counts; 1 by default.
            fp_weights: (k,) what another pair counts.
        """
        counted = np.ones(scores.shape, dtype=np.bool_) if known is None else known
        positives = scores[relevant & counted]
        distinct = np.unique(positives[np.isfinite(positives)])
        lowest = distinct[0] if len(distinct) else np.inf
        # How many pairs each cut predicts in addition to the cut above it.
        tp, fp = np.zeros(len(distinct) + 2), np.zeros(len(distinct) + 2)
        for block in _blocks(scores.shape):
            predicted = counted[block] & (scores[block] >= lowest)  # by any cut
            for totals, of_kind, weights in (
                (tp, relevant[block], tp_weights),
                (fp, ~relevant[block], fp_weights),
            ):
                pairs = predicted & of_kind
                values = scores[block][pairs]
                if weights is None:  # a search in order stays in the cache
                    values.sort()
                first_cut = len(distinct) + 1 - np.searchsorted(distinct, values, side="right")
                first_cut[values == np.inf] = 0
                counts = None if weights is None else np.broadcast_to(weights, pairs.shape)[pairs]
                np.add(totals, np.bincount(first_cut, counts, minlength=len(totals)), out=totals)
        return cls(
            scores=scores,
            counted=counted,
            distinct=distinct,
            tp=np.cumsum(tp)[:-1],
            fp=np.cumsum(fp)[:-1],
            positives=float(
                len(positives)
                if tp_weights is None
                else ((relevant & counted).sum(axis=0) * tp_weights).sum()
            ),
        )

    def threshold(self, cut: int) -> float:
        """Return the midpoint between two distinct scores, or a threshold beyond either end."""
        upper = np.inf if cut == 0 else float(self.distinct[-cut])
        lower = max(
            (float(self._below(block, upper).max(initial=-np.inf)) for block in _blocks(self.scores.shape)),
            default=-np.inf,
        )
        if cut == 0:
            return lower + 1.0 if lower > -np.inf else 0.0
        return between(lower, upper) if lower > -np.inf else upper - 1.0

    def _below(self, block: slice, upper: float) -> Floats:
        scores = self.scores[block]
        return scores[self.counted[block] & (scores < upper)]


@dataclass(frozen=True, slots=True)
class ChosenThreshold:
    """A threshold that is chosen for a goal, with what it predicts for the held-out examples.

    Attributes:
        threshold: a label is predicted if its score is above; ``NEVER`` if no threshold reaches the precision
            of the goal.
        n_predicted: number of examples for which it is predicted.
        expected: the sum of the calibrated probabilities of these predictions.
        tp: number of examples for which it is predicted and right.
        positives: number of examples that have the label.
    """

    threshold: float
    n_predicted: int
    expected: float
    tp: int
    positives: int

    @classmethod
    def never(cls, positives: int) -> Self:
        """Return the threshold of a label that is never predicted."""
        return cls(NEVER, 0, 0.0, 0, positives)

    @property
    def precision(self) -> float | None:
        """Mean calibrated probability of the predictions; None if there is none."""
        return self.expected / self.n_predicted if self.n_predicted else None

    @property
    def precision_interval(self) -> Interval | None:
        """The confidence interval of the precision, at the level of all intervals; None if there is none."""
        precision = self.precision
        return None if precision is None else wilson(precision, self.n_predicted)

    @property
    def recall(self) -> float | None:
        """Share of the examples with the label for which it is predicted; None if no example has it."""
        return self.tp / self.positives if self.positives else None


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """What the possible thresholds of scores predict.

    The points are ``EstimatedPoints``: one above all scores, and one below each score of
    an example with the label, or a part of these if they are many. Another threshold would predict the label
    for more documents that do not have it, or for fewer that do.

    Attributes:
        thresholds: (p,) the thresholds, descending.
        tp: (p,) number of examples with the label whose score is above each threshold.
        fp: (p,) number of examples without the label whose score is above each threshold.
        expected: (p,) the sum of the calibrated probabilities of the examples above each threshold.
        positives: number of examples with the label.
    """

    thresholds: Floats
    tp: Floats
    fp: Floats
    expected: Floats
    positives: int

    @classmethod
    def of(cls, scores: Floats, probabilities: Floats, relevant: Bools) -> Self:
        """Compute the curve of scores.

        Args:
            scores: (n,) the scores, at least one.
            probabilities: (n,) their calibrated probabilities.
            relevant: (n,) whether each example has the label.
        """
        order = np.argsort(scores)
        ascending, right = scores[order], np.sort(scores[relevant])
        upper = np.unique(right)[::-1]
        if len(upper) >= MAX_POINTS:
            upper = upper[np.unique(np.linspace(0, len(upper) - 1, MAX_POINTS - 1).round().astype(np.int64))]
        first = np.searchsorted(ascending, upper, side="left")
        tp = len(right) - np.searchsorted(right, upper, side="left")
        lower = np.where(first > 0, ascending[first - 1], upper - 2.0)
        thresholds = [between(*pair) for pair in zip(lower.tolist(), upper.tolist(), strict=True)]
        n_predicted = len(ascending) - first
        expected = np.cumsum(probabilities[order][::-1])[n_predicted - 1]
        return cls(
            np.array([float(ascending[-1]) + 1.0, *thresholds]),
            np.concatenate([[0.0], tp]),
            np.concatenate([[0.0], n_predicted - tp]),
            np.concatenate([[0.0], expected]),
            len(right),
        )

    def threshold(self, cut: int) -> float:
        """Return the threshold of a cut."""
        return float(self.thresholds[cut])

    def choose(self, goal: Goal) -> ChosenThreshold:
        """Choose a threshold."""
        cut = goal.cut(self)
        if cut is None:
            return ChosenThreshold.never(self.positives)
        tp = int(self.tp[cut])
        return ChosenThreshold(
            self.threshold(cut), tp + int(self.fp[cut]), float(self.expected[cut]), tp, self.positives
        )


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutCurves:
    """The curve of each label for held-out examples.

    A label that has too few examples to be tuned has no points.

    Attributes:
        starts: (k + 1,) where the points of each label begin; the last number is that of all points, p.
        thresholds: (p,) ``Curve.thresholds`` of all labels.
        tp: (p,) ``Curve.tp``.
        fp: (p,) ``Curve.fp``.
        expected: (p,) ``Curve.expected``.
        positives: (k,) number of examples with each label.
    """

    starts: Ints
    thresholds: Floats
    tp: Ints
    fp: Ints
    expected: Floats
    positives: Ints

    @classmethod
    def of(cls, held_out: HeldOut, probabilities: Floats) -> Self:
        """Compute the curves.

        Args:
            held_out: the held-out scores, which are on the scale of the fitted learner.
            probabilities: (h, k) their calibrated probabilities.
        """
        relevant, known = held_out.relevant(), held_out.known()
        positives = np.count_nonzero(relevant, axis=0).astype(np.int64)
        sizes = np.zeros(len(positives), dtype=np.int64)
        curves = []
        for j in np.flatnonzero(held_out.tunable & (positives > 0)).tolist():
            rows = slice(None) if known is None else known[:, j]
            curve = Curve.of(held_out.scores[rows, j], probabilities[rows, j], relevant[rows, j])
            sizes[j] = len(curve.thresholds)
            curves.append(curve)
        nothing = np.empty(0)
        return cls(
            np.concatenate([[0], np.cumsum(sizes)]),
            np.concatenate([nothing, *(curve.thresholds for curve in curves)]),
            np.concatenate([nothing, *(curve.tp for curve in curves)]).astype(np.int64),
            np.concatenate([nothing, *(curve.fp for curve in curves)]).astype(np.int64),
            np.concatenate([nothing, *(curve.expected for curve in curves)]),
            positives,
        )

    @property
    def judged(self) -> Bools:
        """(k,) whether each label has enough examples to judge its thresholds."""
        judged: Bools = np.diff(self.starts) > 0
        return judged

    def choose(self, label: int, goal: Goal) -> ChosenThreshold | None:
        """Choose the threshold of a label.

        Args:
            label: number of the label.
            goal: what its threshold must reach.

        Returns:
            the threshold. If the label has too few examples to be tuned, it is never predicted if the goal
            is a precision; otherwise the result is None, and its fitted threshold is the best guess.
        """
        part = slice(int(self.starts[label]), int(self.starts[label + 1]))
        positives = int(self.positives[label])
        if part.start == part.stop:
            return ChosenThreshold.never(positives) if isinstance(goal, TargetPrecision) else None
        tp, fp = self.tp[part].astype(np.float64), self.fp[part].astype(np.float64)
        return Curve(self.thresholds[part], tp, fp, self.expected[part], positives).choose(goal)

    def get_state(self) -> State:
        """Return the arrays by name."""
        names = ("starts", "thresholds", "tp", "fp", "expected", "positives")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_state(cls, state: Mapping[str, AnyArray], n_labels: int) -> Self:
        """Restore the curves of k labels from ``get_state``.

        Raises:
            ArtifactError: the state is invalid.
        """
        starts = read_array(state, "starts", "int64", (n_labels + 1,))
        thresholds = read_array(state, "thresholds", "float64", (None,))
        n_points = len(thresholds)
        tp, fp = (read_array(state, name, "int64", (n_points,)) for name in ("tp", "fp"))
        expected = read_array(state, "expected", "float64", (n_points,))
        positives = read_array(state, "positives", "int64", (n_labels,))
        require(
            starts[0] == 0 and starts[-1] == n_points and (np.diff(starts) >= 0).all(),
            "'starts' are not the beginnings of all points in ascending order",
        )
        for name, counts in (("tp", tp), ("fp", fp), ("expected", expected), ("positives", positives)):
            require((counts >= 0).all(), f"{name!r} contains a negative number")
        of_points = np.repeat(positives, np.diff(starts))
        require((tp <= of_points).all(), "'tp' contains more examples than have the label")
        require((expected <= tp + fp).all(), "'expected' contains more examples than are predicted")
        return cls(starts, thresholds, tp, fp, expected, positives)


def label_thresholds(
    scores: Floats,
    relevant: Bools,
    known: Bools | None,
    parts: Bools,
    tunable: Bools,
    *,
    default: float | None,
    goals: Sequence[BestF1 | LeastCost],
) -> Floats:
    """Choose the threshold of each label, on several parts of the examples.

    Args:
        scores: (h, k) held-out scores.
        relevant: (h, k) whether each example has each label.
        known: (h, k) false for unknown labels; None if there are none.
        parts: (p, h) whether each example is in each part.
        tunable: (k,) whether to choose a threshold for the label.
        default: the threshold of a label that is not tunable, or without a positive example in the part; None
            for its highest score in the part.
        goals: (k,) the goal of each label. A label that does not reach it gets its highest score as
            threshold.

    Returns:
        (p, k) the thresholds.
    """
    thresholds = np.empty((len(parts), scores.shape[1]))
    for p, part in enumerate(parts):
        thresholds[p] = scores[part].max(axis=0) if default is None else default
        for j in np.flatnonzero(tunable).tolist():
            rows = part if known is None else part & known[:, j]
            own, right = scores[rows, j : j + 1], relevant[rows, j : j + 1]
            if right.any():
                cuts = Cuts.of(own, right)
                cut = goals[j].cut(cuts)
                thresholds[p, j] = own.max() if cut is None else cuts.threshold(cut)
    return thresholds


def between(lower: float, upper: float) -> float:
    """Return a threshold that is at least ``lower`` and below ``upper``."""
    middle = (upper + lower) / 2
    # The midpoint of two adjacent floats rounds to one of them. It must not be the upper one.
    return middle if middle < upper else lower


def _blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    step = max(1, _BLOCK // max(1, shape[1]))
    return (slice(first, first + step) for first in range(0, shape[0], step))
