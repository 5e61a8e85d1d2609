"""Reports: their numbers against loops, and the same numbers in every form."""

from __future__ import annotations

import csv
import io
import re
import statistics
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import in_process
import numpy as np
import pytest
import safetensors.numpy
from stack import departments

from app.environment import Environment
from app.errors import NotAcceptable
from app.experiments import page, rendering, report, service
from app.experiments.api import preferred
from app.experiments.schemas import ExperimentCreate, ExperimentReport
from models.measures.significance import holm, paired_wald, wilcoxon_signed_rank

EVIL = "<script>alert(1)</script> & $x_1$ | *b* =1"
MEASURES = ["f1_micro", "hamming_loss", "average_precision"]


def ran(env: Environment, **fields: Any) -> str:
    """An experiment that has ended; gives its id."""
    noisy = departments(60, words_each=3)
    body = {
        "name": EVIL,
        "dataset_id": in_process.dataset(env, noisy),
        "split": {"kind": "folds", "folds": 3},
        "configurations": [
            {"learner": {"algorithm": "mp_boost", "rounds": 12}},
            {"learner": {"algorithm": "mmp", "epochs": 2}},
            {"name": EVIL, "learner": {"algorithm": "naive_bayes"}},
        ],
        "measures": MEASURES,
        "coverings": {"exact": {"kind": "zero_one"}},
        **fields,
    }
    made = service.create(env, ExperimentCreate.model_validate(body), in_process.ONCE)
    in_process.work(env)
    return made.id


@pytest.fixture
def kind_of_database() -> str:
    """A report is made of what was read; one database is enough."""
    return "sqlite"


@pytest.fixture
def found(env: Environment) -> ExperimentReport:
    return report.of(env, ran(env))


def test_means_and_deviations_are_those_of_the_cells(env: Environment) -> None:
    experiment_id = ran(env)
    found = report.of(env, experiment_id)
    cells = service.get(env.db, experiment_id).cells or []
    columns = [*MEASURES, "covering_error.exact"]
    assert [measure.name for measure in found.measures] == columns
    means: dict[str, list[float]] = {}
    for row in found.rows:
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
    for measure in found.measures:
        best = (max if measure.better == "higher" else min)(means[measure.name])
        assert [row.test[measure.name].best for row in found.rows] == [
            mean == best for mean in means[measure.name]
        ]


def test_comparisons_pair_the_same_held_out_examples(env: Environment) -> None:
    experiment_id = ran(env)
    found = report.of(env, experiment_id)
    with env.db.read() as session:
        examples: dict[tuple[int, int], Any] = {
            (cell.configuration, cell.fold): safetensors.numpy.load_file(
                env.storage.local(job.result["examples"])
            )
            for cell, job in service.cell_rows(session, experiment_id)
            if job.result is not None
        }
    pairs = [(0, 1), (0, 2), (1, 2)]
    for measure in ("hamming_loss", "average_precision", "covering_error.exact"):
        compared = [c for c in found.comparisons if c.measure == measure]
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
            corrected = [rendering.test_of(comparison, kind) for comparison in compared]
            assert [test.p_corrected for test in corrected if test] == holm(values)
    over_folds = [c for c in found.comparisons if c.measure == "f1_micro"]
    assert {c.over for c in over_folds} == {"folds"}
    assert {test.test for c in over_folds for test in c.tests} == {"wilcoxon"}
    first = over_folds[0]
    rows = found.rows
    assert first.difference == pytest.approx(rows[0].test["f1_micro"].mean - rows[1].test["f1_micro"].mean)


