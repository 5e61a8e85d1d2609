"""Charts of the pages of data sets and trainings, as SVG elements that a phone can show."""

from __future__ import annotations

from collections.abc import Sequence

from app.datasets.schemas import LabelItem
from app.jobs.schemas import CurvePoint
from app.pages.charts import COLORS, TEXT_COLOR, shorten, svg_figure

WIDTH = 3.6
"""Width in inches. A phone shows the chart with text of about this size, and a wide screen beside others."""

MAX_LABELS = 20
"""Labels in a chart."""

MAX_MEASURES = 4
"""Measures of one curve that are drawn."""


def label_chart(labels: Sequence[LabelItem]) -> str:
    """Draw the numbers of examples of the most frequent labels as bars."""
    shown = labels[:MAX_LABELS]
    with svg_figure(
        WIDTH, 0.5 + 0.24 * len(shown), "labels", label="Number of examples of the most frequent labels"
    ) as (figure, out):
        ax = figure.subplots()
        positions = range(len(shown))
        bars = ax.barh(positions, [item.count for item in shown], color=COLORS[0], height=0.7)
        ax.bar_label(bars, fmt="{:,.0f}", padding=3, fontsize=9, color=TEXT_COLOR)
        ax.set_yticks(positions, [shorten(item.label, 18) for item in shown])
        ax.set_ylim(len(shown) - 0.5, -0.5)
        ax.margins(x=0.18)
        ax.xaxis.set_visible(False)
        ax.grid(visible=False)
        for side in ("bottom", "left"):
            ax.spines[side].set_visible(False)
        ax.tick_params(axis="y", length=0)
    return out.getvalue()


def curve_measures(points: Sequence[CurvePoint]) -> list[str]:
    """Return the measures of a learning curve, in the order of their first points."""
    return list(dict.fromkeys(name for point in points for name in point.measures))


def training_curve(points: Sequence[CurvePoint], unit: str) -> str:
    """Draw each measure of a learning curve by its step, one below the other.

    Args:
        points: the points, by ascending step; at least two.
        unit: unit of the steps.
    """
    measures = curve_measures(points)[:MAX_MEASURES]
    with svg_figure(
        WIDTH, 0.4 + 1.55 * len(measures), "curve", label=f"{' and '.join(measures)} by {unit}"
    ) as (figure, out):
        panels = figure.subplots(len(measures), 1, sharex=True, squeeze=False)
        for ax, color, measure in zip(panels.flat, COLORS, measures, strict=False):
            of_measure = [point for point in points if measure in point.measures]
            ax.plot(
                [point.step for point in of_measure],
                [point.measures[measure] for point in of_measure],
                color=color,
                linewidth=1.8,
                marker="o" if len(of_measure) < 15 else None,
                markersize=4,
            )
            ax.set_title(measure.replace("_", " "), fontsize=10, loc="left", color=TEXT_COLOR)
            ax.locator_params(nbins=4)
        panels.flat[-1].set_xlabel(unit)
    return out.getvalue()
