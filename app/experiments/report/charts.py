"""Draw the charts of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from app.experiments.report.schemas import ExperimentReport, ReportCurve, ReportMeasure, ReportRow
from app.pages.charts import color_of, draw, name_rows, panels, set_steps, set_title, shorten
from app.pages.measures import measure_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NARROW = 4.0
"""Width in inches of a chart that a phone shows with readable text."""


def measures_chart(report: ExperimentReport) -> Markup | None:
    """Draw every measure of every configuration: a dot for each fold, the mean, and its standard deviation.

    None if there are no measures yet.
    """
    rows = [row for row in report.rows if row.test]
    measures = measures_with_values(report)
    if not measures:
        return None
    n_columns = min(3, len(measures))
    n_rows = -(-len(measures) // n_columns)
    size = (3.5 * n_columns + 0.8, n_rows * (0.9 + 0.28 * len(rows)))
    with draw(*size, "measures") as chart:
        for ax, measure in zip(panels(chart.figure, len(measures), 3, sharey=True), measures, strict=True):
            _draw_measure(ax, rows, measure, f"{measure_title(measure.name)}  {_BETTER[measure.better]}")
    return chart.svg


def measure_chart(report: ExperimentReport, measure: ReportMeasure) -> Markup:
    """Draw one measure of every configuration, narrow enough for a phone, without a title."""
    rows = [row for row in report.rows if row.test]
    label = f"{measure_title(measure.name)} of each configuration"
    with draw(NARROW, 0.5 + 0.28 * len(rows), f"measure {measure.name}", label=label) as chart:
        _draw_measure(chart.figure.subplots(), rows, measure, "")
    return chart.svg


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
    set_title(ax, title)
    name_rows(ax, [row.name for row in rows], 34 if title else 20, n_ticks=5 if title else 4)


def curves_chart(report: ExperimentReport, unit: str) -> Markup:
    """Draw every measure by step: solid on held-out examples, dashed on training examples.

    Configurations without a curve are horizontal dotted lines at their final value.

    Args:
        report: the report.
        unit: draws the curves whose steps have this unit.
    """
    measures = curve_measures(report, unit)
    n_columns = min(2, len(measures))
    n_rows = -(-len(measures) // n_columns)
    with draw(5.6 * n_columns, 3.1 * n_rows + 0.7, f"curves {unit}") as chart:
        legend: dict[str, Any] = {}
        for ax, measure in zip(panels(chart.figure, len(measures), 2), measures, strict=True):
            legend |= _draw_curves(ax, report, unit, measure)
            set_title(ax, measure_title(measure))
        _draw_legend(chart.figure, legend, n_columns)  # more columns of long names would be cut off
    return chart.svg


def curve_chart(report: ExperimentReport, unit: str, measure: str) -> Markup:
    """Draw one measure by step as ``curves_chart``, narrow enough for a phone, without a title."""
    n_lines = 2 * len({curve.configuration for curve in report.curves if curve.unit == unit})
    n_lines += len({row.configuration for row in report.rows} - {c.configuration for c in report.curves})
    height = 2.3 + 0.18 * n_lines
    label = f"{measure_title(measure)} by {unit}"
    with draw(NARROW, height, f"curve {unit} {measure}", label=label) as chart:
        _draw_legend(chart.figure, _draw_curves(chart.figure.subplots(), report, unit, measure), 1)
    return chart.svg


def curve_measures(report: ExperimentReport, unit: str) -> list[str]:
    """Return the measures that have a curve whose steps have a unit, in the order of the report."""
    with_curve = {curve.measure for curve in report.curves if curve.unit == unit}
    return [measure.name for measure in report.measures if measure.name in with_curve]


def _draw_legend(figure: Figure, legend: Mapping[str, Any], n_columns: int) -> None:
    figure.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=n_columns)


def _draw_curves(ax: Axes, report: ExperimentReport, unit: str, measure: str) -> dict[str, Any]:
    """Draw the curves of a measure; return the lines by their text in the legend."""
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
    set_steps(ax, unit, min(c.steps[0] for c in curves), max(c.steps[-1] for c in curves))
    return legend


def _draw_curve(ax: Axes, report: ExperimentReport, curve: ReportCurve) -> dict[str, Any]:
    """Draw the two lines of a curve; return them by their text in the legend."""
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
