"""From occurrences of terms to their weights in a document.

With c the occurrences of a term in a document (each counted with the weight of its field), g the number of
training documents, df the number of those that hold the term, and natural logarithms:

- ``binary``: 1.
- ``tf``: c.
- ``tfidf``: c · ln(g / df). Nothing is done about length here; ``scaling: unit`` does that.
- ``pivoted``: ln(g / df) · tf, with the tf of the AdaBoost.LC paper's experiments:
  (1 + ln c) / (1 + ln(mean c)) / (1 − slope + slope · m / mean m), where m is the number of distinct terms
  of the document, mean c = (sum of c over its terms) / m, mean m the mean of m over the training documents,
  and slope is .3. The m and mean c of a document count all its terms, known and selected or not, as the
  paper measures them before it selects.

The paper defines idf by "the number of times the term appears throughout the corpus"; taken by the letter
that turns negative for every term with more occurrences than there are documents, so documents are counted,
as the name says. Where fields of small weight push c below 1, 1 + ln c gives way to c, which meets
it at 1 with the same slope and stays positive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from models.arrays import Floats, Matrix, with_data

Weights: TypeAlias = Literal["binary", "tf", "tfidf", "pivoted"]

SLOPE = 0.3


@dataclass(frozen=True)
class DocumentLengths:
    """What pivoted weights know of n documents.

    Attributes:
        distinct: (n,) number of distinct terms.
        mean_count: (n,) mean occurrences of a term that occurs; 1 for a document without terms.
    """

    distinct: Floats
    mean_count: Floats

    @classmethod
    def of(cls, counts: Matrix) -> DocumentLengths:
        """The lengths of documents from (n, any terms) counts without explicit zeros."""
        distinct = np.diff(counts.indptr).astype(np.float64)
        total = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        mean_count = np.divide(total, distinct, out=np.ones_like(total), where=distinct > 0)
        return cls(distinct, mean_count)


def inverse_document_frequency(frequency: Floats, n_documents: int) -> Floats:
    """ln(g / df) of each term, from (r,) document frequencies of at least 1."""
    weights: Floats = np.log(n_documents / frequency)
    return weights


def weigh(
    counts: Matrix, kind: Weights, idf: Floats, lengths: DocumentLengths, mean_distinct: float
) -> Matrix:
    """Replaces counts by weights.

    Args:
        counts: (n, r) occurrences of the features.
        kind: the weights wanted.
        idf: (r,) inverse document frequencies in the training part.
        lengths: of the n documents, over all their terms.
        mean_distinct: mean number of distinct terms of a training document.

    Returns:
        (n, r) weights; terms of every training document weigh 0 under ``tfidf`` and ``pivoted`` and are not
        stored.
    """
    if kind == "binary":
        data = np.ones_like(counts.data)
    elif kind == "tf":
        data = counts.data
    elif kind == "tfidf":
        data = counts.data * idf[counts.indices]
    else:
        pivot = 1.0 - SLOPE + SLOPE * lengths.distinct / mean_distinct
        by_document = _damped(lengths.mean_count) * pivot
        rows = np.repeat(by_document, np.diff(counts.indptr))
        data = idf[counts.indices] * _damped(counts.data) / rows
    weights = counts if data is counts.data else with_data(counts, data)
    if not data.all():
        weights = weights.copy()
        weights.eliminate_zeros()
    return weights


def _damped(counts: Floats) -> Floats:
    """1 + ln c, and c itself below 1."""
    damped: Floats = np.where(counts >= 1, 1 + np.log(np.maximum(counts, 1)), counts)
    return damped
