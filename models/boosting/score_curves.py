"""The contributions of features to scores, without a table over all labels.

For a label, the contribution of a feature is a step function of the feature's value, with a step at each
threshold of the label. Its size is the number of these thresholds, however many thresholds the feature has
for other labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models.arrays import Floats, Ints


@dataclass(frozen=True)
class ScoreCurves:
    """A step function for each feature and label that have a stump.

    The steps are ordered by feature, label and threshold.

    Attributes:
        by_presence: whether every value of a feature is above its threshold.
        curve_features: (c,) features of the curves, ascending.
        curve_labels: (c,) labels of the curves, ascending for each feature.
        starts: (c + 1,) where the steps of each curve start.
        curve_of: (n,) the curve of each step.
        thresholds: (n,) thresholds of the steps.
        above: (n,) the contribution of a value above the step's threshold, but not above the next one.
        below: (c,) the contribution of a value that is above no threshold of the curve.
    """

    by_presence: bool
    curve_features: Ints
    curve_labels: Ints
    starts: Ints
    curve_of: Ints
    thresholds: Floats
    above: Floats
    below: Floats

    @classmethod
    def of(
        cls, features: Ints, labels: Ints, thresholds: Floats, steps: Floats, *, by_presence: bool
    ) -> ScoreCurves:
        """The curves of n stumps.

        Args:
            features: (n,) pivots.
            labels: (n,) labels.
            thresholds: (n,) thresholds; distinct for each feature and label.
            steps: (n,) a₁ − a₀.
            by_presence: whether stumps test x ≠ 0; otherwise they test x > threshold.
        """
        order = np.lexsort((thresholds, labels, features))
        features, labels, thresholds, steps = features[order], labels[order], thresholds[order], steps[order]
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = (np.diff(features) != 0) | (np.diff(labels) != 0)
        first = np.flatnonzero(new)
        starts = np.append(first, len(order))
        lengths = np.diff(starts)
        curve_of = np.repeat(np.arange(len(first)), lengths)
        levels = steps.copy()
        # Steps are added one after the other, so that a level does not depend on other curves.
        for place in range(1, int(lengths.max(initial=0))):
            steps_there = first[lengths > place] + place
            levels[steps_there] += levels[steps_there - 1]
        if by_presence:
            base = np.zeros(len(first))
        else:
            n_below_zero = np.bincount(curve_of[thresholds < 0], minlength=len(first))
            base = np.where(n_below_zero > 0, levels[np.maximum(first + n_below_zero - 1, 0)], 0.0)
        return cls(
            by_presence,
            features[first],
            labels[first],
            starts,
            curve_of,
            thresholds,
            levels - base[curve_of],
            0.0 - base,
        )

    def labels_of(self, feature: int) -> Ints:
        """The labels with a curve for a feature, ascending."""
        return self.curve_labels[self._curves_of(feature)]

    def contributions(self, feature: int, values: Floats) -> Floats:
        """The contributions of values of one feature to the labels of ``labels_of``.

        Args:
            feature: the feature.
            values: (m,) ascending values, none of them 0.

        Returns:
            (m, number of labels) the score minus the score if the feature were 0.
        """
        curves = self._curves_of(feature)
        begin, end = self.starts[curves.start], self.starts[curves.stop]
        if self.by_presence:
            return np.repeat(self.above[np.newaxis, begin:end], len(values), axis=0)
        n_curves = curves.stop - curves.start
        # For each value and label, the last step that the value is above: its place among these levels.
        levels = np.concatenate([self.below[curves], self.above[begin:end]])
        last = np.empty((len(values) + 1, n_curves), dtype=np.int32)
        last[:] = np.arange(n_curves, dtype=np.int32)
        first_above = np.searchsorted(values, self.thresholds[begin:end], side="right")
        # A later step of a curve overwrites an earlier one.
        last[first_above, self.curve_of[begin:end] - curves.start] = np.arange(n_curves, len(levels))
        np.maximum.accumulate(last, axis=0, out=last)
        return levels[last[:-1]]

    def contributions_to(self, label: int, features: Ints, values: Floats) -> tuple[Ints, Floats]:
        """The contributions of one example to the score of one label.

        Args:
            label: the label.
            features: (m,) features of the example.
            values: (m,) their values, none of them 0.

        Returns:
            the features that have a curve for the label, in the given order, and the score minus the score if
            the feature were 0 for each.
        """
        keys, n_labels = self._keys
        if label >= n_labels:
            return features[:0], values[:0]
        wanted = features * n_labels + label
        curves = np.searchsorted(keys, wanted)
        has_curve = keys.take(curves, mode="clip") == wanted
        curves, features, values = curves[has_curve], features[has_curve], values[has_curve]
        begins = self.starts[curves]
        if self.by_presence:
            return features, self.above[begins]
        contributions = self.below[curves]
        for i, (begin, end) in enumerate(zip(begins.tolist(), self.starts[curves + 1].tolist(), strict=True)):
            n_below = int(np.searchsorted(self.thresholds[begin:end], values[i]))
            if n_below:
                contributions[i] = self.above[begin + n_below - 1]
        return features, contributions

    @cached_property
    def _keys(self) -> tuple[Ints, int]:
        """An ascending number for each curve: its feature times the number of labels plus its label."""
        n_labels = int(self.curve_labels.max(initial=-1)) + 1
        return self.curve_features * n_labels + self.curve_labels, n_labels

    def _curves_of(self, feature: int) -> slice:
        first, stop = np.searchsorted(self.curve_features, [feature, feature + 1]).tolist()
        return slice(first, stop)
