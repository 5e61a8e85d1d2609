"""Draw the charts of a router's report, narrow enough for a phone."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from app.pages.charts import COLORS, SHARES, draw, name_rows, reliability_diagram
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

WIDTH = 4.5
"""Width of a chart in inches."""

MAX_ROWS = 20
"""Maximum number of groups in a chart. The table beside it has all."""

DISPOSITION_COLORS: dict[Disposition, str] = {
    "routed": COLORS[2],
    "review": COLORS[4],
    "fallback": COLORS[3],
}


def volume_chart(report: RouterReport) -> Markup | None:
    """Draw the number of messages of each group by disposition; None if there are none."""
    groups = _with_messages(report)
    if not groups:
        return None
    label = f"Messages by {report.by} and outcome"
    with draw(WIDTH, 1.0 + 0.28 * len(groups), "volume", label=label) as chart:
        ax = chart.figure.subplots()
        left = [0] * len(groups)
        for disposition, color in DISPOSITION_COLORS.items():
            counts = [
                next((item.count for item in group.dispositions if item.disposition == disposition), 0)
                for group in groups
            ]
            if any(counts):
                ax.barh(range(len(groups)), counts, left=left, color=color, label=disposition, height=0.7)
            left = [total + count for total, count in zip(left, counts, strict=True)]
        name_rows(ax, [group.name for group in groups])
        ax.set_xlabel("messages")
        chart.figure.legend(loc="outside upper left", ncols=3)
    return chart.svg


def quality_chart(report: RouterReport) -> Markup | None:
    """Draw F1 of departments, or set accuracy of other groups, with intervals; None without feedback."""
    of_departments = report.by == "department"
    rows = [(group.name, quality_of(group, of_departments=of_departments)) for group in _shown(report)]
    values = [(name, value) for name, value in rows if value is not None][:MAX_ROWS]
    if not values:
        return None
    name = "Quality (F1)" if of_departments else "Messages with every department right"
    return _intervals_chart(values, f"{name} by {report.by} with 95% intervals", name, "quality")


def quality_of(group: ReportGroup, *, of_departments: bool) -> Estimate | Share | None:
    """Return F1 of a department, or the set accuracy of another group."""
    return group.quality[0].f1 if of_departments else group.quality[0].set_accuracy


def shadows_chart(shadows: Sequence[ShadowAgreement]) -> Markup | None:
    """Draw the agreement of each shadow version with each version; None without shadows."""
    if not shadows:
        return None
    values = [(shadow_name(item), item.agreement) for item in shadows[:MAX_ROWS]]
    return _intervals_chart(values, "Agreement of shadow versions with 95% intervals", "agreement", "shadows")


def shadow_name(item: ShadowAgreement) -> str:
    """Return the name of a pair of versions."""
    return f"{item.model or '?'} {item.version or '?'} and shadow {item.shadow}"


def _intervals_chart(
    values: Sequence[tuple[str, Estimate | Share]], label: str, axis: str, salt: str
) -> Markup:
    with draw(WIDTH, 0.8 + 0.28 * len(values), salt, label=label) as chart:
        ax = chart.figure.subplots()
        for row, (_, value) in enumerate(values):
            point = value.share if isinstance(value, Share) else value.value
            ax.errorbar(
                point,
                row,
                xerr=_errors(point, value),
                fmt="o",
                color=COLORS[0],
                capsize=3,
            )
        name_rows(ax, [name for name, _ in values])
        ax.set_xlim(*SHARES)
        ax.set_xlabel(axis)
    return chart.svg


def calibration_chart(calibration: Calibration) -> Markup:
    """Draw a reliability diagram: the observed share by the predicted probability."""
    label = "Reliability diagram: observed share by predicted probability"
    with draw(WIDTH, 3.6, "calibration", label=label) as chart:
        ax = reliability_diagram(chart.figure)
        for item in calibration.bins:
            observed = item.observed
            ax.errorbar(
                item.mean_probability,
                observed.share,
                yerr=_errors(observed.share, observed),
                fmt="o",
                color=COLORS[0],
                capsize=3,
            )
    return chart.svg


def shares_chart(bins: Sequence[DriftBin], label: str, salt: str) -> Markup:
    """Draw recent shares beside expected ones; of many, those with the largest difference."""
    shown = list(bins)
    if len(shown) > MAX_ROWS:
        largest = sorted(shown, key=lambda item: -abs(item.share - item.expected_share))[:MAX_ROWS]
        shown = [item for item in shown if item in largest]
    with draw(WIDTH, 1.0 + 0.34 * len(shown), salt, label=label) as chart:
        ax = chart.figure.subplots()
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
        name_rows(ax, [item.name for item in shown])
        ax.set_xlabel("share")
        chart.figure.legend(loc="outside upper left", ncols=2)
    return chart.svg


def drift_chart(report: RouterReport) -> Markup | None:
    """Draw the stability indices of each week; None for other groups, and without drift."""
    groups = [group for group in report.groups if group.drift is not None]
    if report.by != "week" or len(groups) < 2:
        return None
    label = "Population stability index by week"
    with draw(WIDTH, 3.0, "drift", label=label) as chart:
        ax = chart.figure.subplots()
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
        chart.figure.legend(loc="outside upper left", ncols=3)
    return chart.svg


def _shown(report: RouterReport) -> list[ReportGroup]:
    return [group for group in report.groups if group.messages or group.quality[0].f1 is not None]


def _with_messages(report: RouterReport) -> list[ReportGroup]:
    groups = [group for group in report.groups if group.messages]
    return groups[-MAX_ROWS:] if report.by == "week" else groups[:MAX_ROWS]


def _errors(point: float, interval: Estimate | Share) -> list[list[float]]:
    return [[max(0.0, point - interval.low)], [max(0.0, interval.high - point)]]
