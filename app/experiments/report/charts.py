"""Draws the charts of a report as SVG elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.experiments.report.schemas import ExperimentReport, ReportCurve, ReportMeasure, ReportRow
from app.pages.charts import COLORS, TEXT_COLOR, shorten, svg_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NARROW = 4.0
"""Width in inches of a chart that a phone shows with readable text."""

LOG_SCALE_RATIO = 50
"""The axis of steps is logarithmic if the last step is at least this many times the first."""


def measures_chart(report: ExperimentReport) -> str | None:
    """Draws every measure of every configuration: a dot for each fold, the mean, and its standard deviation.

    Returns:
        an SVG element, or None if there are no measures yet.
    """
    rows = [row for row in report.rows if row.test]
    measures = measures_with_values(report)
    if not measures:
        return None
    n_columns = min(3, len(measures))
    n_rows = -(-len(measures) // n_columns)
    size = (3.5 * n_columns + 0.8, n_rows * (0.9 + 0.28 * len(rows)))
    with svg_figure(*size, "measures") as (figure, out):
        axes = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False)
        for ax, measure in zip(axes.flat, measures, strict=False):
            _draw_measure(ax, rows, measure, f"{measure.name}  {_BETTER[measure.better]}")
        for ax in axes.flat[len(measures) :]:
            ax.set_visible(False)
    return out.getvalue()


def measure_chart(report: ExperimentReport, measure: ReportMeasure) -> str:
    """Draws one measure of every configuration, narrow enough for a phone, without a title."""
    rows = [row for row in report.rows if row.test]
    label = f"{measure.name} of each configuration"
    with svg_figure(NARROW, 0.5 + 0.28 * len(rows), f"measure {measure.name}", label=label) as (figure, out):
        _draw_measure(figure.subplots(), rows, measure, "")
    return out.getvalue()


_BETTER = {"higher": "→ better", "lower": "← better"}


def measures_with_values(report: ExperimentReport) -> list[ReportMeasure]:
    """Return the measures that some configuration has."""
    return [m for m in report.measures if any(m.name in row.test for row in report.rows)]


def _draw_measure(ax: Axes, rows: Sequence[ReportRow], measure: ReportMeasure, title: str) -> None:
    for position, row in enumerate(rows):
        if measure.name not in row.test:
            continue
        summary = row.test[measure.name]
        color = color_of(row.configuration)
        ax.scatter(
            summary.values,
            [position] * len(summary.values),
            s=14,
            color=color,
            alpha=0.35,
            linewidth=0,
        )
        ax.errorbar(
            summary.mean,
            position,
            xerr=summary.deviation,
            fmt="D" if summary.best else "o",
            color=color,
            markersize=7 if summary.best else 5,
            capsize=3,
        )
    ax.set_title(title, fontsize=10, loc="left", color=TEXT_COLOR)
    ax.set_yticks(range(len(rows)), [shorten(row.name, 34 if title else 20) for row in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.grid(axis="y", visible=False)
    ax.locator_params(axis="x", nbins=5 if title else 4)


def curves_chart(report: ExperimentReport, unit: str) -> str:
    """Draws every measure by step: solid on held-out examples, dashed on training examples.

    Configurations without a curve are horizontal dotted lines at their final value.

    Args:
        report: the report.
        unit: draws the curves whose steps have this unit.

    Returns:
        an SVG element.
    """
    measures = curve_measures(report, unit)
    n_columns = min(2, len(measures))
    n_rows = -(-len(measures) // n_columns)
    with svg_figure(5.6 * n_columns, 3.1 * n_rows + 0.7, f"curves {unit}") as (figure, out):
        axes = figure.subplots(n_rows, n_columns, squeeze=False)
        legend: dict[str, Any] = {}
        for ax, measure in zip(axes.flat, measures, strict=False):
            legend |= _draw_curves(ax, report, unit, measure)
            ax.set_title(measure, fontsize=10, loc="left", color=TEXT_COLOR)
        for ax in axes.flat[len(measures) :]:
            ax.set_visible(False)
        _draw_legend(figure, legend, n_columns)  # more columns of long names would be cut off
    return out.getvalue()


def curve_chart(report: ExperimentReport, unit: str, measure: str) -> str:
    """Draws one measure by step as ``curves_chart``, narrow enough for a phone, without a title."""
    n_lines = 2 * len({curve.configuration for curve in report.curves if curve.unit == unit})
    n_lines += len({row.configuration for row in report.rows} - {c.configuration for c in report.curves})
    height = 2.3 + 0.18 * n_lines
    label = f"{measure} by {unit}"
    with svg_figure(NARROW, height, f"curve {unit} {measure}", label=label) as (figure, out):
        _draw_legend(figure, _draw_curves(figure.subplots(), report, unit, measure), 1)
    return out.getvalue()


def curve_measures(report: ExperimentReport, unit: str) -> list[str]:
    """Return the measures that have a curve whose steps have a unit, in the order of the report."""
    with_curve = {curve.measure for curve in report.curves if curve.unit == unit}
    return [measure.name for measure in report.measures if measure.name in with_curve]


def _draw_legend(figure: Figure, legend: Mapping[str, Any], n_columns: int) -> None:
    figure.legend(
        legend.values(),
        legend.keys(),
        loc="outside lower center",
        ncols=n_columns,
        frameon=False,
        fontsize=9,
    )


def _draw_curves(ax: Axes, report: ExperimentReport, unit: str, measure: str) -> dict[str, Any]:
    """Draws the curves of a measure; returns the lines by their text in the legend."""
    from matplotlib.ticker import NullFormatter  # noqa: PLC0415

    legend: dict[str, Any] = {}
    curves = [curve for curve in report.curves if curve.unit == unit and curve.measure == measure]
    for curve in curves:
        legend |= _draw_curve(ax, report, curve)
    with_curve = {curve.configuration for curve in report.curves}
    for row in report.rows:
        if row.configuration not in with_curve and measure in row.test:
            legend[f"{shorten(row.name)}, final value"] = ax.axhline(
                row.test[measure].mean,
                color=color_of(row.configuration),
                linestyle=":",
                linewidth=1.6,
            )
    first, last = min(c.steps[0] for c in curves), max(c.steps[-1] for c in curves)
    if last >= LOG_SCALE_RATIO * first:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel(unit)
    return legend


def _draw_curve(ax: Axes, report: ExperimentReport, curve: ReportCurve) -> dict[str, Any]:
    """Draws the two lines of a curve; returns them by their text in the legend."""
    name = shorten(report.rows[curve.configuration].name)
    color = color_of(curve.configuration)
    (out_of_folds,) = ax.plot(curve.steps, curve.out_of_folds, color=color, linewidth=1.8)
    (within_folds,) = ax.plot(
        curve.steps, curve.within_folds, color=color, linewidth=1.2, linestyle="--", alpha=0.75
    )
    return {f"{name}, held out": out_of_folds, f"{name}, training": within_folds}


def curve_units(report: ExperimentReport) -> list[str]:
    """Return the units of all curves with more than one step, in the order of the configurations."""
    return list(dict.fromkeys(curve.unit for curve in report.curves if len(curve.steps) > 1))


def color_of(configuration: int) -> str:
    """Return the color that a configuration has on the whole page."""
    return COLORS[configuration % len(COLORS)]
