"""Selects terms by scores that are computed from the terms and labels of the training part.

Scores are computed for one block of labels at a time, so that the matrix of terms by labels is never
completely in memory. Scores within 1e-12 of each other count as equal, so that rounding errors do not affect
the selection. Ties go to the term that sorts first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator
from scipy.sparse import coo_array, csr_array
from typing_extensions import TypeAliasType

from models.arrays import Bools, Floats, Ints, Labels, Matrix, with_data

BETA, GAMMA = 16.0, 4.0
_BLOCK_ENTRIES = 2**21
_DECIMALS = 12


class _SelectionParameters(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class NoSelection(_SelectionParameters):
    """All terms of the training part."""

    kind: Literal["none"] = "none"


class InformationGain(_SelectionParameters):
    """Terms whose presence has the highest information gain about labels (MP-Boost paper, section 5.1)."""

    kind: Literal["information_gain"]

    policy: Literal["round_robin", "max", "local"] = "round_robin"
    """`round_robin`: the union of the best terms of each label. `local`: the same, but each label uses only
    its own best terms (for `mp_boost`). `max`: the terms with the highest maximum score over all labels."""

    per_label: Annotated[int, Field(ge=1, le=2**31 - 1)] = 48
    """Number of terms per label, for `round_robin` and `local`."""

    count: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    """Total number of terms. Required for `max`, not allowed for other policies."""

    @model_validator(mode="after")
    def _check_count(self) -> Self:
        if self.policy == "max" and self.count is None:
            raise ValueError("policy max needs count, the total number of terms")
        if self.policy != "max" and self.count is not None:
            raise ValueError(f"policy {self.policy} uses per_label instead of count")
        return self


class Rocchio(_SelectionParameters):
    """Terms with the highest weight in each label's Rocchio prototype (AdaBoost.LC paper)."""

    kind: Literal["rocchio"]

    per_label: Annotated[int, Field(ge=1, le=2**31 - 1)] = 100
    """Maximum number of terms per label. Only terms with a positive score are selected."""


class DocumentFrequency(_SelectionParameters):
    """Terms that occur in the most documents (MLPP paper)."""

    kind: Literal["document_frequency"]

    count: Annotated[int, Field(ge=1, le=2**31 - 1)] = 25_000
    """Total number of terms."""


SelectionParameters = TypeAliasType(
    "SelectionParameters",
    Annotated[
        NoSelection | InformationGain | Rocchio | DocumentFrequency,
        Field(discriminator="kind", description="Which terms become features, discriminated by `kind`."),
    ],
)


@dataclass(frozen=True)
class Selection:
    """The selected terms.

    Attributes:
        kept: indices of the selected terms, ascending.
        candidates: (len(kept), k) true if the term is among the best terms of the label; only for the policy
            ``local``.
    """

    kept: Ints
    candidates: csr_array[Any, tuple[int, int]] | None = None


def select(
    parameters: SelectionParameters,
    counts: Matrix,
    weights: Matrix,
    Y: Labels,
    unknown: Labels | None = None,
) -> Selection:
    """Select terms. A document does not count for the scores of the labels that are unknown for it.

    Args:
        parameters: the kind of selection.
        counts: (g, r) occurrences of terms. Only the positions of stored entries matter.
        weights: (g, r) weights of the terms in the training documents, for Rocchio's score.
        Y: (g, k) relevant labels.
        unknown: (g, k) unknown labels; None if there are none.
    """
    trained = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))
    if 0 < len(trained) < Y.shape[1]:
        # No term says anything about a label without an example.
        selection = select(
            parameters, counts, weights, Y[:, trained], None if unknown is None else unknown[:, trained]
        )
        return Selection(selection.kept, _among_all_labels(selection.candidates, trained, Y.shape[1]))
    if isinstance(parameters, InformationGain):
        if parameters.policy == "max":
            best = np.zeros(counts.shape[1])
            for _, scores in _information_gain_blocks(counts, Y, unknown):
                best = np.maximum(best, scores.max(axis=1))
            return Selection(np.sort(_best(best, parameters.count or 0)))
        return _per_label(
            _information_gain_blocks(counts, Y, unknown),
            Y.shape[1],
            parameters.per_label,
            local=parameters.policy == "local",
        )
    if isinstance(parameters, Rocchio):
        blocks = _rocchio_blocks(weights, Y, unknown)
        return _per_label(blocks, Y.shape[1], parameters.per_label, positive=True)
    if isinstance(parameters, DocumentFrequency):
        return Selection(np.sort(_best(document_frequency(counts).astype(np.float64), parameters.count)))
    return Selection(np.arange(counts.shape[1]))


