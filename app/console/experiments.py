"""Pages of experiments: the list, the form, and the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from fastapi import Request, Response
from markupsafe import Markup

from app.api.base_route import Context, ReadScope, TrainScope
from app.api.paging import PageQuery
from app.console.rendering import page
from app.console.route import Conditions, pages
from app.console.schema_form import Field, SchemaForm
from app.console.training import STATES, choose_dataset
from app.datasets.schemas import Dataset
from app.experiments import service
from app.experiments.report import charts, formatting, html
from app.experiments.report import service as reports
from app.experiments.report.schemas import ExperimentReport, ReportMeasure, ReportRow
from app.experiments.schemas import DEFAULT_MEASURES, ExperimentCreate, ExperimentId
from app.jobs.queue import FINISHED
from app.pages.charts import color_of
from app.threads import STORAGE
from models import catalog
from models.measures.directions import DIRECTIONS

router = pages()

SUGGESTED_LEARNERS = frozenset({"mp_boost", "svm", "naive_bayes"})
"""Learners that the form proposes to compare."""


@router.get("/experiments", dependencies=[ReadScope])
def experiments(ctx: Context, request: Request, paging: PageQuery, conditions: Conditions) -> Response:
    """Show the experiments, newest first."""
    return page(
        request,
        "experiments/list.html",
        experiments=service.page(ctx.db, paging, conditions),
        conditions=conditions,
        states=STATES,
    )


@router.get("/experiments/new", dependencies=[TrainScope])
def new_experiment(ctx: Context, request: Request, dataset: str | None = None) -> Response:
    """Show the form to compare learners on a data set."""
    ready, item = choose_dataset(ctx, dataset)
    return page(
        request,
        "experiments/new.html",
        datasets=ready,
        dataset=item,
        fields=[] if item is None else _fields(item),
        learners=catalog.describe(),
        suggested=SUGGESTED_LEARNERS,
        configurations=json.dumps(
            [{"learner": {"algorithm": name}} for name in sorted(SUGGESTED_LEARNERS)], indent=2
        ),
        measures={name: name in DEFAULT_MEASURES for name in DIRECTIONS},
    )


def _fields(dataset: Dataset) -> list[Field]:
    """Return the fields of the form that follow from the schema and fit a data set."""
    has_split = dataset.splits is not None and dataset.splits.train > 0
    fitting = {"default", "random", "folds"}
    fitting |= {"given"} if has_split else set()
    fitting |= {"assigned"} if dataset.folds else set()
    fields = _form().fields(["name", "split", "seed"], {})
    return [
        replace(field, variants=[item for item in field.variants if item.key in fitting]) for field in fields
    ]


@router.get("/experiments/{experiment_id}", dependencies=[ReadScope])
async def experiment(ctx: Context, request: Request, experiment_id: ExperimentId) -> Response:
    """Show the report of an experiment, and its progress while it runs."""

    def read() -> Response:
        item = service.get(ctx.db, experiment_id)
        report = reports.get(ctx, experiment_id)
        drawn = _draw(report.model_dump_json())
        return page(
            request,
            "experiments/detail.html",
            experiment=item,
            is_final=item.state in FINISHED,
            report=report,
            winners=_winners(report),
            measure_charts=drawn.measures,
            curve_charts=drawn.curves,
            alpha=html.ALPHA,
            arrows=formatting.ARROWS,
            color_of=color_of,
            formatting=formatting,
            configuration_json=html.configuration_json,
        )

    return await STORAGE.run(read)


def _winners(report: ExperimentReport) -> list[ReportRow]:
    """Return the configurations that are the best by the first measure; several if they are equal."""
    first = report.measures[0].name
    return [row for row in report.rows if first in row.test and row.test[first].best]


@dataclass(frozen=True)
class ReportCharts:
    """The charts of a report.

    Attributes:
        measures: each measure with its chart.
        curves: unit, measure and chart of each learning curve.
    """

    measures: Sequence[tuple[ReportMeasure, Markup]]
    curves: Sequence[tuple[str, str, Markup]]


@lru_cache(maxsize=8)
def _draw(report_json: str) -> ReportCharts:
    """Draw the charts of a report once for all that look at it, and while it does not change."""
    report = ExperimentReport.model_validate_json(report_json)
    return ReportCharts(
        [(measure, charts.measure_chart(report, measure)) for measure in charts.measures_with_values(report)],
        [
            (unit, measure, charts.curve_chart(report, unit, measure))
            for unit in charts.curve_units(report)
            for measure in charts.curve_measures(report, unit)
        ],
    )


@cache
def _form() -> SchemaForm:
    return SchemaForm(ExperimentCreate.model_json_schema())
