"""A report as text: Markdown for people, CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from app.experiments.schemas import Comparison, ExperimentReport, ReportMeasure, ReportTest, Summary

_SPECIAL = re.compile(r"[\\|*`<>\[\]]|\b_|_\b")
"""What Markdown takes for more than itself; an underscore inside a word it does not."""

ARROWS = {"higher": "↑", "lower": "↓"}


def value(summary: Summary) -> str:
    """Mean ± deviation, in as many digits as can be read."""
    if summary.deviation is None:
        return f"{summary.mean:.4g}"
    decimals = 4 if abs(summary.mean) < 10 else 2
    return f"{summary.mean:.{decimals}f} ± {summary.deviation:.{decimals}f}"


def p(probability: float) -> str:
    """A p-value in few characters."""
    return "< 0.0001" if probability < 0.0001 else f"{probability:.4f}"


def split_in_words(report: ExperimentReport) -> str:
    """How examples were held out."""
    match report.split["kind"]:
        case "folds":
            return f"{report.folds} folds, each label shared out evenly"
        case "random":
            return f"{report.split['test_fraction']:.0%} held out at random"
        case _:
            return "the examples' own split"


def compared_by(report: ExperimentReport, measure: str) -> list[Comparison]:
    """The comparisons by one measure that have tests."""
    return [c for c in report.comparisons if c.measure == measure and c.tests]


def test_of(comparison: Comparison, kind: str) -> ReportTest | None:
    """One test of a comparison, where it was made."""
    return next((test for test in comparison.tests if test.test == kind), None)


def markdown(report: ExperimentReport) -> str:
    """The report in Markdown: the table with the best in bold, failures, significance."""
    lines = [f"# {_plain(report.name or report.id)}", ""]
    lines.append(
        f"Data set {_plain(report.dataset_name or '')} `{report.dataset_id}`; {split_in_words(report)}; "
        f"seed {report.seed}; experiment `{report.id}`, {report.state}."
    )
    lines += ["", "## Measures of held-out examples", "", *_table(report), ""]
    failures = [(row.name, failure) for row in report.rows for failure in row.failures]
    if failures:
        lines += ["## What came to nothing", ""]
        lines += [f"- {_plain(name)}, fold {f.fold}: {f.state}: {_plain(f.detail)}" for name, f in failures]
        lines.append("")
    if any(comparison.tests for comparison in report.comparisons):
        lines += [
            "## Significance",
            "",
            "Two-sided paired tests, p-values corrected by Holm within each measure and test.",
            "",
            "| measure | first | second | difference | over | Wald | Wilcoxon |",
            "|---|---|---|---:|---|---:|---:|",
        ]
        for measure in report.measures:
            for comparison in compared_by(report, measure.name):
                lines.append(_comparison(report, comparison))
        lines.append("")
    return "\n".join(lines)


def _table(report: ExperimentReport) -> Sequence[str]:
    heads = [f"{measure.name} {ARROWS[measure.better]}" for measure in report.measures]
    lines = [
        "| " + " | ".join(["configuration", *heads, "training, s"]) + " |",
        "|---" + "|---:" * (len(heads) + 1) + "|",
    ]
    for row in report.rows:
        texts = [_plain(row.name) + ("" if row.complete else f" ({len(row.folds)} of {report.folds} folds)")]
        for measure in report.measures:
            summary = row.test.get(measure.name)
            text = "" if summary is None else value(summary)
            texts.append(f"**{text}**" if summary is not None and summary.best else text)
        texts.append("" if row.fit_seconds is None else f"{row.fit_seconds.mean:.2f}")
        lines.append("| " + " | ".join(texts) + " |")
    return lines


def _comparison(report: ExperimentReport, comparison: Comparison) -> str:
    texts = [
        comparison.measure,
        _plain(report.rows[comparison.first].name),
        _plain(report.rows[comparison.second].name),
        f"{comparison.difference:+.4g}",
        comparison.over,
    ]
    for kind in ("wald", "wilcoxon"):
        test = test_of(comparison, kind)
        texts.append("" if test is None else p(test.p_corrected))
    return "| " + " | ".join(texts) + " |"


def _plain(text: str) -> str:
    """Text that Markdown takes as it stands."""
    return " ".join(_SPECIAL.sub(r"\\\g<0>", text).split())


def comma_separated(report: ExperimentReport) -> str:
    """The table as CSV: a line a configuration, all digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(["configuration", "name", "folds", "complete", *_heads(report.measures), "fit_seconds"])
    for row in report.rows:
        cells: list[str | int | float] = [
            row.configuration, _no_formula(row.name), len(row.folds), str(row.complete).lower()
        ]  # fmt: skip
        for measure in report.measures:
            summary = row.test.get(measure.name)
            if summary is None:
                cells += ["", "", ""]
            else:
                deviation = "" if summary.deviation is None else summary.deviation
                cells += [summary.mean, deviation, str(summary.best).lower()]
        cells.append("" if row.fit_seconds is None else row.fit_seconds.mean)
        writer.writerow(cells)
    return out.getvalue()


def _heads(measures: Sequence[ReportMeasure]) -> list[str]:
    return [f"{measure.name}_{part}" for measure in measures for part in ("mean", "deviation", "best")]


def _no_formula(name: str) -> str:
    """Spreadsheets run what begins like a formula."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name