def _among_all_labels(
    candidates: csr_array[Any, tuple[int, int]] | None, labels: Ints, n_labels: int
) -> csr_array[Any, tuple[int, int]] | None:
    """Return candidates of some labels as candidates of all, with no candidate for the other labels."""
    if candidates is None:
        return None
    rows = candidates.tocoo()
    places = (rows.row, labels[rows.col])
    return csr_array(coo_array((rows.data, places), shape=(candidates.shape[0], n_labels)))


def document_frequency(counts: Matrix) -> Ints:
    """Return (r,) the number of documents that contain each term."""
    return np.bincount(counts.indices, minlength=counts.shape[1]).astype(np.int64)


def information_gain(counts: Matrix, Y: Labels, unknown: Labels | None = None) -> Floats:
    """Return the information gain of every term about every label, (r, k), in nats, rounded to 1e-12.

    IG(t, c) sums P(t, c) · ln(P(t, c) / (P(t) · P(c))) over presence and absence of both, with 0 · ln 0 = 0
    (MP-Boost paper, section 5.1). Probabilities are fractions of the documents for which c is known.

    >>> X = csr_array([[1, 1], [1, 0], [0, 1], [0, 0]])
    >>> Y = csr_array(np.array([[1], [1], [0], [0]], dtype=np.int8))
    >>> information_gain(X, Y).round(4).tolist()
    [[0.6931], [0.0]]
    """
    blocks = [scores for _, scores in _information_gain_blocks(counts, Y, unknown)]
    return np.concatenate(blocks, axis=1) if blocks else np.zeros((counts.shape[1], 0))


def _information_gain_blocks(
    counts: Matrix, Y: Labels, unknown: Labels | None
) -> Iterator[tuple[int, Floats]]:
    """Yield the first label of each block of labels, and the (r, block) scores.

    g · IG is the sum of n ln n over the four cells of the contingency table of term and label, minus the sum
    over its margins, plus g ln g. Each n is an integer up to g, so n ln n comes from a table. If labels are
    unknown, g is the number of documents for which the label is known.
    """
    g: Any = counts.shape[0]
    numbers = np.arange(1, g + 1, dtype=np.float64)
    n_log_n = np.concatenate(([0.0], numbers * np.log(numbers)))
    all_present = present = document_frequency(counts)[:, None]
    margin_present = n_log_n[present] + n_log_n[g - present]
    presence = with_data(counts, np.ones(counts.nnz, dtype=np.int64)).T.tocsr()
    columns = Y.tocsc().astype(np.int64)
    unknown_columns = None if unknown is None else unknown.tocsc()
    for first, last in _blocks(counts.shape[1], Y.shape[1]):
        block = columns[:, first:last]
        positive = np.asarray(block.sum(axis=0), dtype=np.int64).ravel()[None, :]
        both = (presence @ block).toarray()
        if unknown_columns is not None:
            missing = unknown_columns[:, first:last].astype(np.int64)
            g = counts.shape[0] - np.asarray(missing.sum(axis=0), dtype=np.int64).ravel()[None, :]
            present = all_present - (presence @ missing).toarray()
            margin_present = n_log_n[present] + n_log_n[g - present]
        cells = (
            n_log_n[both]
            + n_log_n[present - both]
            + n_log_n[positive - both]
            + n_log_n[g - present - positive + both]
        )
        margins = margin_present + (n_log_n[positive] + n_log_n[g - positive])
        yield first, np.maximum(np.round((cells - margins + n_log_n[g]) / np.maximum(g, 1), _DECIMALS), 0.0)


