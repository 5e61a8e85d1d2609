"""Render a report as Markdown."""

from __future__ import annotations

from app.experiments.report.formatting import (
    ARROWS,
    describe_split,
    describe_tests,
    find_test,
    format_p_value,
    tested_comparisons,
)
from app.experiments.report.schemas import Comparison, ExperimentReport, Summary
from app.pages.markdown import escape
from app.pages.measures import measure_title


def render(report: ExperimentReport) -> str:
    """Render the measures with the best values in bold, the failed cells, and the significance tests."""
    lines = [f"# {escape(report.name or report.id)}", ""]
    lines.append(
        f"Data set {escape(report.dataset_name or '(deleted)')} `{report.dataset_id}`; "
        f"{describe_split(report)}; seed {report.seed}; experiment `{report.id}`, {report.state}."
    )
    lines += ["", "## Measures of held-out examples", "", *_measures_table(report), ""]
    failures = [(row.name, failure) for row in report.rows for failure in row.failures]
    if failures:
        lines += ["## Runs without a result", ""]
        lines += [f"- {escape(name)}, fold {f.fold}: {f.state}: {escape(f.detail)}" for name, f in failures]
        lines.append("")
    if any(comparison.tests for comparison in report.comparisons):
        lines += [
            "## Significance",
            "",
            f"{describe_tests(report)} P-values are corrected by Holm's method within each measure and test.",
            "",
            "| measure | first | second | difference | over | Wald | Wilcoxon |",
            "|---|---|---|---:|---|---:|---:|",
        ]
        lines += [
            _comparison_line(report, comparison)
            for measure in report.measures
            for comparison in tested_comparisons(report, measure.name)
        ]
        lines.append("")
    return "\n".join(lines)


def format_summary(summary: Summary) -> str:
    """Format a mean with its standard deviation, or with four significant digits if it has none."""
    if summary.deviation is None:
        return f"{summary.mean:.4g}"
    decimals = 4 if abs(summary.mean) < 10 else 2
    return f"{summary.mean:.{decimals}f} ± {summary.deviation:.{decimals}f}"


def _measures_table(report: ExperimentReport) -> list[str]:
    heads = [f"{escape(measure_title(measure.name))} {ARROWS[measure.better]}" for measure in report.measures]
    lines = [
        "| " + " | ".join(["configuration", *heads, "training, s"]) + " |",
        "|---" + "|---:" * (len(heads) + 1) + "|",
    ]
    for row in report.rows:
        incomplete = "" if row.complete else f" ({len(row.folds)} of {report.folds} folds)"
        texts = [escape(row.name) + incomplete]
        for measure in report.measures:
            summary = row.test.get(measure.name)
            text = "" if summary is None else format_summary(summary)
            texts.append(f"**{text}**" if summary is not None and summary.best else text)
        texts.append("" if row.fit_seconds is None else f"{row.fit_seconds.mean:.2f}")
        lines.append("| " + " | ".join(texts) + " |")
    return lines


def _comparison_line(report: ExperimentReport, comparison: Comparison) -> str:
    texts = [
        escape(measure_title(comparison.measure)),
        escape(report.rows[comparison.first].name),
        escape(report.rows[comparison.second].name),
        f"{comparison.difference:+.4g}",
        comparison.over,
    ]
    for kind in ("wald", "wilcoxon"):
        test = find_test(comparison, kind)
        texts.append("" if test is None else format_p_value(test.p_corrected))
    return "| " + " | ".join(texts) + " |"
