"""The result of a cell, as a report reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models.arrays import Floats


@dataclass(frozen=True)
class CellResult:
    """The result of a cell that has succeeded.

    Attributes:
        job_result: the result of the cell's job: ``metrics``, ``timings``, ``curve_unit`` and more.
        curve: measures by step; their names begin with ``train.`` or ``test.``.
        examples: by measure, the values (n,) of the n held-out examples, NaN if undefined.
    """

    job_result: Mapping[str, Any]
    curve: Mapping[int, Mapping[str, float]]
    examples: Mapping[str, Floats]

    def test_measure(self, measure: str) -> float | None:
        """Return a measure of the held-out examples, or None if the fold does not have it."""
        value: float | None = self.job_result["metrics"]["test"].get(measure)
        return value