def rocchio_scores(weights: Matrix, Y: Labels, unknown: Labels | None = None) -> Floats:
    """Return Rocchio's score of every term for every label, (r, k).

    The score is max(0, 16 · mean weight in the label's documents − 4 · mean weight in the other documents).
    The mean over no document is 0. Documents for which the label is unknown are no part of a mean. This is
    the adaptation of Rocchio's formula by Ittner, Lewis and Ahn (1995), which the AdaBoost.LC paper uses.

    >>> X = csr_array([[1.0, 1.0], [0.0, 1.0]])
    >>> rocchio_scores(X, csr_array(np.array([[1], [0]], dtype=np.int8))).tolist()
    [[16.0], [12.0]]
    """
    blocks = [scores for _, scores in _rocchio_blocks(weights, Y, unknown)]
    return np.concatenate(blocks, axis=1) if blocks else np.zeros((weights.shape[1], 0))


def _rocchio_blocks(weights: Matrix, Y: Labels, unknown: Labels | None) -> Iterator[tuple[int, Floats]]:
    g: Any = weights.shape[0]
    total = np.asarray(weights.sum(axis=0), dtype=np.float64).ravel()[:, None]
    by_term = weights.T.tocsr()
    columns = Y.tocsc().astype(np.float64)
    unknown_columns = None if unknown is None else unknown.tocsc()
    for first, last in _blocks(weights.shape[1], Y.shape[1]):
        block = columns[:, first:last]
        positive = np.asarray(block.sum(axis=0)).ravel()[None, :]
        inside = (by_term @ block).toarray()
        outside = total - inside
        if unknown_columns is not None:
            missing = unknown_columns[:, first:last].astype(np.float64)
            g = weights.shape[0] - np.asarray(missing.sum(axis=0)).ravel()[None, :]
            outside -= (by_term @ missing).toarray()
        scores = BETA * inside / np.maximum(positive, 1) - GAMMA * outside / np.maximum(g - positive, 1)
        yield first, np.maximum(scores, 0.0)


def _blocks(n_terms: int, n_labels: int) -> Iterator[tuple[int, int]]:
    size = max(1, _BLOCK_ENTRIES // max(1, n_terms))
    for first in range(0, n_labels, size):
        yield first, min(first + size, n_labels)


def _per_label(
    blocks: Iterator[tuple[int, Floats]],
    n_labels: int,
    per_label: int,
    *,
    local: bool = False,
    positive: bool = False,
) -> Selection:
    """Return the union of the best terms of each label (Forman's round robin)."""
    best_terms: list[Ints] = [np.empty(0, dtype=np.int64)] * n_labels
    for first, scores in blocks:
        for j, column in enumerate(scores.T, start=first):
            best = _best(column, per_label)
            best_terms[j] = best[column[best] > 0] if positive else best
    kept = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *best_terms]))
    if not local:
        return Selection(kept)
    rows = np.searchsorted(kept, np.concatenate(best_terms))
    labels = np.repeat(np.arange(n_labels), [len(best) for best in best_terms])
    allowed = coo_array((np.ones(len(rows), dtype=np.bool_), (rows, labels)), shape=(len(kept), n_labels))
    return Selection(kept, csr_array(allowed))


def _best(scores: Floats, count: int) -> Ints:
    """Return the indices of the highest scores. Among equal scores, smaller indices come first."""
    if count >= len(scores):
        return np.arange(len(scores))
    top = float(scores.max())
    rounded = np.round(scores / top, _DECIMALS) if top > 0 else scores
    threshold = np.partition(rounded, len(rounded) - count)[len(rounded) - count]
    above: Bools = rounded > threshold
    tied = np.flatnonzero(rounded == threshold)[: count - int(above.sum())]
    return np.concatenate([np.flatnonzero(above), tied])
