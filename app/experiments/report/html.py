"""Renders a report as one self-contained HTML page with inline styles and SVG charts, and without scripts."""

from __future__ import annotations

import json
from functools import cache

from jinja2 import Template
from markupsafe import Markup

from app.experiments.report.charts import color_of, curve_units, curves_chart, measures_chart
from app.experiments.report.formatting import (
    ARROWS,
    describe_split,
    describe_tests,
    find_test,
    format_p_value,
    tested_comparisons,
)
from app.experiments.report.schemas import ExperimentReport, ReportRow
from app.pages.rendering import environment

ALPHA = 0.05
"""Level of significance: smaller p-values are highlighted."""


def render(report: ExperimentReport) -> str:
    """Render the page."""
    chart = measures_chart(report)
    return _template().render(
        report=report,
        # The charts are safe: matplotlib escapes text, and colors and sizes do not come from users.
        measures_chart=None if chart is None else Markup(chart),  # noqa: S704
        curves_charts=[
            (unit, Markup(curves_chart(report, unit)))  # noqa: S704
            for unit in curve_units(report)
        ],
        alpha=ALPHA,
    )


@cache
def _template() -> Template:
    templates = environment("app.experiments.report")
    templates.filters |= {"p_value": format_p_value, "configuration_json": configuration_json}
    templates.globals |= {
        "arrows": ARROWS,
        "color_of": color_of,
        "describe_split": describe_split,
        "describe_tests": describe_tests,
        "find_test": find_test,
        "tested_comparisons": tested_comparisons,
    }
    return templates.get_template("report.html")


def configuration_json(row: ReportRow) -> str:
    """Return features, learner and decision rule of a configuration as readable JSON."""
    fields = {"features": row.features, "learner": row.learner, "decision": row.decision}
    return json.dumps(fields, indent=2, ensure_ascii=False)
