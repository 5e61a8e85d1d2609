"""The measures that a label covering defines (Amit, Dekel and Singer, section 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from models.arrays import Floats, Labels
from models.covering import CompiledCovering, parse_covering

COVERING_MEASURES = ("covering_error", "covering_loss")
"""The names of the measures that need a covering."""


def covering_measure(measure: str, covering: str) -> str:
    """Return the name of a measure if there are several coverings.

    >>> covering_measure("covering_loss", "exact")
    'covering_loss.exact'
    """
    return f"{measure}.{covering}"


def covering_measures(
    Y: Labels, predicted: Labels, scores: Floats, coverings: Mapping[str, Any], labels: Sequence[str]
) -> dict[str, Floats]:
    """Return the measures of several coverings for each example, (n,) each, as ``MEASURE.COVERING``.

    Args:
        Y: (n, k) true label sets.
        predicted: (n, k) predicted label sets.
        scores: (n, k) f(x).
        coverings: coverings or their JSON forms, by name.
        labels: the k label names.

    Raises:
        ParameterError: a covering contains an unknown label or does not cover a label.
    """
    values = {}
    for name, covering in coverings.items():
        values[covering_measure("covering_error", name)] = covering_errors(Y, predicted, covering, labels)
        values[covering_measure("covering_loss", name)] = covering_losses(Y, scores, covering, labels)
    return values


def covering_error(Y: Labels, predicted: Labels, covering: Any, labels: Sequence[str]) -> float:
    """Mean number of cover elements per example that contain a wrongly predicted label.

    Args:
        Y: (n, k) true label sets.
        predicted: (n, k) predicted label sets.
        covering: a covering or its JSON form. Its elements depend only on the true label sets.
        labels: the k label names.

    Returns:
        the mean over the examples, between 0 and the maximum number of elements; NaN if there are no
        examples.

    Raises:
        ParameterError: the covering contains an unknown label or does not cover a label.
        pydantic.ValidationError: the covering is invalid.

    >>> from scipy.sparse import csr_array
    >>> Y, predicted = csr_array([[1, 0, 0], [0, 1, 1]]), csr_array([[1, 0, 0], [1, 0, 1]])
    >>> names = ["billing", "complaint", "sales"]
    >>> covering_error(Y, predicted, {"kind": "hamming"}, names)
    1.0
    >>> covering_error(Y, predicted, {"kind": "zero_one"}, names)
    0.5
    """
    return _mean(covering_errors(Y, predicted, covering, labels))


def covering_errors(Y: Labels, predicted: Labels, covering: Any, labels: Sequence[str]) -> Floats:
    """Return the covering error of each example, (n,). The arguments are those of ``covering_error``."""
    return _compiled(covering, labels).errors(Y, 2.0 * predicted.toarray() - 1.0)


def covering_loss(Y: Labels, scores: Floats, covering: Any, labels: Sequence[str]) -> float:
    """Mean smooth bound of the covering error: the sum over the elements of log(1 + sum of exp(-y f)).

    With the decision ``sign``, this is at least the covering error times log 2.

    Args:
        Y: (n, k) true label sets.
        scores: (n, k) f(x).
        covering: a covering or its JSON form.
        labels: the k label names.

    Returns:
        the mean over the examples; NaN if there are none.

    Raises:
        ParameterError: the covering contains an unknown label or does not cover a label.
        pydantic.ValidationError: the covering is invalid.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> round(covering_loss(csr_array([[1, 0]]), np.zeros((1, 2)), {"kind": "zero_one"}, ["a", "b"]), 4)
    1.0986
    """
    return _mean(covering_losses(Y, scores, covering, labels))


def covering_losses(Y: Labels, scores: Floats, covering: Any, labels: Sequence[str]) -> Floats:
    """Return the covering loss of each example, (n,). The arguments are those of ``covering_loss``."""
    return _compiled(covering, labels).losses(Y, scores)


def _compiled(covering: Any, labels: Sequence[str]) -> CompiledCovering:
    compiled: CompiledCovering = parse_covering(covering).compile(labels, pointer="/covering")
    return compiled


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")
