"""Reports: numbers checked against plain loops, and the same numbers in every format."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import statistics
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import in_process
import numpy as np
import pytest
import safetensors.numpy
from fastapi import Request, Response
from markdown_it import MarkdownIt
from sqlalchemy import select
from stack import departments

from app.api.errors import NotAcceptable
from app.context import AppContext
from app.db import tables
from app.db.session import Database
from app.errors import FileDamaged
from app.experiments import service
from app.experiments.api import MEDIA_TYPES
from app.experiments.report import csv as csv_report
from app.experiments.report import html, markdown
from app.experiments.report import service as reports
from app.experiments.report.build import build_report
from app.experiments.report.formatting import find_test
from app.experiments.report.schemas import ExperimentReport, FailedCell, ReportFormat
from app.experiments.schemas import ExperimentCreate
from app.pages.measures import measure_title
from app.pages.report import choose_format, negotiate
from models.measures.significance import holm, paired_wald, wilcoxon_signed_rank

MARKUP = """<script>alert('1')</script> & "$x_1$" | *b* =1"""
"""A text with special characters of HTML, SVG, Markdown and matplotlib."""

MEASURES = ["f1_micro", "hamming_loss", "average_precision"]


def run_experiment(ctx: AppContext, **fields: Any) -> str:
    """Runs an experiment to its end; returns its id."""
    noisy = departments(60, words_each=3)
    body = {
        "name": MARKUP,
        "dataset_id": in_process.dataset(ctx, noisy),
        "split": {"kind": "folds", "folds": 3},
        "configurations": [
            {"learner": {"algorithm": "mp_boost", "rounds": 12}, "decision": {"kind": "sign"}},
            {"learner": {"algorithm": "mmp", "epochs": 2}, "decision": {"kind": "tuned_threshold"}},
            {"name": MARKUP, "learner": {"algorithm": "naive_bayes"}, "decision": {"kind": "sign"}},
        ],
        "measures": MEASURES,
        "coverings": {"exact": {"kind": "zero_one"}},
        **fields,
    }
    experiment = service.create(ctx, ExperimentCreate.model_validate(body), in_process.WITHOUT_KEY)
    in_process.work(ctx)
    return experiment.id


@pytest.fixture
def kind_of_database() -> str:
    """One database is enough, because a report does not depend on the kind of database."""
    return "sqlite"


@pytest.fixture(scope="module")
def built_report(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> ExperimentReport:
    folder = tmp_path_factory.mktemp("report")
    url = f"sqlite:///{shutil.copyfile(migrated_sqlite, folder / 'covey.db')}"
    db = Database(url)
    with in_process.context(db, url, folder) as ctx:
        report = reports.get(ctx, run_experiment(ctx))
    db.close()
    return report


@pytest.fixture
def report(built_report: ExperimentReport) -> ExperimentReport:
    """A report that the test may change."""
    return built_report.model_copy(deep=True)


def test_means_and_deviations_match_those_of_the_cells(ctx: AppContext) -> None:
    experiment_id = run_experiment(ctx)
    report = reports.get(ctx, experiment_id)
    cells = service.get(ctx.db, experiment_id).cells or []
    columns = [*MEASURES, "covering_error.exact"]
    assert [measure.name for measure in report.measures] == columns
    means: dict[str, list[float]] = {}
    for row in report.rows:
        for name in columns:
            values = [
                cell.metrics.test[name]
                for cell in cells
                if cell.configuration == row.configuration and cell.metrics and cell.metrics.test
            ]
            summary = row.test[name]
            assert summary.values == values
            assert summary.mean == pytest.approx(sum(values) / 3)
            assert summary.deviation == pytest.approx(statistics.stdev(values))
            means.setdefault(name, []).append(summary.mean)
    for measure in report.measures:
        best = (max if measure.better == "higher" else min)(means[measure.name])
        assert [row.test[measure.name].best for row in report.rows] == [
            mean == best for mean in means[measure.name]
        ]


def test_comparisons_pair_the_same_held_out_examples(ctx: AppContext) -> None:
    experiment_id = run_experiment(ctx)
    report = reports.get(ctx, experiment_id)
    with ctx.db.read() as session:
        cell_rows = service.cell_rows(session, experiment_id)
    examples: dict[tuple[int, int], Any] = {
        (cell.configuration, cell.fold): safetensors.numpy.load_file(
            ctx.storage.local(job.result["examples"])
        )
        for cell, job in cell_rows
        if job.result is not None
    }
    pairs = [(0, 1), (0, 2), (1, 2)]
    for measure in ("hamming_loss", "average_precision", "covering_error.exact"):
        compared = [c for c in report.comparisons if c.measure == measure]
        assert [(c.first, c.second) for c in compared] == pairs
        p_values: dict[str, list[float]] = {"wald": [], "wilcoxon": []}
        for comparison in compared:
            assert comparison.over == "examples"
            a, b = (
                np.concatenate([examples[side, fold][measure] for fold in range(3)])
                for side in (comparison.first, comparison.second)
            )
            defined = ~np.isnan(a) & ~np.isnan(b)
            p_values["wald"].append(paired_wald(a[defined], b[defined]).p_value)
            p_values["wilcoxon"].append(wilcoxon_signed_rank(a[defined], b[defined]).p_value)
            assert [test.p_value for test in comparison.tests] == [p_values[k][-1] for k in p_values]
        for kind, values in p_values.items():
            corrected = [find_test(comparison, kind) for comparison in compared]
            assert [test.p_corrected for test in corrected if test] == holm(values)
    over_folds = [c for c in report.comparisons if c.measure == "f1_micro"]
    assert {c.over for c in over_folds} == {"folds"}
    assert {test.test for c in over_folds for test in c.tests} == {"wilcoxon"}
    first = over_folds[0]
    rows = report.rows
    assert first.difference == pytest.approx(rows[0].test["f1_micro"].mean - rows[1].test["f1_micro"].mean)


def test_a_final_report_is_stored_and_a_running_one_is_rebuilt(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(40))
    body = {
        "dataset_id": dataset,
        "split": {"kind": "folds", "folds": 2},
        "configurations": [{"learner": {"algorithm": "naive_bayes"}}],
    }
    experiment = service.create(ctx, ExperimentCreate.model_validate(body), in_process.WITHOUT_KEY)
    assert reports.get(ctx, experiment.id).rows[0].test == {}
    in_process.work(ctx, 2)
    halfway = reports.get(ctx, experiment.id)
    assert (halfway.state, halfway.rows[0].folds, halfway.rows[0].complete) == ("running", [0], False)
    assert "still running" in html.render(halfway)
    in_process.work(ctx)
    final = reports.get(ctx, experiment.id)
    assert (final.state, final.rows[0].folds) == ("succeeded", [0, 1])
    stored = [file.key for file in ctx.storage.files("experiments") if ".report." in file.key]
    assert len(stored) == 1
    assert reports.get(ctx, experiment.id) == final


def test_markdown_has_the_table_with_the_best_in_bold(report: ExperimentReport) -> None:
    text = markdown.render(report)
    table = [line for line in text.splitlines() if line.startswith("|")]
    head, _, *rows = table[:5]
    assert head.startswith("| configuration | Overall quality (F1) ↑ | Hamming loss ↓ |")
    for line, row in zip(rows, report.rows, strict=True):
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        assert len(cells) == len(report.measures) + 2
        for cell, measure in zip(cells[1:], report.measures, strict=False):
            summary = row.test[measure.name]
            expected = markdown.format_summary(summary)
            assert cell.strip() == (f"**{expected}**" if summary.best else expected)
    assert "<script>" not in text
    assert "## Significance" in text


def test_csv_has_full_precision(report: ExperimentReport) -> None:
    lines = list(csv.DictReader(io.StringIO(csv_report.render(report))))
    assert [line["name"] for line in lines] == [row.name for row in report.rows]
    for line, row in zip(lines, report.rows, strict=True):
        for name, summary in row.test.items():
            assert float(line[f"{name}_mean"]) == summary.mean
            assert float(line[f"{name}_deviation"]) == summary.deviation
            assert line[f"{name}_best"] == str(summary.best).lower()


def test_csv_escapes_formulas_in_names(report: ExperimentReport) -> None:
    report.rows[0].name = "=HYPERLINK(1)"
    assert "'=HYPERLINK(1)" in csv_report.render(report)


def test_csv_has_no_cell_that_a_spreadsheet_evaluates(report: ExperimentReport) -> None:
    for name in ("=1+1", " =1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r\n=1", "\u00a0=1", "\uff1d1"):
        report.rows[0].name = report.measures[0].name = name
        header, row, *_ = csv.reader(io.StringIO(csv_report.render(report), newline=""))
        assert row[1] == f"'{name}"
        assert f"'{name}_mean" in header


HOSTILE_NAMES = [
    "<img src=x onerror=alert(1)>",
    "a | b | c",
    "one\n\n## two\r\n- three",
    "`code` ``more``",
    "[text](https://example.org) ![image](https://example.org/a.png)",
    "<https://example.org> https://example.org www.example.org ftp://example.org",
    "mail ann@example.org",
    "# heading #",
    "- item",
    "+ item",
    "1. item",
    "123456789) item",
    "*b* **b** _i_ __b__ ~~s~~ $x$",
    "&lt;script&gt; &#60;b&#62; &amp;",
    "\\<b\\> \\\\| \\[a\\](b)",
    "<!-- comment --> <![CDATA[x]]> <?php ?>",
    "escape \x1b[31m and \u202e reversed",
    "[ref]: https://example.org",
    "---",
    "===",
]
"""Names that a renderer of Markdown could take for markup."""


def rendered_markdown(report: ExperimentReport) -> Page:
    """Return the report in Markdown as a renderer shows it."""
    return Page(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown.render(report)))


class Page(HTMLParser):
    """The tags, links and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [
            value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "action", "data")
        ]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_is_self_contained_and_has_no_scripts(report: ExperimentReport) -> None:
    text = html.render(report)
    parsed = Page(text)
    assert not {"script", "link", "iframe", "object", "img", "form"} & set(parsed.tags)
    assert all(link.startswith("#") for link in parsed.links)
    assert "url(http" not in text
    assert "@import" not in text
    assert MARKUP in "".join(parsed.texts)
    for row in report.rows:
        for summary in row.test.values():
            assert f"{summary.mean:.4f}" in text


