"""Draws the charts of a report as SVG elements."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from app.experiments.report.schemas import ExperimentReport, ReportCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b4c9a", "#8c6d31")
"""The palette of Okabe and Ito, which is safe for color-blind readers, and two more colors."""

LOG_SCALE_RATIO = 50
"""The axis of steps is logarithmic if the last step is at least this many times the first."""

_STYLE: dict[Any, Any] = {
    "text.parse_math": False,  # names come from users and may have dollar signs in them
    "svg.fonttype": "none",
    "font.family": ["sans-serif"],
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8a8f98",
    "axes.labelcolor": "#3c4149",
    "xtick.color": "#3c4149",
    "ytick.color": "#3c4149",
    "axes.grid": True,
    "grid.color": "#e6e8eb",
    "axes.axisbelow": True,
}

_matplotlib_lock = threading.Lock()  # the settings of matplotlib are global to the process


@contextmanager
def _figure(width: float, height: float, salt: str) -> Iterator[tuple[Figure, io.StringIO]]:
    """Yield a figure and a buffer; write the figure's SVG to the buffer when the block ends.

    Args:
        width: width in inches.
        height: height in inches.
        salt: makes the ids of SVG elements reproducible, and unique on a page with several charts.
    """
    # Imported here because it takes a second, and most processes of the API never draw a chart.
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    out = io.StringIO()
    with _matplotlib_lock, mpl.rc_context({**_STYLE, "svg.hashsalt": salt}), warnings.catch_warnings():
        # The font of matplotlib lacks some scripts, but the browser draws the text in a font of its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, out
        raw = io.StringIO()
        figure.savefig(raw, format="svg", metadata={"Date": None, "Creator": None})
    text = raw.getvalue()
    out.write(text[text.index("<svg") :])


def measures_chart(report: ExperimentReport) -> str | None:
    """Draws every measure of every configuration: a dot for each fold, the mean, and its standard deviation.

    Returns:
        an SVG element, or None if there are no measures yet.
    """
    rows = [row for row in report.rows if row.test]
    measures = [m for m in report.measures if any(m.name in row.test for row in rows)]
    if not measures:
        return None
    n_columns = min(3, len(measures))
    n_rows = -(-len(measures) // n_columns)
    size = (3.5 * n_columns + 0.8, n_rows * (0.9 + 0.28 * len(rows)))
    with _figure(*size, "measures") as (figure, out):
        axes = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False)
        for ax, measure in zip(axes.flat, measures, strict=False):
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
            arrow = "→ better" if measure.better == "higher" else "← better"
            ax.set_title(f"{measure.name}  {arrow}", fontsize=10, loc="left", color="#3c4149")
            ax.set_yticks(range(len(rows)), [_shorten(row.name) for row in rows])
            ax.set_ylim(len(rows) - 0.5, -0.5)
            ax.grid(axis="y", visible=False)
            ax.locator_params(axis="x", nbins=5)
        for ax in axes.flat[len(measures) :]:
            ax.set_visible(False)
    return out.getvalue()


def curves_chart(report: ExperimentReport, unit: str) -> str:
    """Draws every measure by step: solid on held-out examples, dashed on training examples.

    Configurations without a curve are horizontal dotted lines at their final value.

    Args:
        report: the report.
        unit: draws the curves whose steps have this unit.

    Returns:
        an SVG element.
    """
    from matplotlib.ticker import NullFormatter  # noqa: PLC0415

    curves = [curve for curve in report.curves if curve.unit == unit]
    measures = [m.name for m in report.measures if any(c.measure == m.name for c in curves)]
    n_columns = min(2, len(measures))
    n_rows = -(-len(measures) // n_columns)
    with _figure(5.6 * n_columns, 3.1 * n_rows + 0.7, f"curves {unit}") as (figure, out):
        axes = figure.subplots(n_rows, n_columns, squeeze=False)
        legend: dict[str, Any] = {}
        for ax, measure in zip(axes.flat, measures, strict=False):
            of_measure = [curve for curve in curves if curve.measure == measure]
            for curve in of_measure:
                legend |= _draw_curve(ax, report, curve)
            with_curve = {curve.configuration for curve in report.curves}
            for row in report.rows:
                if row.configuration not in with_curve and measure in row.test:
                    legend[f"{_shorten(row.name)}, final value"] = ax.axhline(
                        row.test[measure].mean,
                        color=color_of(row.configuration),
                        linestyle=":",
                        linewidth=1.6,
                    )
            first, last = min(c.steps[0] for c in of_measure), max(c.steps[-1] for c in of_measure)
            if last >= LOG_SCALE_RATIO * first:
                ax.set_xscale("log")
                ax.xaxis.set_major_formatter("{x:g}")
                ax.xaxis.set_minor_formatter(NullFormatter())
            ax.set_title(measure, fontsize=10, loc="left", color="#3c4149")
            ax.set_xlabel(unit)
        for ax in axes.flat[len(measures) :]:
            ax.set_visible(False)
        figure.legend(
            legend.values(),
            legend.keys(),
            loc="outside lower center",
            ncols=n_columns,  # more columns of long names would be cut off
            frameon=False,
            fontsize=9,
        )
    return out.getvalue()


def _draw_curve(ax: Axes, report: ExperimentReport, curve: ReportCurve) -> dict[str, Any]:
    """Draws the two lines of a curve; returns them by their text in the legend."""
    name = _shorten(report.rows[curve.configuration].name)
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


def _shorten(name: str, max_length: int = 34) -> str:
    return name if len(name) <= max_length else name[: max_length - 1] + "…"
