"""Templates: which features AdaBoost.LC updates together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array

from models.arrays import Floats, Ints, Matrix
from models.boosting.covering_weights import Columns, Weights
from models.errors import ParameterError

FeatureNames: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1)]
TemplateSpelling: TypeAlias = (
    Literal["parallel", "sequential"] | Annotated[tuple[FeatureNames, ...], Field(min_length=1)]
)

_TIE = 1e-12
"""Gains this close, relative to the weight that they are sums of, are equal: rounding chooses no template."""

_FINITE = 1e300
"""A ratio of sums is a finite number and not 0 where no sum is so many times the smoothing."""

_SMOOTHING = 1e-4
"""Default smoothing, as a share of the mean of W₊ + W₋ where it is positive."""

_ROWS = 8_192


class InfiniteWeightError(ArithmeticError):
    """Without smoothing, a weight would be infinite.

    Args:
        column: its column.
        label: its label.
    """

    def __init__(self, column: int, label: int) -> None:
        super().__init__(f"the weight of column {column} for label {label} would be infinite")
        self.column = column
        self.label = label


@dataclass(frozen=True)
class Templates:
    """The set B of figure 2: templates with equal entries, or a single one that holds all features.

    Attributes:
        entries: (templates, u) the entries b; None where the only template holds all features.
        entry: the one value of b where ``entries`` is None.
        scale: the largest absolute feature value, which h divides by.
        count: (u,) how many features share each column.
    """

    entries: csr_array[Any, tuple[int, int]] | None
    entry: float
    scale: float
    count: Ints

    @classmethod
    def of(
        cls,
        spelled: str | Sequence[Sequence[str]],
        X: Matrix,
        features: Sequence[str],
        columns: Columns,
        scale: float,
    ) -> Templates:
        """The templates of a request, scaled on the training examples.

        The entries of a template are as large as sum of b |h(x)| <= 1 allows in every example (eq. 6); the
        templates of ``sequential`` are single features with b = 1.

        Args:
            spelled: ``"parallel"``, ``"sequential"`` or groups of feature names.
            X: (g, r) training features.
            features: their names.
            columns: their distinct columns, which only ``"parallel"`` may have joined.
            scale: the largest absolute feature value, which h divides by.

        Raises:
            ParameterError: a group names an unknown feature, or one twice.
        """
        u = len(columns.first)
        entries = None
        entry = 1.0
        if spelled == "parallel":
            entry = float(_entries(X, csr_array(np.ones((X.shape[1], 1))), scale)[0])
        elif spelled == "sequential":
            # A row for each feature that occurs, in feature order, so that the first wins a tie.
            entries = csr_array((np.ones(u), np.argsort(columns.first), np.arange(u + 1)), shape=(u, u))
        else:
            held = _held(spelled, features)
            b = _entries(X, held.T.tocsr(), scale)
            held.data *= np.repeat(b, np.diff(held.indptr))
            entries = held[:, columns.first]
        return cls(entries, entry, scale, columns.count)

    def advance(self, weights: Floats, found: Weights, smoothing: float | None) -> bool:
        """Take a round of figure 2: for each label, along the template that promises most.

        The template is the argmax of sum b (√W₊ − √W₋)²; gains within 1e-12 of the best, times the label's
        largest W₊ + W₋, tie, and the first wins. Then α grows by b d, d = ½ ln((W₊ + ε)/(W₋ + ε)).

        Args:
            weights: (u, k) α over the scale of h; changed in place.
            found: W₊ and W₋ at this α.
            smoothing: ε; None for 1e-4 times the mean of W₊ + W₋ over the pairs where it is positive.

        Returns:
            whether any weight has changed.

        Raises:
            InfiniteWeightError: ε is 0 (or next to it) and one of the sums is 0, the other not.
        """
        epsilon = _SMOOTHING * found.mean(self.count) if smoothing is None else smoothing * self.scale
        if self.entries is None:
            return self._all(weights, found, epsilon)
        return self._best(self.entries, weights, found, epsilon)

    def _all(self, weights: Floats, found: Weights, epsilon: float) -> bool:
        changed = False
        certain = found.total < _FINITE * epsilon
        for rows, agree, differ in found.blocks(len(weights), epsilon):
            step = _log_ratio(agree, differ, smoothed=epsilon > 0)
            if not (certain or np.isfinite(step).all()):
                column, label = np.argwhere(~np.isfinite(step))[0]
                raise InfiniteWeightError(rows.start + int(column), int(label))
            step *= 0.5 * self.entry / self.scale
            changed = changed or bool(step.any())
            weights[rows] += step
        return changed

    def _best(
        self, entries: csr_array[Any, tuple[int, int]], weights: Floats, found: Weights, epsilon: float
    ) -> bool:
        agree, differ = np.empty_like(weights), np.empty_like(weights)
        for rows, some_agree, some_differ in found.blocks(len(weights)):
            agree[rows], differ[rows] = some_agree, some_differ
        if not weights.size:
            return False
        gains = entries @ np.square(np.sqrt(agree) - np.sqrt(differ))
        near = _TIE * (agree + differ).max(axis=0)
        picked = entries[np.argmax(gains >= gains.max(axis=0) - near, axis=0)].tocoo()
        labels, columns = picked.coords
        step = _log_ratio(
            agree[columns, labels] + epsilon, differ[columns, labels] + epsilon, smoothed=epsilon > 0
        )
        if not np.isfinite(step).all():
            place = int(np.argmin(np.isfinite(step)))
            raise InfiniteWeightError(int(columns[place]), int(labels[place]))
        weights[columns, labels] += picked.data * step * (0.5 / self.scale)
        return bool(step.any())


def _log_ratio(agree: Floats, differ: Floats, *, smoothed: bool) -> Floats:
    """The logarithm of W₊/W₋, 0 where both are 0 and infinite where one is; uses up both.

    Args:
        agree: W₊.
        differ: W₋.
        smoothed: neither is 0 anywhere.
    """
    if not smoothed:
        neither = (agree == 0) & (differ == 0)
        agree[neither] = differ[neither] = 1.0
    with np.errstate(divide="ignore", over="ignore"):
        agree /= differ
        result: Floats = np.log(agree, out=agree)
    return result


def _held(spelled: Sequence[Sequence[str]], features: Sequence[str]) -> csr_array[Any, tuple[int, int]]:
    """(templates, r) ones where a group names a feature."""
    index = {name: column for column, name in enumerate(features)}
    members = []
    for position, group in enumerate(spelled):
        seen: set[str] = set()
        for place, name in enumerate(group):
            pointer = f"/learner/template/{position}/{place}"
            if name not in index:
                raise ParameterError(
                    f"the template names {name!r}, which is not a feature; remove it", pointer
                )
            if name in seen:
                raise ParameterError(f"the template names {name!r} twice; name it once", pointer)
            seen.add(name)
        members.append(np.array([index[name] for name in group], dtype=np.int64))
    columns = np.concatenate(members)
    starts = np.cumsum([0, *map(len, members)])
    return csr_array((np.ones(len(columns)), columns, starts), shape=(len(members), len(features)))


def _entries(X: Matrix, held: csr_array[Any, tuple[int, int]], scale: float) -> Floats:
    """(templates,) b for (r, templates) members; 1 where no example has any of the features."""
    largest = np.zeros(held.shape[1])
    for start in range(0, X.shape[0], _ROWS):
        sums = (abs(X[start : start + _ROWS]) @ held).max(axis=0)
        largest = np.maximum(largest, sums.toarray().ravel())
    return scale / np.where(largest > 0, largest, scale)