def test_the_charts_are_well_formed_and_complete(report: ExperimentReport) -> None:
    text = html.render(report)
    charts = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert len(charts) == 1 + 2  # measures; curves by rounds, and by examples
    texts = [" ".join(ET.fromstring(svg).itertext()) for svg in charts]  # noqa: S314 - trusted
    for measure in report.measures:
        assert measure_title(measure.name) in texts[0]
    assert "mp_boost, held out" in texts[1]
    assert "mp_boost, training" in texts[1]
    assert "final value" in texts[1]
    assert "mmp, held out" in texts[2]
    assert "mathdefault" not in text
    assert html.render(report) == text, "the page is reproducible"


def test_markup_in_names_is_escaped_in_html_svg_and_markdown(report: ExperimentReport) -> None:
    report.dataset_name = report.rows[0].name = MARKUP
    report.rows[1].failures = [FailedCell(fold=0, state="failed", detail=MARKUP)]
    report.rows[1].learner = {"label": MARKUP}

    page = html.render(report)
    assert "<script" not in page
    parsed = Page(page)
    assert "script" not in parsed.tags
    # Title, heading, data set, three tables, and the JSON of the configuration.
    assert sum(MARKUP in text for text in parsed.texts) > 6
    assert json.dumps(MARKUP, ensure_ascii=False) in "".join(parsed.texts)
    for svg in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL):
        root = ET.fromstring(svg)  # noqa: S314 - trusted
        assert {element.tag.rpartition("}")[2] for element in root.iter()}.isdisjoint({"script", "b"})
        assert any(text.startswith(MARKUP[:30]) for text in root.itertext())

    text = markdown.render(report)
    assert "&lt;script&gt;alert('1')&lt;/script&gt; &amp; " in text
    assert not re.search(r"</?script|(?<!\\)(\$|\*b)", text)


