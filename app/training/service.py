"""Create training jobs, and read what they have recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select

from app.api.idempotency import Idempotency
from app.api.paging import EVERYTHING, ListFilter, Page
from app.context import AppContext
from app.datasets import service as datasets
from app.db import tables
from app.db.session import Database, Transaction
from app.errors import Invalid, from_library_error
from app.evaluations.coverings import check_measured_covering
from app.jobs import events as job_events
from app.jobs import queue
from app.jobs.schemas import CurvePage, CurvePoint, JobEventPage
from app.jobs.views import JobResource
from app.limits import service as limits
from app.training.coverings import check_coverings, coverings_of_learners
from app.training.decision_costs import check_costs
from app.training.learner_checks import check_trainable
from app.training.measures import check_promotion
from app.training.schemas import (
    GivenSplit,
    NoSplit,
    RandomSplit,
    TrainingJob,
    TrainingJobCreate,
    TrainingJobPage,
)
from models import catalog
from models.errors import ParameterError
from models.splits import part_sizes

JOBS: JobResource[tables.Job, TrainingJob, TrainingJobPage] = JobResource(
    "training job",
    TrainingJob,
    TrainingJobPage,
    lambda job: {
        "id": job.id,
        "model": job.model,
        "dataset_id": job.dataset_id,
        "request": job.spec,
        "created_at": job.created_at,
        "result": job.result,
    },
    id_=tables.Job.id,
    job_id=tables.Job.id,
    rows=select(tables.Job).where(tables.Job.kind == "train"),
)
get, cancel = JOBS.get, JOBS.cancel


def page(db: Database, page: Page, conditions: ListFilter = EVERYTHING) -> TrainingJobPage:
    """Return a page of training jobs that meet conditions, newest first. Their name is that of the model."""
    with db.read() as session:
        return JOBS.page_of(session, conditions.apply(JOBS.rows, tables.Job.model, tables.Job.state), page)


def create(ctx: AppContext, body: TrainingJobCreate, idempotency: Idempotency) -> TrainingJob:
    """Queue a training; reject it if it is already certain that it cannot run.

    Raises:
        NotFound: the data set does not exist.
        Conflict: the data set is not ready.
        Invalid: the parts of the request do not fit together.
    """
    if (first := idempotency.first_response(ctx.db, TrainingJob)) is not None:
        return first
    dataset = datasets.get_ready(ctx, body.dataset_id, pointer="/dataset_id")
    datasets.check_labelled(dataset, pointer="/dataset_id")
    request = fill_in_defaults(body, dataset)
    left_out = _left_out(request, dataset.report or {})
    coverings = [*coverings_of_learners([("", request.learner)])]
    if request.covering is not None:
        coverings.append(("/covering", request.covering))
    check_coverings(ctx.db, coverings, dataset, left_out=-1 if request.keep_labels == "all" else left_out)
    check_costs(ctx.db, [("", request.decision)], dataset)

    def work(tx: Transaction) -> TrainingJob:
        datasets.lock_ready(tx, dataset.id, pointer="/dataset_id")
        job = queue.enqueue(
            tx,
            "train",
            request.model_dump(mode="json", exclude_none=True),
            dataset_id=dataset.id,
            model=request.model,
            priority=request.priority,
            key_id=idempotency.key_id,
        )
        limits.check_job_limit(tx, idempotency.key_id, ctx.settings.jobs_in_flight)
        return JOBS.to_response(job, job)

    return idempotency.run(ctx.db, TrainingJob, work)


def fill_in_defaults(body: TrainingJobCreate, dataset: tables.Dataset) -> TrainingJobCreate:
    """Return the request with its defaults filled in for a data set.

    Raises:
        Invalid: the data set, split, features, learner and decision rule do not fit together.
    """
    report = dataset.report or {}
    splits = report.get("splits", {})
    has_split = splits.get("train", 0) > 0
    if isinstance(body.split, GivenSplit) and not has_split:
        message = "the data set has no split with a training part; use random or none"
        raise Invalid(message, errors=[("/split/kind", message)])
    check_measured_covering(body.covering, dataset)
    split = body.split or (GivenSplit(kind="given") if has_split else NoSplit(kind="none"))
    try:
        features = catalog.requested_features(body.learner, body.features, report["kind"])
        check_trainable(body.learner, report, given_split=isinstance(split, GivenSplit))
        decision = catalog.resolve_decision(body.learner, body.decision)
    except ParameterError as error:
        raise from_library_error(error) from error
    filled = body.model_copy(
        update={
            "split": split,
            "features": features,
            "decision": decision,
        }
    )
    check_promotion(filled, dataset)
    return filled


def _left_out(request: TrainingJobCreate, report: Mapping[str, Any]) -> int:
    """Return the largest number of examples that are not in the training part."""
    if isinstance(request.split, GivenSplit):
        return int(report["n_examples"] - report["splits"]["train"])
    if isinstance(request.split, RandomSplit):
        fractions = [request.split.test_fraction, request.split.validation_fraction]
        # Equal documents stay together, and a part can exceed its size by all but one of those of a document.
        return sum(part_sizes(int(report["n_examples"]), fractions)[1:]) + int(report["n_duplicates"])
    return 0


def events(db: Database, job_id: str, page: Page) -> JobEventPage:
    """Return a page of a job's events, oldest first.

    Raises:
        NotFound: the job does not exist.
    """
    with db.read() as session:
        JOBS.get_or_404(session, job_id)
        return job_events.list_events(session, job_id, page)


def curve(db: Database, job_id: str, page: Page) -> CurvePage:
    """Return a page of a training's measures by step.

    Raises:
        NotFound: the job does not exist.
    """
    with db.read() as session:
        JOBS.get_or_404(session, job_id)
        return job_events.list_curve(session, job_id, page)


def curve_outline(db: Database, job_id: str, max_points: int) -> list[CurvePoint]:
    """Return points of a training's learning curve at about equal distances, for a chart.

    Raises:
        NotFound: the job does not exist.
    """
    with db.read() as session:
        JOBS.get_or_404(session, job_id)
        return job_events.curve_outline(session, job_id, max_points)
