"""The terms that explain a score: the features, but words of the document instead of parts of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Floats, Ints, Matrix


@dataclass(frozen=True)
class ExplainedTerms:
    """The m terms that explain scores of one document.

    Attributes:
        names: (m,) the names of the terms.
        features: (f,) the features that contribute to some score, ascending.
        shares: (f, m) the share of each feature's contribution that counts for each term; rows add up to 1.
    """

    names: Sequence[str]
    features: Ints
    shares: Matrix

    @classmethod
    def of(
        cls, features: Ints, names: Sequence[str], words: Mapping[str, Mapping[str, float]]
    ) -> ExplainedTerms:
        """Return the terms.

        Args:
            features: (f,) features, ascending.
            names: (f,) their names.
            words: for features that are parts of words, how often each word of the document contains them.
                Other features stand for themselves, and so do parts of no word.

        >>> words = {"~ose": {"rose": 3.0, "nose": 1.0}}
        >>> terms = ExplainedTerms.of(np.array([3, 5]), ["rose", "~ose"], words)
        >>> terms.names, terms.shares.toarray().tolist()
        (['rose', 'nose'], [[1.0, 0.0], [0.75, 0.25]])
        """
        columns: dict[str, int] = {}
        data, indices, indptr = [], [], [0]
        for name in names:
            counts = words.get(name) or {name: 1.0}
            total = sum(counts.values())
            for term, count in counts.items():
                indices.append(columns.setdefault(term, len(columns)))
                data.append(count / total)
            indptr.append(len(indices))
        shares = csr_array((data, indices, indptr), shape=(len(names), len(columns)))
        return cls([*columns], features, shares)

    def weights(self, features: Ints, contributions: Floats) -> tuple[Ints, Floats]:
        """Return the terms to which some features contribute, and their weights, (t,) each.

        Args:
            features: the features.
            contributions: their contributions to a score.
        """
        rows = np.searchsorted(self.features, features)
        shares = self.shares[rows]
        terms = np.unique(shares.indices).astype(np.int64)
        weights: Floats = contributions @ shares
        return terms, weights[terms]
