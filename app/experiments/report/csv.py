"""Render the measures of a report as CSV."""

from __future__ import annotations

import csv
import io

from app.experiments.report.schemas import ExperimentReport

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""First characters of a formula."""


def render(report: ExperimentReport) -> str:
    """Render a header row and one row for each configuration, with numbers in full precision."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    header = [
        _escape_formula(f"{measure.name}_{part}")
        for measure in report.measures
        for part in ("mean", "deviation", "best")
    ]
    writer.writerow(["configuration", "name", "folds", "complete", *header, "fit_seconds"])
    for row in report.rows:
        values: list[str | int | float] = [
            row.configuration, _escape_formula(row.name), len(row.folds), str(row.complete).lower()
        ]  # fmt: skip
        for measure in report.measures:
            summary = row.test.get(measure.name)
            if summary is None:
                values += ["", "", ""]
            else:
                deviation = "" if summary.deviation is None else summary.deviation
                values += [summary.mean, deviation, str(summary.best).lower()]
        values.append("" if row.fit_seconds is None else row.fit_seconds.mean)
        writer.writerow(values)
    return out.getvalue()


def _escape_formula(name: str) -> str:
    """Put an apostrophe before a name that a spreadsheet would evaluate as a formula.

    Spreadsheets ignore white space before a formula, and some accept the wide forms of its first character.

    >>> _escape_formula("=1+1"), _escape_formula(" +1")
    ("'=1+1", "' +1")
    """
    return f"'{name}" if name.lstrip().startswith(_FORMULA) or name[:1].isspace() else name
