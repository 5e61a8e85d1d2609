"""Render the measures of a report as CSV."""

from __future__ import annotations

from app.experiments.report.schemas import ExperimentReport
from app.pages.spreadsheets import Cell, to_csv


def render(report: ExperimentReport) -> str:
    """Render a header row and one row for each configuration, with numbers in full precision."""
    header = [
        f"{measure.name}_{part}" for measure in report.measures for part in ("mean", "deviation", "best")
    ]
    rows: list[list[Cell]] = [["configuration", "name", "folds", "complete", *header, "fit_seconds"]]
    for row in report.rows:
        values: list[Cell] = [row.configuration, row.name, len(row.folds), str(row.complete).lower()]
        for measure in report.measures:
            summary = row.test.get(measure.name)
            if summary is None:
                values += [None, None, None]
            else:
                values += [summary.mean, summary.deviation, str(summary.best).lower()]
        values.append(None if row.fit_seconds is None else row.fit_seconds.mean)
        rows.append(values)
    return to_csv(rows)
