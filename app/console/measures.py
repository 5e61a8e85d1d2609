"""The measures that people ask for first, and how pages show their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from app.pages.measures import MEASURES, RIGHT_SETS, Wording
from app.pages.rendering import percent

MAIN_MEASURES: Mapping[str, Wording] = {
    **{name: MEASURES[name] for name in ("f1_micro", "f1_macro", "precision_micro", "recall_micro")},
    "subset_zero_one": RIGHT_SETS,
}
"""The main measures by the name of the value that they are computed from."""


class ShownMeasure(NamedTuple):
    """A value as a page shows it.

    Attributes:
        title: the name of the measure.
        help: what it says.
        text: the value.
    """

    title: str
    help: str
    text: str


def main_measures(values: Mapping[str, float]) -> Iterator[ShownMeasure]:
    """Yield the main measures among the values of an evaluation."""
    for name, wording in MAIN_MEASURES.items():
        if name in values:
            yield ShownMeasure(*wording, main_text(values, name))


def main_text(values: Mapping[str, float], name: str) -> str:
    """Return the value of a main measure.

    >>> main_text({"subset_zero_one": 0.132}, "subset_zero_one"), main_text({"f1_micro": 0.9}, "f1_micro")
    ('86.8 %', '0.900')
    """
    if name not in values:
        return "–"
    return percent(1 - values[name]) if name == "subset_zero_one" else f"{values[name]:.3f}"


def main_columns(versions: Sequence[Mapping[str, float]]) -> list[tuple[str, Wording]]:
    """Return the main measures that some version has."""
    return [item for item in MAIN_MEASURES.items() if any(item[0] in values for values in versions)]
