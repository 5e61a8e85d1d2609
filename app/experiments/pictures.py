"""Pictures of a report, as SVG to stand inside a page."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from app.experiments.schemas import ExperimentReport, ReportCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b4c9a", "#8c6d31")
"""Okabe and Ito's, which colour-blind readers tell apart, and two more."""

LOGARITHMIC_FROM = 50
"""Times as many steps as the first, from which on their axis is logarithmic: most happens early."""

_STYLE: dict[Any, Any] = {
    "text.parse_math": False,  # names are users' own, dollar signs and all
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

_drawing = threading.Lock()  # the library's settings belong to the whole process


@contextmanager
def _figure(width: float, height: float, salt: str) -> Iterator[tuple[Figure, io.StringIO]]:
    """A figure; when the block ends, its SVG is in the buffer."""
    # Most processes of the API never draw, and loading the library takes a second.
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    out = io.StringIO()
    with _drawing, mpl.rc_context({**_STYLE, "svg.hashsalt": salt}), warnings.catch_warnings():
        # Its own font lacks some scripts; the reader's browser draws the text with its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, out
        raw = io.StringIO()
        figure.savefig(raw, format="svg", metadata={"Date": None, "Creator": None})
    text = raw.getvalue()
    out.write(text[text.index("<svg") :])


def measures_picture(report: ExperimentReport) -> str | None:
    """Every measure of every configuration: each fold a dot, the mean and its deviation; None without any."""
    rows = [row for row in report.rows if row.test]
    measures = [m for m in report.measures if any(m.name in row.test for row in rows)]
    if not measures:
        return None
    across = min(3, len(measures))
    down = -(-len(measures) // across)
    with _figure(3.5 * across + 0.8, down * (0.9 + 0.28 * len(rows)), "measures") as (figure, out):
        axes = figure.subplots(down, across, sharey=True, squeeze=False)
        for ax, measure in zip(axes.flat, measures, strict=False):
            for place, row in enumerate(rows):
                if measure.name not in row.test:
                    continue
                summary = row.test[measure.name]
                colour = colour_of(row.configuration)
                ax.scatter(
                    summary.values, [place] * len(summary.values), s=14, color=colour, alpha=0.35, linewidth=0
                )
                ax.errorbar(
                    summary.mean,
                    place,
                    xerr=summary.deviation,
                    fmt="D" if summary.best else "o",
                    color=colour,
                    markersize=7 if summary.best else 5,
                    capsize=3,
                )
            arrow = "→ better" if measure.better == "higher" else "← better"
            ax.set_title(f"{measure.name}  {arrow}", fontsize=10, loc="left", color="#3c4149")
            ax.set_yticks(range(len(rows)), [_short(row.name) for row in rows])
            ax.set_ylim(len(rows) - 0.5, -0.5)
            ax.grid(axis="y", visible=False)
            ax.locator_params(axis="x", nbins=5)
        for ax in axes.flat[len(measures) :]:
            ax.set_visible(False)
    return out.getvalue()


def curves_picture(report: ExperimentReport, unit: str) -> str:
    """Every measure by step: solid on held-out examples, dashed on those learned from.

    Configurations without a curve are level lines at their final value.
    """
    from matplotlib.ticker import NullFormatter  # noqa: PLC0415

    curves = [curve for curve in report.curves if curve.unit == unit]
    measures = [m.name for m in report.measures if any(c.measure == m.name for c in curves)]
    across = min(2, len(measures))
    down = -(-len(measures) // across)
    with _figure(5.6 * across, 3.1 * down + 0.7, f"curves {unit}") as (figure, out):
        axes = figure.subplots(down, across, squeeze=False)
        lines: dict[str, Any] = {}
        for ax, measure in zip(axes.flat, measures, strict=False):
            drawn = [curve for curve in curves if curve.measure == measure]
            for curve in drawn:
                lines |= _draw(ax, report, curve)
            with_curve = {curve.configuration for curve in report.curves}
            for row in report.rows:
                if row.configuration not in with_curve and measure in row.test:
                    lines[f"{_short(row.name)}, at the end"] = ax.axhline(
                        row.test[measure].mean,
                        color=colour_of(row.configuration),
                        linestyle=":",
                        linewidth=1.6,
                    )
            first, last = min(c.steps[0] for c in drawn), max(c.steps[-1] for c in drawn)
            if last >= LOGARITHMIC_FROM * first:
                ax.set_xscale("log")
                ax.xaxis.set_major_formatter("{x:g}")
                ax.xaxis.set_minor_formatter(NullFormatter())
            ax.set_title(measure, fontsize=10, loc="left", color="#3c4149")
            ax.set_xlabel(unit)
        for ax in axes.flat[len(measures) :]:
            ax.set_visible(False)
        figure.legend(
            lines.values(), lines.keys(), loc="outside lower center", ncols=3, frameon=False, fontsize=9
        )
    return out.getvalue()


def _draw(ax: Axes, report: ExperimentReport, curve: ReportCurve) -> dict[str, Any]:
    """Draw both lines of a curve; gives them by name."""
    name = _short(report.rows[curve.configuration].name)
    colour = colour_of(curve.configuration)
    (out_of_folds,) = ax.plot(curve.steps, curve.out_of_folds, color=colour, linewidth=1.8)
    (within_folds,) = ax.plot(
        curve.steps, curve.within_folds, color=colour, linewidth=1.2, linestyle="--", alpha=0.75
    )
    return {f"{name}, out of folds": out_of_folds, f"{name}, within folds": within_folds}


def units_of_curves(report: ExperimentReport) -> list[str]:
    """What steps are, of curves of more than one step, in the order of the configurations."""
    return list(dict.fromkeys(curve.unit for curve in report.curves if len(curve.steps) > 1))


def colour_of(configuration: int) -> str:
    """The colour of a configuration in all pictures."""
    return COLOURS[configuration % len(COLOURS)]


def _short(name: str, longest: int = 34) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"