def test_a_final_report_is_kept_and_a_running_one_grows(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(40))
    body = {
        "dataset_id": dataset,
        "split": {"kind": "folds", "folds": 2},
        "configurations": [{"learner": {"algorithm": "naive_bayes"}}],
    }
    made = service.create(env, ExperimentCreate.model_validate(body), in_process.ONCE)
    assert report.of(env, made.id).rows[0].test == {}
    in_process.work(env, 2)
    halfway = report.of(env, made.id)
    assert (halfway.state, halfway.rows[0].folds, halfway.rows[0].complete) == ("running", [0], False)
    assert "not over" in page.html(halfway)
    in_process.work(env)
    final = report.of(env, made.id)
    assert (final.state, final.rows[0].folds) == ("succeeded", [0, 1])
    kept = [found.key for found in env.storage.files("experiments") if ".report." in found.key]
    assert len(kept) == 1
    assert report.of(env, made.id) == final


def test_markdown_has_the_table_with_the_best_in_bold(found: ExperimentReport) -> None:
    text = rendering.markdown(found)
    table = [line for line in text.splitlines() if line.startswith("|")]
    head, _, *rows = table[:5]
    assert head.startswith("| configuration | f1_micro ↑ | hamming_loss ↓ |")
    for line, row in zip(rows, found.rows, strict=True):
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        assert len(cells) == len(found.measures) + 2
        for cell, measure in zip(cells[1:], found.measures, strict=False):
            summary = row.test[measure.name]
            expected = rendering.value(summary)
            assert cell.strip() == (f"**{expected}**" if summary.best else expected)
    assert "<script>" not in text
    assert "## Significance" in text


def test_csv_has_every_digit(found: ExperimentReport) -> None:
    lines = list(csv.DictReader(io.StringIO(rendering.comma_separated(found))))
    assert [line["name"] for line in lines] == [row.name for row in found.rows]
    for line, row in zip(lines, found.rows, strict=True):
        for name, summary in row.test.items():
            assert float(line[f"{name}_mean"]) == summary.mean
            assert float(line[f"{name}_deviation"]) == summary.deviation
            assert line[f"{name}_best"] == str(summary.best).lower()


def test_a_name_is_no_formula_in_a_spreadsheet(found: ExperimentReport) -> None:
    found.rows[0].name = "=HYPERLINK(1)"
    assert "'=HYPERLINK(1)" in rendering.comma_separated(found)


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.said: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [
            value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "action", "data")
        ]

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def test_the_page_needs_nothing_else_and_runs_nothing(found: ExperimentReport) -> None:
    text = page.html(found)
    parsed = Page(text)
    assert not {"script", "link", "iframe", "object", "img", "form"} & set(parsed.tags)
    assert all(link.startswith("#") for link in parsed.links)
    assert "url(http" not in text
    assert "@import" not in text
    assert EVIL in "".join(parsed.said)
    for row in found.rows:
        for summary in row.test.values():
            assert f"{summary.mean:.4f}" in text


def test_the_pictures_are_well_formed_and_of_everything(found: ExperimentReport) -> None:
    text = page.html(found)
    pictures = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert len(pictures) == 1 + 2  # the measures; curves by rounds, and by examples
    written = [" ".join(ET.fromstring(svg).itertext()) for svg in pictures]  # noqa: S314 - our own
    for measure in found.measures:
        assert measure.name in written[0]
    assert "mp_boost, out of folds" in written[1]
    assert "mp_boost, within folds" in written[1]
    assert "at the end" in written[1]
    assert "mmp, out of folds" in written[2]
    assert "mathdefault" not in text
    assert page.html(found) == text, "the same report gives the same page"


def test_curves_are_means_over_folds(found: ExperimentReport) -> None:
    by_rounds = [curve for curve in found.curves if curve.unit == "rounds"]
    assert {curve.measure for curve in by_rounds} == {*MEASURES, "covering_error.exact"}
    for curve in by_rounds:
        row = found.rows[curve.configuration]
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
def test_the_form_is_what_the_client_likes_best(accept: str, form: str) -> None:
    assert preferred(accept) == form


@pytest.mark.parametrize("accept", ["image/png", "text/html;q=0", "application/json;q=x"])
def test_a_form_that_there_is_not_is_refused(accept: str) -> None:
    with pytest.raises(NotAcceptable):
        preferred(accept)
