"""Draw the charts of data sets, trainings and versions, which a phone can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from app.datasets.schemas import LabelItem
from app.evaluations.schemas import CoveragePoint, ReliabilityBin
from app.jobs.schemas import CurvePoint
from app.pages.charts import (
    COLORS,
    SHARES,
    TEXT_COLOR,
    color_of,
    draw,
    name_rows,
    panels,
    reliability_diagram,
    set_steps,
    set_title,
)
from app.pages.measures import measure_title

NARROW = 3.6
"""Width in inches. A phone shows the chart with text of about this size, and a wide screen beside others."""

WIDTH = 4.3
"""Width in inches of a chart that a phone shows about in this size."""

MAX_LABELS = 20
"""Labels in a chart."""

MAX_MEASURES = 4
"""Measures of one curve that are drawn."""

_DASHES = ("-", "--", "-.", ":")


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


def label_chart(labels: Sequence[LabelItem]) -> Markup:
    """Draw the numbers of examples of the most frequent labels as bars."""
    shown = labels[:MAX_LABELS]
    label = "Number of examples of the most frequent labels"
    with draw(NARROW, 0.5 + 0.24 * len(shown), "labels", label=label) as chart:
        ax = chart.figure.subplots()
        bars = ax.barh(range(len(shown)), [item.count for item in shown], color=COLORS[0], height=0.7)
        ax.bar_label(bars, fmt="{:,.0f}", padding=3, fontsize=9, color=TEXT_COLOR)
        name_rows(ax, [item.label for item in shown], 18)
        ax.margins(x=0.18)
        ax.xaxis.set_visible(False)
        for side in ("bottom", "left"):
            ax.spines[side].set_visible(False)
        ax.tick_params(axis="y", length=0)
    return chart.svg


def curve_measures(points: Sequence[CurvePoint]) -> list[str]:
    """Return the measures of a learning curve, in the order of their first points."""
    return list(dict.fromkeys(name for point in points for name in point.measures))


def training_curve(points: Sequence[CurvePoint], unit: str) -> Markup:
    """Draw each measure of a learning curve by its step, one below the other.

    Args:
        points: the points, by ascending step; at least two.
        unit: unit of the steps.
    """
    measures = curve_measures(points)[:MAX_MEASURES]
    label = f"{' and '.join(map(measure_title, measures))} by {unit}"
    with draw(NARROW, 0.4 + 1.55 * len(measures), "curve", label=label) as chart:
        axes = panels(chart.figure, len(measures), 1, sharex=True)
        for ax, color, measure in zip(axes, COLORS, measures, strict=False):
            of_measure = [point for point in points if measure in point.measures]
            ax.plot(
                [point.step for point in of_measure],
                [point.measures[measure] for point in of_measure],
                color=color,
                linewidth=1.8,
                marker="o" if len(of_measure) < 15 else None,
                markersize=4,
            )
            set_title(ax, measure_title(measure))
            ax.locator_params(nbins=4)
        axes[-1].set_xlabel(unit)
    return chart.svg


def curves_chart(curves: Sequence[Curve], measure: str, unit: str) -> Markup:
    """Draw curves, each with a color and a line style of its own."""
    label = f"{measure} by {unit}, one line for each of {', '.join(curve.name for curve in curves)}"
    with draw(WIDTH, 3.3, f"curves {measure}", label=label) as chart:
        ax = chart.figure.subplots()
        for i, curve in enumerate(curves):
            ax.plot(
                curve.steps,
                curve.values,
                color=color_of(i),
                linestyle=_DASHES[i % len(_DASHES)],
                linewidth=2,
                marker="o" if len(curve.steps) < 3 else None,
                label=curve.name,
            )
        set_steps(ax, unit, min(curve.steps[0] for curve in curves), max(curve.steps[-1] for curve in curves))
        ax.set_ylabel(measure)
        chart.figure.legend(loc="outside upper left", ncols=2, fontsize=10)
    return chart.svg


def reliability_chart(bins: Sequence[ReliabilityBin], what: str, salt: str) -> Markup:
    """Draw a reliability diagram: how often predictions of a probability came true."""
    shown = [item for item in bins if item.mean_probability is not None and item.observed_share is not None]
    label = f"Reliability diagram of {what}: observed share by predicted probability"
    with draw(WIDTH, 3.6, salt, label=label) as chart:
        reliability_diagram(chart.figure).plot(
            [item.mean_probability or 0.0 for item in shown],
            [item.observed_share or 0.0 for item in shown],
            marker="o",
            color=COLORS[0],
        )
    return chart.svg


def coverage_chart(points: Sequence[CoveragePoint]) -> Markup:
    """Draw the precision of accepted label sets by the share of the examples that need no person."""
    label = "Share of accepted label sets that are right, by the share of examples that need no person"
    with draw(WIDTH, 3.3, "coverage", label=label) as chart:
        ax = chart.figure.subplots()
        ax.plot([point.coverage for point in points], [point.precision for point in points], color=COLORS[0])
        ax.set(xlim=SHARES, ylim=SHARES, xlabel="share without a person", ylabel="share right")
    return chart.svg
