"""The terms that explain a score: the features, but words of the document instead of parts of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class ExplainedTerms:
    """The m terms that explain scores of one document, and the e shares of features that count for terms.

    Attributes:
        names: (m,) the names of the terms.
        features: (f,) the features that contribute to some score, ascending.
        rows: (e,) the place in ``features`` of the feature of each share.
        terms: (e,) the term of each share.
        shares: (e,) the shares; those of a feature add up to 1.
    """

    names: Sequence[str]
    features: Ints
    rows: Ints
    terms: Ints
    shares: Floats

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
        >>> terms.names, terms.rows.tolist(), terms.terms.tolist(), terms.shares.tolist()
        (['rose', 'nose'], [0, 1, 1], [0, 0, 1], [1.0, 0.75, 0.25])
        """
        if not words:
            each = np.arange(len(features))
            return cls(names, features, each, each, np.ones(len(features)))
        numbers: dict[str, int] = {}
        rows, terms, shares = [], [], []
        for row, name in enumerate(names):
            counts = words.get(name) or {name: 1.0}
            total = sum(counts.values())
            for term, count in counts.items():
                rows.append(row)
                terms.append(numbers.setdefault(term, len(numbers)))
                shares.append(count / total)
        return cls([*numbers], features, np.array(rows), np.array(terms), np.array(shares))

    def weights(self, features: Ints, contributions: Floats) -> tuple[Ints, Floats]:
        """Return the terms to which some features contribute, and their weights, (t,) each.

        Args:
            features: the features.
            contributions: their contributions to a score.
        """
        contribution = np.zeros(len(self.features))
        contributes = np.zeros(len(self.features), dtype=np.bool_)
        rows = np.searchsorted(self.features, features)
        contribution[rows], contributes[rows] = contributions, True
        parts = contribution[self.rows] * self.shares
        weights = np.bincount(self.terms, parts, minlength=len(self.names)).astype(np.float64, copy=False)
        explains = np.zeros(len(self.names), dtype=np.bool_)
        explains[self.terms[contributes[self.rows]]] = True
        terms = np.flatnonzero(explains).astype(np.int64, copy=False)
        return terms, weights[terms]
