"""Templates: which features AdaBoost.LC updates together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array

from models.arrays import Floats, Ints, Matrix
from models.boosting.distinct_columns import DistinctColumns
from models.boosting.weight_sums import WeightSums
from models.errors import ParameterError

FeatureNames: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1)]
FeatureEntries: TypeAlias = Annotated[
    dict[str, Annotated[float, Field(ge=1e-9, le=1e9)]], Field(min_length=1)
]
TemplateParameter: TypeAlias = (
    Literal["parallel", "sequential"]
    | Annotated[tuple[FeatureNames | FeatureEntries, ...], Field(min_length=1)]
)

Template: TypeAlias = Sequence[str] | Mapping[str, float]
"""Names of features whose entries are equal, or the relative entry of each feature."""

_TIE = 1e-12
"""Gains this close, relative to the largest W₊ + W₋, are equal, so that rounding never chooses a template."""

_SAFE_RATIO = 1e300
"""The ratio of two smoothed sums is finite and positive if no sum is so many times the smoothing."""

_DEFAULT_SMOOTHING = 1e-4
"""Default smoothing, as a share of the mean of W₊ + W₋ over the pairs in which it is positive."""

_BATCH_ROWS = 8_192


class InfiniteWeightError(ArithmeticError):
    """Without smoothing, a weight would be infinite.

    Args:
        column: the weight's column.
        label: the weight's label.
    """

    def __init__(self, column: int, label: int) -> None:
        super().__init__(f"the weight of column {column} for label {label} would be infinite")
        self.column = column
        self.label = label


@dataclass(frozen=True)
class Templates:
    """The set B of figure 2: templates with entries, or one template with equal entries of all features.

    Attributes:
        entries: (templates, u) the entries b; None for one template with all features.
        entry: the value of every b if ``entries`` is None.
        scale: the largest absolute feature value, the divisor of h.
        multiplicity: (u,) how many features have each column.
    """

    entries: csr_array[Any, tuple[int, int]] | None
    entry: float
    scale: float
    multiplicity: Ints

    @classmethod
    def of(
        cls,
        template: str | Sequence[Template],
        X: Matrix,
        features: Sequence[str],
        columns: DistinctColumns,
        scale: float,
    ) -> Templates:
        """The templates that a parameter stands for, scaled on the training examples.

        The given entries of a template are multiplied by the largest number for which the sum of b |h(x)| is
        at most 1 in every example (eq. 6). The templates of ``"sequential"`` are single features with b = 1.

        Args:
            template: ``"parallel"``, ``"sequential"``, or templates as names of features, whose entries are
                equal, or as a mapping from names to entries, of which only the proportions matter.
            X: (g, r) training features.
            features: their names.
            columns: their distinct columns, merged only for ``"parallel"``.
            scale: the largest absolute feature value, the divisor of h.

        Raises:
            ParameterError: a template names an unknown feature, or names a feature twice.
        """
        u = len(columns.first_feature)
        entries = None
        entry = 1.0
        if template == "parallel":
            entry = float(_factors(X, csr_array(np.ones((X.shape[1], 1))), scale)[0])
        elif template == "sequential":
            # A row for each feature that occurs, in feature order, so that the first feature wins a tie.
            entries = csr_array(
                (np.ones(u), np.argsort(columns.first_feature), np.arange(u + 1)), shape=(u, u)
            )
        else:
            given = _given_entries(template, features)
            given.data *= np.repeat(_factors(X, given.T.tocsr(), scale), np.diff(given.indptr))
            entries = given[:, columns.first_feature]
        return cls(entries, entry, scale, columns.multiplicity)

    def update(self, weights: Floats, sums: WeightSums, smoothing: float | None) -> bool:
        """One update of figure 2: for each label, α changes along the template with the largest gain.

        The gain of a template is the sum of b (√W₊ − √W₋)². Gains that differ from the largest by less than
        1e-12 times the label's largest W₊ + W₋ are equal, and the first template wins. Then α grows by b d,
        with d = ½ ln((W₊ + ε)/(W₋ + ε)).

        Args:
            weights: (u, k) α over the scale of h; changed in place.
            sums: W₊ and W₋ at this α.
            smoothing: ε; None for 1e-4 times the mean of W₊ + W₋ over the pairs in which it is positive.

        Returns:
            Whether any weight changed.

        Raises:
            InfiniteWeightError: ε is 0 (or almost 0), and one of W₊ and W₋ is 0 but not the other.
        """
        epsilon = (
            _DEFAULT_SMOOTHING * sums.mean(self.multiplicity) if smoothing is None else smoothing * self.scale
        )
        if self.entries is None:
            return self._update_all(weights, sums, epsilon)
        return self._update_best(self.entries, weights, sums, epsilon)

    def _update_all(self, weights: Floats, sums: WeightSums, epsilon: float) -> bool:
        changed = False
        surely_finite = sums.total < _SAFE_RATIO * epsilon
        for rows, success, failure in sums.blocks(len(weights), epsilon):
            step = _log_ratio(success, failure, smoothed=epsilon > 0)
            if not (surely_finite or np.isfinite(step).all()):
                column, label = np.argwhere(~np.isfinite(step))[0]
                raise InfiniteWeightError(rows.start + int(column), int(label))
            step *= 0.5 * self.entry / self.scale
            changed = changed or bool(step.any())
            weights[rows] += step
        return changed

    def _update_best(
        self, entries: csr_array[Any, tuple[int, int]], weights: Floats, sums: WeightSums, epsilon: float
    ) -> bool:
        success, failure = np.empty_like(weights), np.empty_like(weights)
        for rows, block_success, block_failure in sums.blocks(len(weights)):
            success[rows], failure[rows] = block_success, block_failure
        if not weights.size:
            return False
        gains = entries @ np.square(np.sqrt(success) - np.sqrt(failure))
        tolerance = _TIE * (success + failure).max(axis=0)
        chosen = entries[np.argmax(gains >= gains.max(axis=0) - tolerance, axis=0)].tocoo()
        labels, columns = chosen.coords
        step = _log_ratio(
            success[columns, labels] + epsilon, failure[columns, labels] + epsilon, smoothed=epsilon > 0
        )
        if not np.isfinite(step).all():
            place = int(np.argmin(np.isfinite(step)))
            raise InfiniteWeightError(int(columns[place]), int(labels[place]))
        weights[columns, labels] += chosen.data * step * (0.5 / self.scale)
        return bool(step.any())


def _log_ratio(success: Floats, failure: Floats, *, smoothed: bool) -> Floats:
    """ln(W₊/W₋); 0 if both are 0, and infinite if one of them is 0. **Overwrites** both arrays.

    Args:
        success: W₊.
        failure: W₋.
        smoothed: whether no W₊ and no W₋ is 0.
    """
    if not smoothed:
        both_zero = (success == 0) & (failure == 0)
        success[both_zero] = failure[both_zero] = 1.0
    with np.errstate(divide="ignore", over="ignore"):
        success /= failure
        log_ratio: Floats = np.log(success, out=success)
    return log_ratio


def _given_entries(templates: Sequence[Template], features: Sequence[str]) -> csr_array[Any, tuple[int, int]]:
    """(templates, r) the entry of each feature as the parameter gives it; 1 in a list of names."""
    index = {name: column for column, name in enumerate(features)}
    columns: list[int] = []
    entries: list[float] = []
    starts = [0]
    for position, template in enumerate(templates):
        seen: set[str] = set()
        for place, name in enumerate(template):
            key = name.replace("~", "~0").replace("/", "~1") if isinstance(template, Mapping) else place
            pointer = f"/learner/template/{position}/{key}"
            if name not in index:
                raise ParameterError(
                    f"the template names {name!r}, which is not a feature; remove it", pointer
                )
            if name in seen:
                raise ParameterError(f"the template names {name!r} twice; name it once", pointer)
            seen.add(name)
            columns.append(index[name])
            entries.append(template[name] if isinstance(template, Mapping) else 1.0)
        starts.append(len(columns))
    return csr_array((np.array(entries), columns, starts), shape=(len(templates), len(features)))


def _factors(X: Matrix, given: csr_array[Any, tuple[int, int]], scale: float) -> Floats:
    """(templates,) what multiplies given entries, (r, templates); 1 if no example has any of the features."""
    largest = np.zeros(given.shape[1])
    for start in range(0, X.shape[0], _BATCH_ROWS):
        sums = (abs(X[start : start + _BATCH_ROWS]) @ given).max(axis=0)
        largest = np.maximum(largest, sums.toarray().ravel())
    return scale / np.where(largest > 0, largest, scale)
