"""A report as one page of HTML: styles and pictures inside, nothing fetched, nothing run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from importlib.resources import files

from app.experiments import pictures
from app.experiments.rendering import ARROWS, compared_by, p, split_in_words, test_of
from app.experiments.schemas import ExperimentReport, ReportRow, Summary

ALPHA = 0.05

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page's Content-Security-Policy: names in it are users' own, and can do nothing."""


def html(report: ExperimentReport) -> str:
    """The page."""
    title = escape(report.name or report.id)
    style = (files("app.experiments") / "page.css").read_text()
    body = "\n".join(
        part
        for section in (_head, _table, _measures, _curves, _significance, _configurations)
        for part in section(report)
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _head(report: ExperimentReport) -> Iterator[str]:
    yield f"<h1>{escape(report.name or report.id)}</h1>"
    dataset = escape(report.dataset_name or "a data set since deleted")
    yield (
        f'<p class="quiet"><span class="tag {report.state}">{report.state}</span> '
        f"{dataset} (<code>{escape(report.dataset_id)}</code>) · {escape(split_in_words(report))} · "
        f"seed {report.seed} · <code>{escape(report.id)}</code> · {report.created_at:%Y-%m-%d %H:%M} UTC</p>"
    )
    if report.finished_at is None:
        yield "<p>The experiment is not over: these are the cells that have succeeded so far.</p>"


def _table(report: ExperimentReport) -> Iterator[str]:
    yield "<h2>Held-out examples</h2>"
    over = "mean ± standard deviation over folds" if report.folds > 1 else "values of the one held-out part"
    yield (
        f"<p>The {over}. <span class='best'>&nbsp;Marked&nbsp;</span>: the best of its column among "
        "configurations that succeeded on every fold.</p>"
    )
    heads = "".join(
        f"<th scope='col'>{escape(measure.name)} {ARROWS[measure.better]}</th>" for measure in report.measures
    )
    yield "<div class='scroll'><table><thead><tr><th scope='col'>configuration</th>"
    yield f"{heads}<th scope='col'>training, s</th></tr></thead><tbody>"
    for row in report.rows:
        yield f"<tr><th scope='row'>{_named(row)}{_missing(report, row)}</th>"
        for measure in report.measures:
            yield _cell(row.test.get(measure.name))
        yield _cell(row.fit_seconds, decimals=2) + "</tr>"
    yield "</tbody></table></div>"
    failures = [(row, failure) for row in report.rows for failure in row.failures]
    if failures:
        yield "<h3>What came to nothing</h3>"
        yield "<div class='scroll'><table class='words'><thead><tr><th>configuration</th><th>fold</th>"
        yield "<th>state</th><th>why</th></tr></thead><tbody>"
        for row, failure in failures:
            yield (
                f"<tr><td>{_named(row)}</td><td>{failure.fold}</td><td><span class='tag {failure.state}'>"
                f"{failure.state}</span></td><td>{escape(failure.detail)}</td></tr>"
            )
        yield "</tbody></table></div>"


def _measures(report: ExperimentReport) -> Iterator[str]:
    picture = pictures.measures_picture(report)
    if picture is not None:
        yield f"<figure>{picture}<figcaption>Every fold is a dot; the mark is their mean, a diamond where it "
        yield "is the best; whiskers are one standard deviation.</figcaption></figure>"


def _curves(report: ExperimentReport) -> Iterator[str]:
    units = pictures.units_of_curves(report)
    if not units:
        return
    yield "<h2>By step</h2>"
    yield "<p>Means over folds, if training had stopped there. Solid: out of folds, on those held out; "
    yield "dashed: within folds, on those learned from; dotted: learners without steps, at the end.</p>"
    for unit in units:
        yield f"<h3>By {escape(unit)}</h3>"
        yield f"<figure>{pictures.curves_picture(report, unit)}</figure>"


def _significance(report: ExperimentReport) -> Iterator[str]:
    if not any(comparison.tests for comparison in report.comparisons):
        return
    yield "<h2>Significance</h2>"
    yield (
        "<p>Two-sided paired tests of no difference, p-values corrected by Holm for all comparisons by the "
        f"same measure and test. <span class='strong'>&nbsp;Marked&nbsp;</span>: under {ALPHA}. Folds share "
        "training examples, so tests over few folds say little.</p>"
    )
    for measure in report.measures:
        compared = compared_by(report, measure.name)
        if not compared:
            continue
        over = compared[0].over
        yield f"<details{' open' if measure is report.measures[0] else ''}><summary><strong>"
        yield f"{escape(measure.name)}</strong>, over {over}</summary>"
        yield "<div class='scroll'><table><thead><tr><th>first</th><th class='name'>second</th>"
        yield "<th>difference</th><th>pairs</th><th>Wald</th><th>Wilcoxon</th></tr></thead><tbody>"
        for comparison in compared:
            first, second = report.rows[comparison.first], report.rows[comparison.second]
            yield f"<tr><td>{_named(first)}</td><td class='name'>{_named(second)}</td>"
            yield f"<td>{comparison.difference:+.4g}</td><td>{max(t.pairs for t in comparison.tests)}</td>"
            for kind in ("wald", "wilcoxon"):
                test = test_of(comparison, kind)
                if test is None:
                    yield "<td></td>"
                else:
                    mark = " class='strong'" if test.p_corrected < ALPHA else ""
                    yield f"<td{mark}>{escape(p(test.p_corrected))}</td>"
            yield "</tr>"
        yield "</tbody></table></div></details>"


def _configurations(report: ExperimentReport) -> Iterator[str]:
    yield "<h2>Configurations</h2>"
    for row in report.rows:
        said = {"features": row.features, "learner": row.learner, "decision": row.decision}
        text = escape(json.dumps(said, indent=2, ensure_ascii=False))
        yield f"<details><summary>{_named(row)}</summary><pre>{text}</pre></details>"


def _named(row: ReportRow) -> str:
    colour = pictures.colour_of(row.configuration)
    return f"<span class='dot' style='background:{colour}'></span>{escape(row.name)}"


def _missing(report: ExperimentReport, row: ReportRow) -> str:
    if row.complete:
        return ""
    return f" <span class='tag'>{len(row.folds)} of {report.folds} folds</span>"


def _cell(summary: Summary | None, decimals: int = 4) -> str:
    if summary is None:
        return "<td></td>"
    if abs(summary.mean) >= 10:
        decimals = min(decimals, 2)
    spread = (
        ""
        if summary.deviation is None
        else f" <span class='spread'>± {summary.deviation:.{decimals}f}</span>"
    )
    mark = " class='best'" if summary.best else ""
    return f"<td{mark}>{summary.mean:.{decimals}f}{spread}</td>"
