"""Converts occurrences of terms to weights.

Let c be the number of occurrences of a term in a document, each multiplied by the weight of its field, g the
number of training documents, and df the number of training documents that contain the term. All logarithms
are natural.

- ``binary``: 1.
- ``tf``: c.
- ``tfidf``: c · idf, without length normalization; use ``scaling: unit`` for that.
- ``pivoted``: idf · tf, with the tf of the AdaBoost.LC paper's experiments:
  (1 + ln c) / (1 + ln(mean c)) / (1 − slope + slope · m / mean m). Here m is the number of distinct terms of
  the document, mean c = (sum of c over its terms) / m, mean m is the mean of m over the training documents,
  and slope is 0.3. The m and mean c of a document include all its terms, whether known and selected or not,
  because the paper computes them before the selection.

The inverse document frequency idf is ln(g / df), or smoothed: 1 + ln((1 + g) / (1 + df)), as in scikit-learn.
The smoothed one is never 0, so that terms of all documents count, too. With sublinear ``tf`` and ``tfidf``,
1 + ln c replaces c.

The paper defines idf by "the number of times the term appears throughout the corpus". Taken literally, idf is
negative for a term with more occurrences than there are documents, so this module counts documents instead.
If c is below 1, because of fields with small weights, c replaces 1 + ln c. Both functions have the same value
and slope at 1, and c stays positive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from typing_extensions import TypeAliasType

from models.arrays import AnyArray, Floats, Ints, Matrix, with_data
from models.text.counting import TermCounts

Weighting = TypeAliasType(
    "Weighting",
    Annotated[
        Literal["binary", "tf", "tfidf", "pivoted"],
        Field(description="How the occurrences of a term become a feature value."),
    ],
)

SLOPE = 0.3


@dataclass(frozen=True)
class DocumentLengths:
    """Lengths of n documents, for pivoted weights.

    Attributes:
        distinct: (n,) number of distinct terms.
        mean_count: (n,) mean number of occurrences of the terms of the document; 1 if it has no terms.
    """

    distinct: Floats
    mean_count: Floats

    @classmethod
    def of(cls, counts: Matrix) -> DocumentLengths:
        """Compute the lengths from counts of all terms, without explicit zeros."""
        distinct = np.diff(counts.indptr).astype(np.float64)
        total = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        mean_count = np.divide(total, distinct, out=np.ones_like(total), where=distinct > 0)
        return cls(distinct, mean_count)

    def norms(self, mean_distinct: float) -> Floats:
        """Return (n,) what pivoted weights are divided by."""
        return _damped(self.mean_count) * (1.0 - SLOPE + SLOPE * self.distinct / mean_distinct)


def inverse_document_frequency(frequency: Floats, n_documents: int, *, smooth: bool = False) -> Floats:
    """Return ln(g / df) of each term.

    Args:
        frequency: (r,) document frequencies, at least 1.
        n_documents: number g of documents.
        smooth: whether to return 1 + ln((1 + g) / (1 + df)) instead.
    """
    if smooth:
        smoothed: Floats = 1.0 + np.log((1 + n_documents) / (1 + frequency))
        return smoothed
    weights: Floats = np.log(n_documents / frequency)
    return weights


def weigh(
    counts: Matrix,
    kind: Weighting,
    idf: Floats,
    lengths: DocumentLengths,
    mean_distinct: float,
    *,
    sublinear: bool = False,
) -> Matrix:
    """Convert counts to weights.

    Args:
        counts: (n, r) occurrences of the features.
        kind: kind of the weights.
        idf: (r,) inverse document frequencies in the training part.
        lengths: lengths of the n documents, from all their terms.
        mean_distinct: mean number of distinct terms of a training document.
        sublinear: whether 1 + ln c replaces c, for ``tf`` and ``tfidf``.

    Returns:
        (n, r) weights without explicit zeros. With ``tfidf`` and ``pivoted``, a term that occurs in every
        training document has the weight 0, unless idf is smoothed.
    """
    if kind == "pivoted":
        norms = np.repeat(lengths.norms(mean_distinct), np.diff(counts.indptr))
        data = _pivoted(counts.data, idf[counts.indices], norms)
    else:
        occurrences = _damped(counts.data) if sublinear else counts.data
        data = _plain(occurrences, counts.indices, kind, idf)
    weights = counts if data is counts.data else with_data(counts, data)
    if not data.all():
        weights = weights.copy()
        weights.eliminate_zeros()
    return weights


def weigh_one(
    counts: TermCounts, kind: Weighting, idf: Floats, mean_distinct: float, *, sublinear: bool = False
) -> tuple[Ints, Floats]:
    """Convert the counts of one document to weights, exactly as ``weigh`` does.

    Returns:
        The terms with a weight other than 0, and the weights.
    """
    terms = counts.terms
    if kind == "pivoted":
        mean_count = counts.total / counts.distinct if counts.distinct else 1.0
        damped = 1 + float(np.log(mean_count)) if mean_count >= 1 else mean_count
        norm = damped * (1.0 - SLOPE + SLOPE * counts.distinct / mean_distinct)
        data = _pivoted(counts.counts, idf[terms], norm)
    else:
        data = _plain(_damped(counts.counts) if sublinear else counts.counts, terms, kind, idf)
    if not data.all():
        kept = data != 0
        terms, data = terms[kept], data[kept]
    return terms, data


def _plain(counts: Floats, terms: AnyArray, kind: Weighting, idf: Floats) -> Floats:
    """Return the weights of some terms that do not depend on the length of the document."""
    if kind == "binary":
        return np.ones_like(counts)
    return counts if kind == "tf" else counts * idf[terms]


def _pivoted(counts: Floats, idf: Floats, norms: Floats | float) -> Floats:
    """Return pivoted weights from the counts and idf of some terms and the norms of their documents."""
    return idf * _damped(counts) / norms


def _damped(counts: Floats) -> Floats:
    """Return 1 + ln c, or c if it is below 1."""
    damped: Floats = np.where(counts >= 1, 1 + np.log(np.maximum(counts, 1)), counts)
    return damped
