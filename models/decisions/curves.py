"""Held-out curves: what the possible thresholds of each label predict, as a part of the fitted model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from models.arrays import AnyArray, Bools, Floats, Ints
from models.decisions.cuts import NEVER, between
from models.decisions.held_out import HeldOut
from models.decisions.policies import Policy, TargetPrecision, choose_cut
from models.measures.intervals import Interval, wilson
from models.serialization.state import State, read_array, require

MAX_POINTS = 64
"""Maximum number of points of a label. More would change the recall at a threshold by less than 2 %."""


@dataclass(frozen=True, slots=True)
class ChosenThreshold:
    """A threshold that a policy chooses, with what it predicts for the held-out examples.

    Attributes:
        threshold: a label is predicted if its score is above; ``NEVER`` if no threshold reaches the precision
            of the policy.
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

    The points are ``models.decisions.cuts.EstimatedCuts``: one above all scores, and one below each score of
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

    def choose(self, policy: Policy) -> ChosenThreshold:
        """Choose a threshold."""
        cut = choose_cut(self, policy)
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

    def choose(self, label: int, policy: Policy) -> ChosenThreshold | None:
        """Choose the threshold of a label.

        Args:
            label: number of the label.
            policy: the policy.

        Returns:
            the threshold. If the label has too few examples to be tuned, it is never predicted if the policy
            is a precision; otherwise the result is None, and its fitted threshold is the best guess.
        """
        part = slice(int(self.starts[label]), int(self.starts[label + 1]))
        positives = int(self.positives[label])
        if part.start == part.stop:
            return ChosenThreshold.never(positives) if isinstance(policy, TargetPrecision) else None
        tp, fp = self.tp[part].astype(np.float64), self.fp[part].astype(np.float64)
        return Curve(self.thresholds[part], tp, fp, self.expected[part], positives).choose(policy)

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
