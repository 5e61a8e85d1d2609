"""The tables of the benchmark, and the part of ``docs/background/serving.md`` that contains them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.tables import DOCS, markdown

PAGE = DOCS / "background/serving.md"

LOADS_HEAD = ("server", "requests/s", "of the empty endpoint", "median", "p99", "CPU time of a request")
GOALS_HEAD = ("goal", "at least or at most", "measured", "range", "")
LAYERS_HEAD = ("request", "layer", "CPU time")


@dataclass(frozen=True)
class Run:
    """One run of the load generator against one server.

    Attributes:
        rate: responses per second.
        p50: median of the latency in milliseconds.
        p99: 99th percentile of the latency in milliseconds.
        cpu_us: CPU time of the server's processes for one response in microseconds, without its database.
    """

    rate: float
    p50: float
    p99: float
    cpu_us: float


@dataclass(frozen=True)
class Values:
    """What the rounds measured for one goal."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Values:
        """Summarise the values of the rounds.

        >>> Values.of([3.0, 1.0, 2.0])
        Values(median=2.0, lowest=1.0, highest=3.0)
        """
        return cls(statistics.median(values), min(values), max(values))

    @classmethod
    def ratios(cls, values: Sequence[float], bases: Sequence[float]) -> Values:
        """Summarise the ratios of two sides, round by round, because other work varies between rounds.

        >>> Values.ratios([50.0, 20.0, 30.0], [100.0, 50.0, 60.0])
        Values(median=0.5, lowest=0.4, highest=0.5)
        """
        return cls.of([value / base for value, base in zip(values, bases, strict=True)])


@dataclass(frozen=True)
class Goal:
    """A goal and what was measured.

    Attributes:
        text: the goal.
        limit: the value that the measurement must reach or must not exceed.
        values: the measurement.
        unit: ``×`` for ratios, ``responses`` for counts, or a unit of time.
        at_least: whether the limit is a minimum; otherwise it is a maximum.
    """

    text: str
    limit: float
    values: Values
    unit: str = "×"
    at_least: bool = True

    @property
    def met(self) -> bool:
        """Whether the median reaches the goal."""
        return self.values.median >= self.limit if self.at_least else self.values.median <= self.limit

    def row(self) -> list[str]:
        """Return the row of the table of goals."""
        limit, median, lowest, highest = (
            _number(value, self.unit)
            for value in (self.limit, self.values.median, self.values.lowest, self.values.highest)
        )
        sign, verdict = "≥" if self.at_least else "≤", "met" if self.met else "**not met**"
        return [self.text, f"{sign} {limit}", median, f"{lowest} to {highest}", verdict]


@dataclass(frozen=True)
class Layer:
    """A part of a request.

    Attributes:
        request: the kind of request.
        name: what the part does.
        micros: its CPU time in microseconds.
    """

    request: str
    name: str
    micros: float


def loads_table(runs: dict[str, list[Run]], base: str) -> str:
    """Return the table of servers: medians of their rounds.

    Args:
        runs: the rounds of each server.
        base: name of the empty endpoint.
    """
    rows = []
    for name, own in runs.items():
        share = Values.ratios([run.rate for run in own], [run.rate for run in runs[base]])
        rate, p50, p99, cpu = (
            statistics.median(getattr(run, field) for run in own)
            for field in ("rate", "p50", "p99", "cpu_us")
        )
        shown = (_number(share.median, "×"), _number(p50, "ms"), _number(p99, "ms"))
        rows.append([name, f"{rate:,.0f}", *shown, f"{cpu:,.0f} µs"])
    return markdown(LOADS_HEAD, rows)


def goals_table(goals: Sequence[Goal]) -> str:
    """Return the table of goals."""
    return markdown(GOALS_HEAD, [goal.row() for goal in goals])


def layers_table(layers: Sequence[Layer]) -> str:
    """Return the table of layers."""
    return markdown(LAYERS_HEAD, [[one.request, one.name, f"{one.micros:,.0f} µs"] for one in layers])


def _number(value: float, unit: str) -> str:
    """Format a number with three significant digits.

    >>> _number(0.4567, "×"), _number(31.62, "×"), _number(1234.5, "ms"), _number(2.0, "ms")
    ('0.457', '31.6', '1,234 ms', '2.00 ms')
    >>> _number(3.0, "responses")
    '3'
    """
    if unit == "responses":
        return f"{value:,.0f}"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}{'' if unit == '×' else f' {unit}'}"
