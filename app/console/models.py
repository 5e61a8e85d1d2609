"""Pages of models: versions, their measures and mistakes, comparisons, promotion, and model cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request, Response
from markupsafe import Markup

from app.api.base_route import Context, ReadScope
from app.api.guards import has_scope
from app.api.paging import MAX_LIMIT, Page, PageQuery
from app.api.schemas import ModelName
from app.console import charts
from app.console.measures import main_columns
from app.console.rendering import page
from app.console.route import Conditions, pages
from app.console.versions import card, comparison, decision, reading
from app.console.versions.comparison import ComparedVersion
from app.console.versions.evaluation import heat_map, label_table, worst_labels
from app.context import AppContext
from app.datasets import service as datasets
from app.errors import Invalid
from app.evaluations import service as evaluations
from app.evaluations.schemas import Evaluation, PartEvaluation
from app.pages.measures import measure_title
from app.registry import aliases
from app.registry import service as registry
from app.registry.aliases import etag
from app.threads import REQUESTS, STORAGE

router = pages("/models")

Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
PartName = Literal["test", "train"]

MAX_CURVES = 4
"""Maximum number of charts of curves."""


@router.get("", dependencies=[ReadScope])
def models(ctx: Context, request: Request, paging: PageQuery, conditions: Conditions) -> Response:
    """Show the models."""
    return page(
        request,
        "models/list.html",
        models=registry.page_models(ctx.db, paging, conditions),
        conditions=conditions,
    )


@router.get("/{name}", dependencies=[ReadScope])
def model(ctx: Context, request: Request, name: ModelName, paging: PageQuery) -> Response:
    """Show the versions of a model, and the history of the version that is live."""
    changes, _ = reading.history(ctx.db, name, "live", Page(20, None))
    live = reading.live_alias(ctx.db, name)
    versions = registry.page_versions(ctx.db, name, paging)
    return page(
        request,
        "models/model.html",
        model=registry.get_model(ctx.db, name),
        versions=versions,
        measures=main_columns([ComparedVersion(version).measures for version in versions.items]),
        measures_of=ComparedVersion,
        aliases=aliases.page(ctx.db, name, Page(MAX_LIMIT, None)).items,
        live=live,
        live_etag=None if live is None else etag(live),
        etag=etag,
        changes=changes,
    )


@router.get("/{name}/compare", dependencies=[ReadScope])
def compare(
    ctx: Context,
    request: Request,
    name: ModelName,
    version: Annotated[list[int], Query(default_factory=list, max_length=50)],
) -> Response:
    """Show versions side by side."""
    numbers = list(dict.fromkeys(version))
    if not 2 <= len(numbers) <= comparison.MAX_VERSIONS:
        message = f"select 2 to {comparison.MAX_VERSIONS} versions of {name} to compare"
        raise Invalid(message, errors=[("/query/version", message)])
    versions = [reading.read_version(ctx, name, number) for number in numbers]
    return page(
        request,
        "models/compare.html",
        name=name,
        versions=versions,
        datasets=[reading.dataset_of(ctx.db, item.version) for item in versions],
        measures=comparison.measure_rows(versions),
        parameters=comparison.parameter_changes(versions),
        data=comparison.data_comparison(versions),
        curves=_curve_charts(ctx, versions),
    )


@router.get("/{name}/versions/{number}", dependencies=[ReadScope])
async def version(
    ctx: Context,
    request: Request,
    name: ModelName,
    number: Number,
    part: PartName | None = None,
    evaluation: Annotated[str | None, Query(max_length=100)] = None,
    labels: Annotated[str, Query(max_length=500)] = "",
    texts: bool = False,
) -> Response:
    """Show a version: its measures, labels, mistakes, probabilities and parameters."""
    texts = texts and has_scope(request, "train")

    def read() -> dict[str, Any]:
        return _read_version(ctx, name, number, part, evaluation, labels, texts=texts)

    # The texts are in a file of the storage.
    values = await (STORAGE if texts else REQUESTS).run(read)
    values["texts"] = texts
    return await REQUESTS.run(lambda: page(request, "models/version.html", **values))


def _read_version(
    ctx: AppContext,
    name: str,
    number: int,
    part: PartName | None,
    evaluation_id: str | None,
    search: str,
    *,
    texts: bool,
) -> dict[str, Any]:
    version = registry.get_version(ctx.db, name, number)
    job = reading.training_job(ctx.db, version)
    of_training = reading.training_evaluation(ctx, version, texts=texts)
    evaluation: Evaluation | None = None
    shown: PartEvaluation | None = None
    if evaluation_id is not None:
        evaluation = evaluations.get(ctx, name, number, evaluation_id, texts=texts)
        shown = evaluation.result
    elif of_training is not None:
        part = part if part is not None and (part == "train" or of_training.test) else None
        part = part or ("test" if of_training.test is not None else "train")
        shown = of_training.test if part == "test" else of_training.train
    item = ComparedVersion(version, {} if job is None else job.request)
    live = reading.live_alias(ctx.db, name)
    ready = [
        dataset for dataset in datasets.page(ctx.db, Page(MAX_LIMIT, None)).items if dataset.state == "ready"
    ]
    return {
        "item": item,
        "part": part if evaluation is None else None,
        "has_test": of_training is not None and of_training.test is not None,
        "evaluation": evaluation,
        "evaluations": evaluations.page(ctx.db, name, number, Page(20, None)).items,
        "shown": shown,
        "search": search,
        "table": None if shown is None else label_table(shown, version.thresholds, search),
        "worst_labels": [] if shown is None else worst_labels(shown),
        "heat": None if shown is None else heat_map(shown),
        "reliability": _reliability_charts(shown),
        "coverage": (
            charts.coverage_chart(shown.coverage_curve)
            if shown is not None and shown.coverage_curve
            else None
        ),
        "curves": _curve_charts(ctx, [item]),
        "dataset": reading.dataset_of(ctx.db, version),
        "ready": ready,
        "live": live,
        "live_etag": None if live is None else etag(live),
        "numbers_of_labels": decision.numbers_of_labels,
        "titles_of_thresholds": decision.THRESHOLDS,
    }


def _reliability_charts(part: PartEvaluation | None) -> list[tuple[str, str, Markup, Any]]:
    """Return title, caption, chart and bins of each reliability diagram."""
    if part is None:
        return []
    diagrams = (
        ("Label sets", "label sets", part.label_set_reliability),
        ("Single labels", "single labels", part.reliability),
    )
    return [
        (
            f"Reliability: {title.lower()}",
            f"Probabilities of {what} are accurate if the points are on the dashed line.",
            charts.reliability_chart(bins, what, title),
            [item for item in bins if item.count],
        )
        for title, what, bins in diagrams
        if bins
    ]


def _curve_charts(ctx: AppContext, versions: Sequence[ComparedVersion]) -> list[dict[str, Any]]:
    """Return a chart of each measure by step, with one line for each version."""
    curves: list[charts.Curve] = []
    units: set[str] = set()
    for item in versions:
        found = reading.curves_of(ctx.db, item.version, f"version {item.version.version}")
        found = [curve for curve in found if len(curve.steps) > 1]
        if found:
            units.add(reading.unit_of_steps(item.version))
            curves += found
    unit = units.pop() if len(units) == 1 else "step"
    shown = []
    for measure in list(dict.fromkeys(curve.measure for curve in curves))[:MAX_CURVES]:
        lines = [curve for curve in curves if curve.measure == measure]
        shown.append(
            {
                "measure": measure_title(measure),
                "svg": charts.curves_chart(lines, measure_title(measure), unit),
                "unit": unit,
                "columns": [unit, *(curve.name for curve in lines)],
                "rows": _curve_rows(lines),
            }
        )
    return shown


def _curve_rows(curves: Sequence[charts.Curve], max_rows: int = 20) -> list[list[Any]]:
    """Return about 20 steps of curves as rows of a table."""
    steps = sorted({step for curve in curves for step in curve.steps})
    every = -(-len(steps) // max_rows)
    values = [dict(zip(curve.steps, curve.values, strict=True)) for curve in curves]
    shown = [*steps[:-1:every], steps[-1]]
    return [
        [step, *(f"{column[step]:.4f}" if step in column else "–" for column in values)] for step in shown
    ]


@router.get("/{name}/versions/{number}/card", dependencies=[ReadScope])
def model_card(ctx: Context, name: ModelName, number: Number) -> Response:
    """Download the model card of a version as Markdown."""
    item = reading.read_version(ctx, name, number)
    changes, _ = reading.history(ctx.db, name, "live", Page(20, None))
    text = card.render(item, reading.dataset_of(ctx.db, item.version), changes)
    disposition = f'attachment; filename="{name}-{number}.md"'
    return Response(
        text,
        media_type="text/markdown; charset=utf-8",
        headers={"Content-Disposition": disposition, "Cache-Control": "no-store"},
    )
