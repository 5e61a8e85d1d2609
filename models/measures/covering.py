"""Every label covering is also a measure (Amit, Dekel & Singer, section 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from models.arrays import Floats, Labels
from models.boosting.covering import CompiledCovering, parse_covering


def covering_error(Y: Labels, predicted: Labels, covering: Any, labels: Sequence[str]) -> float:
    """Cover elements with a label that was predicted wrongly, an example.

    Args:
        Y: (n, k) true label sets.
        predicted: (n, k) predicted label sets.
        covering: a covering or its JSON spelling; it looks at the true label sets only.
        labels: the k names.

    Returns:
        mean over the examples of the number of elements on which the prediction fails, between 0 and the
        largest number of elements; NaN where there are no examples.

    Raises:
        ParameterError: the covering names an unknown label or leaves a label uncovered.
        pydantic.ValidationError: it is no covering.

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
    """The covering error of each example, (n,); arguments as for ``covering_error``."""
    return _compiled(covering, labels).errors(Y, 2.0 * predicted.toarray() - 1.0)


def covering_loss(Y: Labels, scores: Floats, covering: Any, labels: Sequence[str]) -> float:
    """The smooth bound of the covering error: sum over elements of log(1 + sum of exp(-y f)), an example.

    Under the sign rule the covering error times log 2 is at most this.

    Args:
        Y: (n, k) true label sets.
        scores: (n, k) f(x).
        covering: a covering or its JSON spelling.
        labels: the k names.

    Returns:
        mean over the examples; NaN where there are none.

    Raises:
        ParameterError: the covering names an unknown label or leaves a label uncovered.
        pydantic.ValidationError: it is no covering.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> round(covering_loss(csr_array([[1, 0]]), np.zeros((1, 2)), {"kind": "zero_one"}, ["a", "b"]), 4)
    1.0986
    """
    return _mean(_compiled(covering, labels).losses(Y, scores))


def _compiled(covering: Any, labels: Sequence[str]) -> CompiledCovering:
    compiled: CompiledCovering = parse_covering(covering).compile(labels, pointer="/covering")
    return compiled


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")
