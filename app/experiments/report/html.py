"""Render a report as one self-contained HTML page."""

from __future__ import annotations

import json
from functools import cache

from jinja2 import Template

from app.experiments.report.charts import curve_units, curves_chart, measures_chart
from app.experiments.report.formatting import (
    ARROWS,
    describe_split,
    describe_tests,
    find_test,
    format_p_value,
    tested_comparisons,
)
from app.experiments.report.schemas import ExperimentReport, ReportRow
from app.pages.charts import color_of
from app.pages.rendering import environment

ALPHA = 0.05
"""Level of significance: smaller p-values are highlighted."""


def render(report: ExperimentReport) -> str:
    """Render the page."""
    return _template().render(
        report=report,
        measures_chart=measures_chart(report),
        curves_charts=[(unit, curves_chart(report, unit)) for unit in curve_units(report)],
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
