"""Whether higher or lower values of each measure are better."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

Direction = TypeAliasType(
    "Direction",
    Annotated[
        Literal["higher", "lower"],
        Field(description="Whether higher or lower values of a measure are better."),
    ],
)

DIRECTIONS: Mapping[str, Direction] = MappingProxyType(
    {
        "f1_micro": "higher",
        "f1_macro": "higher",
        "f1_macro_one": "higher",
        "f1_macro_zero": "higher",
        "precision_micro": "higher",
        "precision_macro": "higher",
        "recall_micro": "higher",
        "recall_macro": "higher",
        "accuracy": "higher",
        "average_precision": "higher",
        "hamming_loss": "lower",
        "subset_zero_one": "lower",
        "one_error": "lower",
        "coverage": "lower",
        "is_error": "lower",
        "error_set_size": "lower",
        "margin": "lower",
        "covering_error": "lower",
        "covering_loss": "lower",
        "zero_one": "lower",
        "symmetric_difference": "lower",
        "hierarchical": "lower",
        "hierarchical_sibling": "lower",
        "hierarchical_subtree": "lower",
        "simplified_hierarchical": "lower",
        "simplified_hierarchical_sibling": "lower",
        "simplified_hierarchical_subtree": "lower",
        "expected_calibration_error": "lower",
        "brier_score": "lower",
        "log_loss": "lower",
        "set_expected_calibration_error": "lower",
        "set_brier_score": "lower",
        "set_log_loss": "lower",
        "coverage_at_precision_90": "higher",
        "coverage_at_precision_95": "higher",
        "coverage_at_precision_99": "higher",
    }
)
"""The direction of every measure of ``evaluate``. ``margin`` is the papers' ranking loss of this name."""


def direction_of(measure: str) -> Direction:
    """Return the direction of a measure, also of one that is named after its covering.

    Raises:
        KeyError: the measure is unknown.

    >>> direction_of("covering_loss.exact"), direction_of("f1_micro")
    ('lower', 'higher')
    """
    return DIRECTIONS[measure.partition(".")[0]]


def is_better(measure: str, value: float, other: float) -> bool:
    """Whether a value of a measure is better than another one.

    Raises:
        KeyError: the measure is unknown.

    >>> is_better("hamming_loss", 0.1, 0.2), is_better("f1_micro", 0.1, 0.2)
    (True, False)
    """
    return value < other if direction_of(measure) == "lower" else value > other
