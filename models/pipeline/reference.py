"""What a fitted pipeline predicts for documents like those of its training: the reference of drift."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from models.arrays import Floats, Ints, Labels
from models.calibration import Calibration
from models.decisions import HeldOut, LabelSetRule

SHARE_BINS = 100
"""Number of bins of equal width between 0 and 1 in which shares and probabilities are counted."""

ROUNDING = 1e-9
"""What is added to the number of a bin before it is rounded down."""

_BLOCK_SCORES = 2**18
"""Scores that are converted at once, which limits the memory."""

Histogram = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=SHARE_BINS, max_length=SHARE_BINS)]


class Reference(BaseModel):
    """What a fitted pipeline predicts for documents like those of its training."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

    source: Literal["folds", "validation", "test_then_train", "training"]
    """Where the label sets come from: predictions for held-out folds of the training part; predictions for
    validation examples; predictions for either of them and for examples of partial fits before they were
    learned; or, if nothing was held out, the true label sets of the training part."""
    examples: int = Field(ge=0)
    """Number of examples."""
    label_counts: list[Annotated[int, Field(ge=0)]]
    """Number of examples with each label, in label order."""
    without_label: int = Field(ge=0)
    """Number of examples with an empty label set."""
    set_probabilities: Histogram | None = None
    """Number of examples by the probability of their label set, in 100 bins of equal width. Absent if the
    pipeline is not calibrated."""
    unknown_terms: Histogram | None = None
    """Number of training documents by the share of their terms that would be unknown if the document was held
    out, in 100 bins of equal width. Absent if the features are no terms."""
    mean_unknown_terms: float | None = Field(default=None, ge=0, le=1)
    """Mean of these shares. Absent if no document has terms."""


def bins_of(shares: Floats) -> Ints:
    """Return the bin of each share or probability. The upper bound 1 belongs to the last bin.

    >>> bins_of(np.array([0.0, 0.005, 0.29, 1.0])).tolist()
    [0, 0, 29, 99]
    """
    # A multiple of the width, such as 0.29, must not fall below the bound of its own bin by rounding.
    bins: Ints = np.floor(shares * SHARE_BINS + ROUNDING).astype(np.int64)
    return np.minimum(bins, SHARE_BINS - 1)


def histogram(shares: Floats) -> list[int]:
    """Count shares or probabilities in ``SHARE_BINS`` bins of equal width; NaN is not counted."""
    counted = bins_of(shares[~np.isnan(shares)])
    return [int(count) for count in np.bincount(counted, minlength=SHARE_BINS)]


def held_out_reference(held_out: HeldOut, rule: LabelSetRule, calibration: Calibration | None) -> Reference:
    """Count what is predicted for held-out examples.

    Args:
        held_out: the held-out scores.
        rule: how scores become label sets.
        calibration: converts scores to probabilities; None if there are none.
    """
    h, k = held_out.scores.shape
    counts = np.zeros(k, dtype=np.int64)
    without = 0
    probabilities = np.empty(h)
    size = max(1, _BLOCK_SCORES // max(1, k))
    for first in range(0, h, size):
        rows = slice(first, first + size)
        predicted = rule.predicted(held_out.scores[rows])
        counts += np.count_nonzero(predicted, axis=0)
        without += int(np.count_nonzero(~predicted.any(axis=1)))
        if calibration is not None:
            probabilities[rows] = calibration.probabilities(held_out.scores[rows], predicted)[1]
    return Reference(
        source=held_out.source,
        examples=h,
        label_counts=counts.tolist(),
        without_label=without,
        set_probabilities=None if calibration is None else histogram(probabilities),
    )


def training_reference(Y: Labels) -> Reference:
    """Count the true labels of g training examples, (g, k)."""
    return Reference(
        source="training",
        examples=Y.shape[0],
        label_counts=np.bincount(Y.indices, minlength=Y.shape[1]).tolist(),
        without_label=int(np.count_nonzero(np.diff(Y.indptr) == 0)),
    )


def with_unknown_terms(reference: Reference, shares: Floats | None) -> Reference:
    """Add the share of unknown terms of each training document, (g,) with NaN if it has no terms."""
    if shares is None:
        return reference
    has_terms = shares[~np.isnan(shares)]
    return reference.model_copy(
        update={
            "unknown_terms": histogram(shares),
            "mean_unknown_terms": float(has_terms.mean()) if len(has_terms) else None,
        }
    )
