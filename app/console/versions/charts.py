"""Draws the charts of versions as SVG elements, narrow enough for a phone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from app.evaluations.schemas import CoveragePoint, ReliabilityBin
from app.pages.charts import COLORS, svg_figure

WIDTH = 4.3
"""Width of a chart in inches. A phone shows it about in this size."""

_DASHES = ("-", "--", "-.", ":")
_LOG_SCALE_RATIO = 50
"""The axis of steps is logarithmic if the last step is at least this many times the first."""


@dataclass(frozen=True)
class Curve:
    """A measure of a version by step of its training.

    Attributes:
        name: name of the version.
        measure: name of the measure, such as ``test.f1_micro``.
        steps: rounds, epochs or passes, ascending.
        values: the value after each of these steps.
    """

    name: str
    measure: str
    steps: Sequence[int]
    values: Sequence[float]


def curves_chart(curves: Sequence[Curve], measure: str, unit: str) -> Markup:
    """Draw curves, each with a color and a line style of its own."""
    label = f"{measure} by {unit}, one line for each of {', '.join(curve.name for curve in curves)}"
    with svg_figure(WIDTH, 3.3, f"curves {measure}", label=label) as (figure, out):
        ax = figure.subplots()
        for i, curve in enumerate(curves):
            ax.plot(
                curve.steps,
                curve.values,
                color=COLORS[i % len(COLORS)],
                linestyle=_DASHES[i % len(_DASHES)],
                linewidth=2,
                marker="o" if len(curve.steps) < 3 else None,
                label=curve.name,
            )
        first = min(curve.steps[0] for curve in curves)
        if max(curve.steps[-1] for curve in curves) >= _LOG_SCALE_RATIO * first:
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:g}")
        ax.set(xlabel=unit, ylabel=measure)
        figure.legend(loc="outside upper left", ncols=2, frameon=False)
    return _safe(out.getvalue())


def reliability_chart(bins: Sequence[ReliabilityBin], what: str, salt: str) -> Markup:
    """Draw a reliability diagram: how often predictions of a probability came true."""
    shown = [item for item in bins if item.mean_probability is not None and item.observed_share is not None]
    label = f"Reliability diagram of {what}: observed share by predicted probability"
    with svg_figure(WIDTH, 3.6, salt, label=label) as (figure, out):
        ax = figure.subplots()
        ax.plot([0, 1], [0, 1], color="#8a8f98", linewidth=1, linestyle="--")
        ax.plot(
            [item.mean_probability or 0.0 for item in shown],
            [item.observed_share or 0.0 for item in shown],
            marker="o",
            color=COLORS[0],
        )
        limits = (-0.02, 1.02)
        ax.set(xlim=limits, ylim=limits, xlabel="predicted probability", ylabel="observed share")
    return _safe(out.getvalue())


def coverage_chart(points: Sequence[CoveragePoint]) -> Markup:
    """Draw the precision of accepted label sets by the share of the examples that need no person."""
    label = "Share of accepted label sets that are right, by the share of examples that need no person"
    with svg_figure(WIDTH, 3.3, "coverage", label=label) as (figure, out):
        ax = figure.subplots()
        ax.plot([point.coverage for point in points], [point.precision for point in points], color=COLORS[0])
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="share without a person", ylabel="share right")
    return _safe(out.getvalue())


def _safe(chart: str) -> Markup:
    # matplotlib escapes text, and colors and sizes do not come from users.
    return Markup(chart)  # noqa: S704
