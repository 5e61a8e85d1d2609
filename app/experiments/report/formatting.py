"""Short texts that the Markdown and the HTML report share."""

from __future__ import annotations

from app.experiments.report.schemas import Comparison, ExperimentReport, ReportTest

ARROWS = {"higher": "↑", "lower": "↓"}
"""Marks after the name of a measure: which values are better."""


def format_p_value(p: float) -> str:
    """Format a p-value with four decimals.

    >>> format_p_value(0.03125), format_p_value(1e-9)
    ('0.0312', '< 0.0001')
    """
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def describe_split(report: ExperimentReport) -> str:
    """Describe how examples were held out."""
    match report.split["kind"]:
        case "folds":
            return f"{report.folds} stratified folds"
        case "assigned":
            return f"{report.folds} assigned folds"
        case "random":
            validation = report.split.get("validation_fraction", 0)
            more = f", {validation:.0%} for validation" if validation else ""
            return f"{report.split['test_fraction']:.0%} held out at random{more}"
        case _:
            return "the data set's own split"


def tested_comparisons(report: ExperimentReport, measure: str) -> list[Comparison]:
    """Return the comparisons by a measure that have at least one test."""
    return [c for c in report.comparisons if c.measure == measure and c.tests]


def find_test(comparison: Comparison, kind: str) -> ReportTest | None:
    """Return the test of a kind, or None if the comparison does not have it."""
    return next((test for test in comparison.tests if test.test == kind), None)


def describe_tests(report: ExperimentReport) -> str:
    """Describe the alternative of the tests, in a sentence."""
    alternative = next(test.alternative for comparison in report.comparisons for test in comparison.tests)
    if alternative == "two_sided":
        return "Two-sided paired tests of no difference."
    return (
        "One-sided paired tests: a small p-value confirms that the values of the first configuration are "
        f"{alternative}."
    )
