"""Pages of training: the list of jobs, the form, and one job while it runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Annotated, Any, TypeAlias

from fastapi import Header, Query, Request, Response
from markupsafe import Markup

from app.api.base_route import Context, ReadScope, TrainScope
from app.api.idempotency import caller
from app.api.paging import Page, PageQuery
from app.api.schemas import JobId
from app.console.charts import curve_measures, training_curve
from app.console.rendering import duration, number, page
from app.console.route import Conditions, pages
from app.console.schema_form import Field, SchemaForm
from app.console.versions import promotion
from app.datasets import service as datasets
from app.datasets.schemas import Dataset
from app.errors import NotFound
from app.experiments.report import service as reports
from app.jobs.queue import FINISHED
from app.jobs.schemas import CurvePoint
from app.pages.measures import measure_title
from app.pages.rendering import percent
from app.threads import STORAGE
from app.training import service
from app.training.event_streams import EventStreams, parse_event_id
from app.training.schemas import TrainingJob, TrainingJobCreate
from models import catalog
from models.measures.covering import COVERING_MEASURES
from models.measures.directions import DIRECTIONS
from models.measures.paired_measures import PAIRED_MEASURES

router = pages()

MAX_DATASETS = 500
"""Data sets to choose from, the newest ones."""

MAX_POINTS = 300
"""Points of a curve in the chart. There can be many more steps."""

STATES = ("queued", "running", "succeeded", "failed", "cancelled")
"""The states of jobs, in their order."""

MAX_EVENTS = 100
"""Events of a job on its page."""

PHASES = {
    "features/candidates": "Comparing ways to read the text",
    "features": "Reading and counting words",
    "training": "Training",
    "thresholds": "Predicting held-out parts",
    "evaluating": "Evaluating",
    "saving": "Saving",
    "comparing": "Comparing with the live version",
}
"""Words for the phases of a training."""

MIN_ESTIMATE_SECONDS = 3.0
MIN_ESTIMATE_FRACTION = 0.03
"""Before this time or fraction of a training, an estimate of the rest would be a guess."""

_ROWS = 20
_KINDS = {"text": "text", "email": "text", "features": "numeric"}


@router.get("/training", dependencies=[ReadScope])
def trainings(ctx: Context, request: Request, paging: PageQuery, conditions: Conditions) -> Response:
    """Show the training jobs, newest first."""
    return page(
        request,
        "training/list.html",
        jobs=service.page(ctx.db, paging, conditions),
        conditions=conditions,
        states=STATES,
    )


@router.get("/training/new", dependencies=[TrainScope])
async def new_training(
    ctx: Context,
    request: Request,
    dataset: str | None = None,
    model: str = "",
    job: str | None = None,
    experiment: str | None = None,
    configuration: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """Show the form of a training: empty, or filled in from another job or from an experiment."""

    def read() -> Response:
        values: Mapping[str, Any] = {}
        chosen = dataset
        if job is not None:
            earlier = service.get(ctx.db, job)
            values, chosen = earlier.request, dataset or earlier.dataset_id
        elif experiment is not None:
            values, source = _values_of_experiment(ctx, experiment, configuration)
            chosen = dataset or source
        ready, item = choose_dataset(ctx, chosen)
        return page(
            request,
            "training/new.html",
            datasets=ready,
            dataset=item,
            query={"model": model, "job": job, "experiment": experiment, "configuration": configuration},
            basic=[]
            if item is None
            else form_fields(BASIC, {**values, **({"model": model} if model else {})}, item),
            advanced=[] if item is None else form_fields(ADVANCED, values, item),
            is_filled_in=bool(values),
        )

    return await STORAGE.run(read)


BASIC = ("model",)
ADVANCED = (
    *("learner", "split", "promote", "features", "decision", "keep_labels", "covering", "seed", "priority"),
)


def form_fields(names: Sequence[str], values: Mapping[str, Any], dataset: Dataset) -> list[Field]:
    """Return fields of the form for a data set.

    Args:
        names: the properties of the request.
        values: a request that the form shows, perhaps with only a few properties.
        dataset: a ready data set.
    """
    has_split = dataset.splits is not None and dataset.splits.train > 0
    shown: dict[str, Any] = {
        "split": {"kind": "given"} if has_split else {"kind": "random", "test_fraction": 0.25},
        "learner": {"algorithm": catalog.RECOMMENDED},
    }
    fields = _form().fields(names, {**shown, **values})
    return [_for_dataset(field, dataset, has_split=has_split) for field in fields]


def _for_dataset(field: Field, dataset: Dataset, *, has_split: bool) -> Field:
    """Leave out what does not fit a data set, and describe the learners by the catalog."""
    variants = field.variants
    match field.name:
        case "learner/algorithm":
            variants = [replace(item, help=_learners()[item.key]) for item in variants]
        case "features/kind":
            variants = [
                item for item in variants if item.key in ("default", "auto", _KINDS[dataset.kind or "text"])
            ]
        case "split/kind" if not has_split:
            variants = [item for item in variants if item.key != "given"]
    return replace(field, variants=variants)


def choose_dataset(ctx: Context, chosen: str | None) -> tuple[list[Dataset], Dataset | None]:
    """Return the newest data sets that a form offers, and the one that it shows.

    Args:
        ctx: the context.
        chosen: id of the data set to show; None for the newest one that is ready.

    Returns:
        the newest ready data sets with labels, and the chosen one; None if there is none.

    Raises:
        NotFound: the chosen data set does not exist.
    """
    items = datasets.page(ctx.db, Page(MAX_DATASETS, None)).items
    ready = [item for item in items if item.state == "ready" and item.n_unlabelled != item.n_examples]
    if chosen is None:
        return ready, ready[0] if ready else None
    found = next((item for item in ready if item.id == chosen), None)
    return ready, found or datasets.get(ctx.db, chosen)


def _values_of_experiment(
    ctx: Context, experiment_id: str, configuration: int
) -> tuple[Mapping[str, Any], str]:
    """Return the request for a configuration of an experiment, and the data set of the experiment."""
    report = reports.get(ctx, experiment_id)
    row = next((row for row in report.rows if row.configuration == configuration), None)
    if row is None:
        raise NotFound(f"experiment {experiment_id} has no configuration {configuration}")
    values = {"features": row.features, "learner": row.learner, "decision": row.decision, "seed": report.seed}
    return values, report.dataset_id


@router.get("/training/{job_id}", dependencies=[ReadScope])
def training(ctx: Context, request: Request, job_id: JobId) -> Response:
    """Show a training job: its progress, its learning curve, and its result or the reason of its failure."""
    job = service.get(ctx.db, job_id)
    points = service.curve_outline(ctx.db, job_id, MAX_POINTS)
    events = service.events(ctx.db, job_id, Page(MAX_EVENTS, None)).items
    phases = [event.detail for event in events if event.type == "phase"]
    unit = next((phase["unit"] for phase in phases if phase["phase"] == "training"), "steps")
    return page(
        request,
        "training/detail.html",
        job=job,
        is_final=job.state in FINISHED,
        phases=PHASES,
        time_left=_time_left(job, datetime.now(UTC)),
        chart=_draw(unit, tuple(map(_to_key, points))) if len(points) > 1 else None,
        columns=[unit, *map(measure_title, curve_measures(points))],
        rows=_rows(points),
        events=events,
        request_json=json.dumps(job.request, indent=2, ensure_ascii=False),
        directions=DIRECTIONS,
        promotion=_promotion(job),
    )


def _promotion(job: TrainingJob) -> list[str]:
    """Return in words whether the version of a training was put live."""
    if job.result is None or job.result.promotion is None:
        return []
    is_numeric = job.request.get("features", {}).get("kind") == "numeric"
    return promotion.sentences(job.result.promotion, "examples" if is_numeric else "messages")


@router.get("/training/{job_id}/events", dependencies=[ReadScope])
def training_events(
    ctx: Context,
    request: Request,
    job_id: JobId,
    last_event_id: Annotated[str | None, Header(max_length=18)] = None,
) -> Response:
    """Stream the events and the progress of a training to its page."""
    service.get(ctx.db, job_id)
    streams: EventStreams = request.app.state.event_streams
    return streams.open(caller(request), job_id, after=parse_event_id(last_event_id), progress=True)


def _time_left(job: TrainingJob, now: datetime) -> str:
    """Return how long a training has run, and about how long it will run, in words."""
    if job.started_at is None or job.progress is None or job.progress.fraction is None:
        return ""
    seconds = max((now - job.started_at).total_seconds(), 0.0)
    fraction = job.progress.fraction
    text = f"{percent(fraction)} done in {duration(seconds)}"
    if seconds < MIN_ESTIMATE_SECONDS or fraction < MIN_ESTIMATE_FRACTION:
        return f"{text}."
    return f"{text}; about {duration(seconds * (1 - fraction) / fraction)} left."


_PointKey: TypeAlias = tuple[int, tuple[tuple[str, float], ...]]


def _to_key(point: CurvePoint) -> _PointKey:
    return point.step, tuple(point.measures.items())


@lru_cache(maxsize=16)
def _draw(unit: str, points: tuple[_PointKey, ...]) -> Markup:
    """Draw a curve once for all that look at it, and for a page that has not changed since."""
    curve = [CurvePoint(step=step, measures=dict(measures)) for step, measures in points]
    return training_curve(curve, unit)


def _rows(points: Sequence[CurvePoint]) -> list[list[str]]:
    """Return some points of a curve as rows of a table, with the last one."""
    measures = curve_measures(points)
    distance = -(-len(points) // _ROWS) or 1
    shown = [*points[:-1][::distance], *points[-1:]]
    return [
        [f"{point.step:,}", *(number(point.measures.get(name), 4) for name in measures)] for point in shown
    ]


@cache
def _form() -> SchemaForm:
    metrics = [name for name in DIRECTIONS if name in PAIRED_MEASURES or name in COVERING_MEASURES]
    return SchemaForm(TrainingJobCreate.model_json_schema(), {"promote/if_better/metric": metrics})


@cache
def _learners() -> dict[str, Markup]:
    """Return the summary and the source of each learner."""
    text = Markup("{} <span class='quiet'>Source: {}.</span>")
    return {item.algorithm: text.format(item.summary, item.source) for item in catalog.describe()}
