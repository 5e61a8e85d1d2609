"""Templates: which features AdaBoost.LC updates together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array

from models.arrays import Floats, Ints, Matrix
from models.errors import ParameterError

FeatureNames: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1)]
TemplateSpelling: TypeAlias = (
    Literal["parallel", "sequential"] | Annotated[tuple[FeatureNames, ...], Field(min_length=1)]
)

_TIE = 1e-12
"""Gains this close, relative to the weight that they are sums of, are equal: rounding chooses no template."""

_ROWS = 8_192


@dataclass(frozen=True)
class Templates:
    """The set B of figure 2: templates with equal entries, or a single one that holds all features.

    Attributes:
        entries: (templates, r) the entries b; None where the only template holds all features.
        entry: the one value of b where ``entries`` is None.
    """

    entries: csr_array[Any, tuple[int, int]] | None
    entry: float = 1.0

    @classmethod
    def of(
        cls, spelled: str | Sequence[Sequence[str]], X: Matrix, features: Sequence[str], scale: float
    ) -> Templates:
        """The templates of a request, scaled on the training examples.

        The entries of a template are as large as sum of b |h(x)| <= 1 allows in every example (eq. 6); the
        templates of ``sequential`` are single features with b = 1.

        Args:
            spelled: ``"parallel"``, ``"sequential"`` or groups of feature names.
            X: (g, r) training features.
            features: their names.
            scale: what h divides features by.

        Raises:
            ParameterError: a group names an unknown feature, or one twice.
        """
        r = X.shape[1]
        if spelled == "parallel":
            return cls(None, float(_entries(X, csr_array(np.ones((r, 1))), scale)[0]))
        if spelled == "sequential":
            ones = np.ones(r)
            return cls(csr_array((ones, np.arange(r), np.arange(r + 1)), shape=(r, r)))
        members = _members(spelled, features)
        columns = np.concatenate(members)
        starts = np.cumsum([0, *map(len, members)])
        held = csr_array((np.ones(len(columns)), columns, starts), shape=(len(members), r))
        held.sort_indices()
        b = _entries(X, held.T.tocsr(), scale)
        return cls(csr_array((np.repeat(b, np.diff(starts)), held.indices, held.indptr), shape=held.shape))

    def update(self, agree: Floats, differ: Floats, d: Floats, total: Floats) -> Floats:
        """The step b d along the template that each label chooses: the argmax of sum b (√W₊ − √W₋)².

        Args:
            agree: (r, k) W₊.
            differ: (r, k) W₋.
            d: (r, k); may be used up.
            total: (k,) the weight of each label, which bounds its gains.

        Returns:
            (r, k) what α grows by. Gains within 1e-12 of the best, times ``total``, tie; the first wins.
        """
        if self.entries is None:
            d *= self.entry
            return d
        gains = self.entries @ np.square(np.sqrt(agree) - np.sqrt(differ))
        chosen = np.argmax(gains >= gains.max(axis=0) - _TIE * total, axis=0)
        # Row l of the picked entries is the template of label l.
        picked = self.entries[chosen].tocoo()
        change = np.zeros_like(d)
        change[picked.col, picked.row] = picked.data * d[picked.col, picked.row]
        return change


def _members(spelled: Sequence[Sequence[str]], features: Sequence[str]) -> list[Ints]:
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
    return members


def _entries(X: Matrix, held: csr_array[Any, tuple[int, int]], scale: float) -> Floats:
    """(templates,) b for (r, templates) members; 1 where no example has any of the features."""
    largest = np.zeros(held.shape[1])
    for start in range(0, X.shape[0], _ROWS):
        sums = (abs(X[start : start + _ROWS]) @ held).max(axis=0)
        largest = np.maximum(largest, sums.toarray().ravel())
    return scale / np.where(largest > 0, largest, scale)
