"""Render the report of a router as one self-contained HTML page, or as a part of another page."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment
from markupsafe import Markup

from app.pages.rendering import environment, percent
from app.routing.report import charts
from app.routing.report.schemas import DriftValue, Estimate, RouterReport, Share

MAX_ROWS = 100
"""Maximum number of rows of a table; the JSON report has all."""


def render(report: RouterReport) -> str:
    """Render the page."""
    return _render("report.html", report)


def render_body(report: RouterReport) -> Markup:
    """Render the report without its heading, as a part of another page."""
    return Markup(_render("report_body.html", report))  # noqa: S704 - the template escapes values


def _render(template: str, report: RouterReport) -> str:
    total = report.total
    drifts: list[tuple[str, str, DriftValue]] = []
    if total.drift is not None:
        named: list[tuple[str, str, DriftValue | None]] = [
            ("labels", "Shares of departments", total.drift.labels),
            ("set_probability", "Set probability", total.drift.set_probability),
            ("unknown_words", "Unknown words of a message", total.drift.unknown_words),
        ]
        drifts = [(key, title, value) for key, title, value in named if value is not None]
    return (
        _templates()
        .get_template(template)
        .render(
            report=report,
            total=total,
            groups=report.groups[:MAX_ROWS],
            max_rows=MAX_ROWS,
            drifts=drifts,
            drift_charts={
                key: charts.shares_chart(value.bins, title, key) for key, title, value in drifts if value.bins
            },
            volume_chart=charts.volume_chart(report),
            quality_chart=charts.quality_chart(report),
            calibration_chart=(
                None if total.calibration is None else charts.calibration_chart(total.calibration)
            ),
            drift_chart=charts.drift_chart(report),
            shadows_chart=charts.shadows_chart(total.shadows),
        )
    )


@cache
def _templates() -> Environment:
    templates = environment("app.routing.report")
    templates.filters |= {"share": _share}
    templates.globals |= {"shadow_name": charts.shadow_name}
    return templates


def _share(value: Share | Estimate | None) -> Markup:
    """Format a share with its interval."""
    if value is None:
        return Markup()
    point = value.share if isinstance(value, Share) else value.value
    return Markup('{} <span class="spread">{} to {}</span>').format(
        percent(point), percent(value.low), percent(value.high)
    )
