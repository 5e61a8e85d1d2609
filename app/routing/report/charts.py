"""Draws the charts of a router's report as SVG elements, narrow enough for a phone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.pages.charts import COLORS, TEXT_COLOR, shorten, svg_figure
from app.routing.report.schemas import (
    Calibration,
    DriftBin,
    Estimate,
    ReportGroup,
    RouterReport,
    ShadowAgreement,
    Share,
)
from app.routing.schemas import Disposition

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 4.5
"""Width of a chart in inches."""

MAX_ROWS = 20
"""Maximum number of groups in a chart. The table beside it has all."""

DISPOSITION_COLORS: dict[Disposition, str] = {
    "routed": COLORS[2],
    "review": COLORS[4],
    "fallback": COLORS[3],
}


def volume_chart(report: RouterReport) -> str | None:
    """Draw the number of messages of each group by disposition; None if there are none."""
    groups = _with_messages(report)
    if not groups:
        return None
    label = f"Messages by {report.by} and disposition"
    with svg_figure(WIDTH, 1.0 + 0.28 * len(groups), "volume", label=label) as (figure, out):
        ax = figure.subplots()
        left = [0] * len(groups)
        for disposition, color in DISPOSITION_COLORS.items():
            counts = [
                next((item.count for item in group.dispositions if item.disposition == disposition), 0)
                for group in groups
            ]
            if any(counts):
                ax.barh(range(len(groups)), counts, left=left, color=color, label=disposition, height=0.7)
            left = [total + count for total, count in zip(left, counts, strict=True)]
        _rows(ax, [group.name for group in groups])
        ax.set_xlabel("messages")
        figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=9)
    return out.getvalue()


def quality_chart(report: RouterReport) -> str | None:
    """Draw F1 of departments, or set accuracy of other groups, with intervals; None without feedback."""
    of_departments = report.by == "department"
    rows = [(group.name, quality_of(group, of_departments=of_departments)) for group in _shown(report)]
    values = [(name, value) for name, value in rows if value is not None][:MAX_ROWS]
    if not values:
        return None
    name = "F1" if of_departments else "Set accuracy"
    return _intervals_chart(values, f"{name} by {report.by} with 95% intervals", name, "quality")


def quality_of(group: ReportGroup, *, of_departments: bool) -> Estimate | Share | None:
    """Return F1 of a department, or the set accuracy of another group."""
    return group.quality[0].f1 if of_departments else group.quality[0].set_accuracy


def shadows_chart(shadows: Sequence[ShadowAgreement]) -> str | None:
    """Draw the agreement of each shadow version with each version; None without shadows."""
    if not shadows:
        return None
    values = [(shadow_name(item), item.agreement) for item in shadows[:MAX_ROWS]]
    return _intervals_chart(values, "Agreement of shadow versions with 95% intervals", "agreement", "shadows")


def shadow_name(item: ShadowAgreement) -> str:
    """Return the name of a pair of versions."""
    return f"{item.model or '?'} {item.version or '?'} and shadow {item.shadow}"


def _intervals_chart(values: Sequence[tuple[str, Estimate | Share]], label: str, axis: str, salt: str) -> str:
    with svg_figure(WIDTH, 0.8 + 0.28 * len(values), salt, label=label) as (figure, out):
        ax = figure.subplots()
        for row, (_, value) in enumerate(values):
            point = value.share if isinstance(value, Share) else value.value
            ax.errorbar(
                point,
                row,
                xerr=[[max(0.0, point - value.low)], [max(0.0, value.high - point)]],
                fmt="o",
                color=COLORS[0],
                capsize=3,
            )
        _rows(ax, [name for name, _ in values])
        ax.set_xlim(-0.02, 1.02)
        ax.set_xlabel(axis)
    return out.getvalue()


def calibration_chart(calibration: Calibration) -> str:
    """Draw a reliability diagram: the observed share by the predicted probability."""
    label = "Reliability diagram: observed share by predicted probability"
    with svg_figure(WIDTH, 3.6, "calibration", label=label) as (figure, out):
        ax = figure.subplots()
        ax.plot([0, 1], [0, 1], color="#8a8f98", linewidth=1, linestyle="--")
        for item in calibration.bins:
            observed = item.observed
            ax.errorbar(
                item.mean_probability,
                observed.share,
                yerr=[
                    [max(0.0, observed.share - observed.low)],
                    [max(0.0, observed.high - observed.share)],
                ],
                fmt="o",
                color=COLORS[0],
                capsize=3,
            )
        ax.set(
            xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="predicted probability", ylabel="observed share"
        )
    return out.getvalue()


def shares_chart(bins: Sequence[DriftBin], label: str, salt: str) -> str:
    """Draw recent shares beside expected ones; of many, those with the largest difference."""
    shown = list(bins)
    if len(shown) > MAX_ROWS:
        largest = sorted(shown, key=lambda item: -abs(item.share - item.expected_share))[:MAX_ROWS]
        shown = [item for item in shown if item in largest]
    with svg_figure(WIDTH, 1.0 + 0.34 * len(shown), salt, label=label) as (figure, out):
        ax = figure.subplots()
        rows = range(len(shown))
        ax.barh(
            [row - 0.19 for row in rows],
            [item.share for item in shown],
            height=0.36,
            color=COLORS[0],
            label="recent",
        )
        ax.barh(
            [row + 0.19 for row in rows],
            [item.expected_share for item in shown],
            height=0.36,
            color="#b8bdc4",
            label="expected from the training",
        )
        _rows(ax, [item.name for item in shown])
        ax.set_xlabel("share")
        figure.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=9)
    return out.getvalue()


def drift_chart(report: RouterReport) -> str | None:
    """Draw the stability indices of each week; None for other groups, and without drift."""
    groups = [group for group in report.groups if group.drift is not None]
    if report.by != "week" or len(groups) < 2:
        return None
    label = "Population stability index by week"
    with svg_figure(WIDTH, 3.0, "drift", label=label) as (figure, out):
        ax = figure.subplots()
        positions = range(len(groups))
        for name, color in (
            ("labels", COLORS[0]),
            ("set_probability", COLORS[1]),
            ("unknown_words", COLORS[2]),
        ):
            values = [getattr(group.drift, name) for group in groups]
            points = [
                (x, v.population_stability_index, v.chance)
                for x, v in zip(positions, values, strict=True)
                if v is not None
            ]
            if points:
                xs, indices, chances = zip(*points, strict=True)
                ax.plot(xs, indices, color=color, marker="o", markersize=4, label=name)
                ax.plot(xs, chances, color=color, linestyle=":", linewidth=1)
        step = max(1, len(groups) // 6)
        ax.set_xticks(
            [x for x in positions if x % step == 0],
            [groups[x].name for x in positions if x % step == 0],
            rotation=30,
            ha="right",
        )
        ax.set_ylim(bottom=0)
        ax.set_ylabel("stability index")
        figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=9)
    return out.getvalue()


def _shown(report: RouterReport) -> list[ReportGroup]:
    return [group for group in report.groups if group.messages or group.quality[0].f1 is not None]


def _with_messages(report: RouterReport) -> list[ReportGroup]:
    groups = [group for group in report.groups if group.messages]
    return groups[-MAX_ROWS:] if report.by == "week" else groups[:MAX_ROWS]


def _rows(ax: Axes, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), [shorten(name, 24) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(axis="y", visible=False)
    ax.locator_params(axis="x", nbins=5)
    ax.tick_params(colors=TEXT_COLOR)
