"""Measures of predicted label sets with intervals from resampled test documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from models.arrays import AnyArray, Bools, Floats

MEASURES = ("f1_micro", "subset_accuracy", "f1_macro")
"""Micro-averaged F1, the share of right label sets, and F1 averaged over the labels of the test part."""

N_RESAMPLES = 1000
_BLOCK = 100
LEVEL = 0.95

Values = dict[str, Floats]
"""By measure, (1 + ``N_RESAMPLES``,) values: of the test part itself first, then of the resampled ones."""


def resamples(n: int, seed: int) -> Floats:
    """Return (1 + ``N_RESAMPLES``, n) how often each document counts: once, then drawn with replacement."""
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES)
    return np.concatenate([np.ones((1, n)), drawn])


def values(relevant: Bools, predicted: Bools, counts: Floats) -> Values:
    """Return the measures for each row of ``counts``.

    Args:
        relevant: (n, k) whether each document has each label.
        predicted: (n, k) whether each label is predicted for it.
        counts: (b, n) how often each document counts.

    >>> sets = np.array([[True, False], [True, True]])
    >>> found = values(sets, np.array([[True, True], [True, True]]), np.array([[1.0, 1.0], [0.0, 2.0]]))
    >>> {name: value.round(3).tolist() for name, value in found.items()}
    {'f1_micro': [0.857, 1.0], 'subset_accuracy': [0.5, 1.0], 'f1_macro': [0.833, 1.0]}
    """
    occurs = relevant.any(axis=0)
    right = (relevant == predicted).all(axis=1).astype(np.float64)
    matrices = [part.astype(np.float64) for part in (relevant & predicted, relevant, predicted)]
    parts: dict[str, list[Floats]] = {measure: [] for measure in MEASURES}
    for first in range(0, len(counts), _BLOCK):
        block = counts[first : first + _BLOCK]
        hits, positives, predictions = (block @ matrix for matrix in matrices)
        total = positives + predictions
        parts["f1_micro"].append(2 * hits.sum(axis=1) / np.maximum(total.sum(axis=1), 1.0))
        parts["subset_accuracy"].append(block @ right / block.sum(axis=1))
        # A label that a resample lacks and that is not predicted there says nothing.
        with np.errstate(invalid="ignore"):
            parts["f1_macro"].append(np.nanmean((2 * hits / total)[:, occurs], axis=1))
    return {measure: np.concatenate(found) for measure, found in parts.items()}


def mean(found: Sequence[Values]) -> Values:
    """Return the mean over seeds."""
    return {measure: np.mean([each[measure] for each in found], axis=0) for measure in found[0]}


def difference(found: Mapping[str, Floats], other: Mapping[str, Floats]) -> Values:
    """Return the paired differences."""
    return {measure: values - other[measure] for measure, values in found.items()}


def summary(found: AnyArray) -> dict[str, float]:
    """Return the value of the test part, and the interval that contains ``LEVEL`` of the resampled values."""
    low, high = np.quantile(found[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {"value": round(float(found[0]), 4), "low": round(float(low), 4), "high": round(float(high), 4)}
