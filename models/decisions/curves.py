"""Held-out curves: what the possible thresholds of each label predict, as a part of the fitted model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from models.arrays import AnyArray, Floats, Ints
from models.decisions.cuts import NEVER
from models.decisions.held_out import HeldOut
from models.decisions.policies import Policy, TargetPrecision, choose_cut
from models.serialization.state import State, read_array, require

MAX_POINTS = 64
"""Maximum number of points of a label. More would change the recall at a threshold by less than 2 %."""


@dataclass(frozen=True, slots=True)
class ChosenThreshold:
    """A threshold that a policy chooses for a label, with what it predicts for the held-out examples.

    Attributes:
        threshold: the label is predicted if its score is above; ``NEVER`` if no threshold reaches the
            precision of the policy.
        tp: number of examples for which the label is predicted and right.
        fp: number of examples for which it is predicted and wrong.
        positives: number of examples that have the label.
    """

    threshold: float
    tp: int
    fp: int
    positives: int

    @property
    def precision(self) -> float | None:
        """Share of the predictions that are right; None if there is no prediction."""
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else None

    @property
    def recall(self) -> float | None:
        """Share of the examples with the label for which it is predicted; None if no example has it."""
        return self.tp / self.positives if self.positives else None


@dataclass(frozen=True, slots=True)
class _Points:
    """The points of a label, which are cuts; see ``models.decisions.cuts.Cuts``."""

    thresholds: Floats
    tp: Floats
    fp: Floats
    positives: float

    def threshold(self, cut: int) -> float:
        return float(self.thresholds[cut])


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutCurves:
    """What the possible thresholds of each label predict for held-out examples.

    A label has a point above all of its scores, and one below each score of an example with the label, or a
    part of these if they are many. No other threshold is better: it would predict the label for more
    documents that do not have it, or for fewer that do. A label that has too few examples to be tuned has no
    points.

    Attributes:
        starts: (k + 1,) where the points of each label begin; the last number is that of all points, p.
        thresholds: (p,) the thresholds, descending for each label.
        tp: (p,) number of examples with the label whose score is above each threshold.
        fp: (p,) number of examples without the label whose score is above each threshold.
        positives: (k,) number of examples with each label.
    """

    starts: Ints
    thresholds: Floats
    tp: Ints
    fp: Ints
    positives: Ints

    @classmethod
    def of(cls, held_out: HeldOut) -> Self:
        """Compute the curves of held-out scores, which are on the scale of the fitted learner."""
        Y = held_out.Y.tocsc()
        known = None if held_out.unknown is None else held_out.unknown.toarray() == 0
        parts: list[tuple[Floats, Ints, Ints]] = []
        sizes = np.zeros(Y.shape[1], dtype=np.int64)
        positives = np.diff(Y.indptr).astype(np.int64)
        for j in np.flatnonzero(held_out.tunable).tolist():
            scores = held_out.scores[:, j]
            of_label = scores[Y.indices[Y.indptr[j] : Y.indptr[j + 1]]]
            points = _points(scores if known is None else scores[known[:, j]], of_label)
            sizes[j] = len(points[0])
            parts.append(points)
        empty = np.empty(0, dtype=np.int64)
        return cls(
            np.concatenate([[0], np.cumsum(sizes)]),
            np.concatenate([np.empty(0), *(thresholds for thresholds, _, _ in parts)]),
            np.concatenate([empty, *(tp for _, tp, _ in parts)]),
            np.concatenate([empty, *(fp for _, _, fp in parts)]),
            positives,
        )

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
        tp, fp = self.tp[part].astype(np.float64), self.fp[part].astype(np.float64)
        points = _Points(self.thresholds[part], tp, fp, positives)
        if not len(points.thresholds):
            return ChosenThreshold(NEVER, 0, 0, positives) if isinstance(policy, TargetPrecision) else None
        cut = choose_cut(points, policy)
        if cut is None:
            return ChosenThreshold(NEVER, 0, 0, positives)
        return ChosenThreshold(points.threshold(cut), int(points.tp[cut]), int(points.fp[cut]), positives)

    def get_state(self) -> State:
        """Return the arrays by name."""
        return {name: getattr(self, name) for name in ("starts", "thresholds", "tp", "fp", "positives")}

    @classmethod
    def from_state(cls, state: Mapping[str, AnyArray], n_labels: int) -> Self:
        """Restore the curves of k labels from ``get_state``.

        Raises:
            ArtifactError: the state is invalid.
        """
        starts = read_array(state, "starts", "int64", (n_labels + 1,))
        n_points = len(read_array(state, "thresholds", "float64", (None,)))
        tp, fp = (read_array(state, name, "int64", (n_points,)) for name in ("tp", "fp"))
        positives = read_array(state, "positives", "int64", (n_labels,))
        require(
            starts[0] == 0 and starts[-1] == n_points and (np.diff(starts) >= 0).all(),
            "'starts' are not the beginnings of all points in ascending order",
        )
        for name, counts in (("tp", tp), ("fp", fp), ("positives", positives)):
            require((counts >= 0).all(), f"{name!r} contains a negative number")
        of_points = np.repeat(positives, np.diff(starts))
        require((tp <= of_points).all(), "'tp' contains more examples than have the label")
        return cls(starts, state["thresholds"], tp, fp, positives)


def _points(scores: Floats, of_label: Floats) -> tuple[Floats, Ints, Ints]:
    """Return the thresholds of a label with the right and wrong predictions above each.

    Args:
        scores: (h,) all scores of the label.
        of_label: the scores of the examples that have the label, at least one.
    """
    ascending, right = np.sort(scores), np.sort(of_label)
    upper = np.unique(right)[::-1]
    if len(upper) >= MAX_POINTS:
        upper = upper[np.unique(np.linspace(0, len(upper) - 1, MAX_POINTS - 1).round().astype(np.int64))]
    first = np.searchsorted(ascending, upper, side="left")
    tp = len(right) - np.searchsorted(right, upper, side="left")
    lower = np.where(first > 0, ascending[first - 1], upper - 2.0)
    middle = (lower + upper) / 2
    # The midpoint of two adjacent floats rounds to one of them. It must not be the upper one.
    thresholds = np.where(middle < upper, middle, lower)
    return (
        np.concatenate([[ascending[-1] + 1.0], thresholds]),
        np.concatenate([[0], tp]).astype(np.int64),
        np.concatenate([[0], len(ascending) - first - tp]).astype(np.int64),
    )