def test_markdown_shows_every_name_as_text(report: ExperimentReport) -> None:
    harmless = set(rendered_markdown(report).tags)
    measure = report.measures[0].name
    comparisons = [comparison for comparison in report.comparisons if comparison.measure == measure]
    for name in HOSTILE_NAMES:
        report.name = report.dataset_name = report.rows[0].name = name
        report.rows[1].failures = [FailedCell(fold=0, state="failed", detail=name)]
        report.measures[0].name = f"covering_error.{name}"
        for comparison in comparisons:
            comparison.measure = report.measures[0].name
        page = rendered_markdown(report)
        assert set(page.tags) <= harmless | {"ul", "li"}, name
        shown = re.sub("[\x1b\u202e]", "\ufffd", " ".join(name.split()))
        # Heading, data set, measure, row and failure.
        assert " ".join(" ".join(page.texts).split()).count(shown) >= 5, name
        source = markdown.render(report)
        assert not re.search(r"(?<!\\)://|www\.", source), "no renderer makes a link of it"
        rows = [line for line in source.splitlines() if line.startswith("|")]
        assert len({row.replace("\\|", "").count("|") for row in rows}) <= 2, name


def test_curves_are_means_over_folds(report: ExperimentReport) -> None:
    by_rounds = [curve for curve in report.curves if curve.unit == "rounds"]
    assert {curve.measure for curve in by_rounds} == {*MEASURES, "covering_error.exact"}
    for curve in by_rounds:
        row = report.rows[curve.configuration]
        assert len(curve.steps) == len(curve.within_folds) == len(curve.out_of_folds)
        assert curve.out_of_folds[-1] == pytest.approx(row.test[curve.measure].mean)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "json"),
        ("*/*", "json"),
        ("application/json", "json"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "html"),
        ("text/csv", "csv"),
        ("text/markdown; q=0.5, text/csv; q=0.4", "markdown"),
        ("text/*", "markdown"),
        ("text/html;q=0, */*", "json"),
    ],
)
def test_the_format_is_the_one_that_the_client_prefers(accept: str, form: str) -> None:
    assert negotiate(accept, MEDIA_TYPES) == form


def test_a_cache_keeps_the_formats_of_a_report_apart() -> None:
    request = Request({"type": "http", "headers": [(b"accept", b"text/csv")]})
    requested: list[ReportFormat | None] = [None, "json"]
    for form in requested:
        response = Response()
        assert choose_format(request, response, MEDIA_TYPES, form) == (form or "csv")
        assert response.headers["vary"] == "Accept"


@pytest.mark.parametrize("accept", ["image/png", "text/html;q=0", "application/json;q=x"])
def test_an_unknown_format_is_rejected(accept: str) -> None:
    with pytest.raises(NotAcceptable):
        negotiate(accept, MEDIA_TYPES)


def test_a_damaged_file_of_held_out_examples_is_reported_as_damaged(ctx: AppContext) -> None:
    experiment_id = run_experiment(ctx)
    with ctx.db.read() as session:
        job = session.scalars(select(tables.Job).where(tables.Job.kind == "cell")).first()
    assert job is not None
    assert job.result is not None
    Path(ctx.storage.local(job.result["examples"])).write_bytes(b"no arrays")
    with pytest.raises(FileDamaged):
        build_report(ctx, experiment_id)
