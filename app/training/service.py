"""What happens to training jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.context import AppContext
from app.datasets import service as datasets
from app.db import tables
from app.db.session import Database, Transaction
from app.http.errors import Invalid, NotFound, from_learning
from app.http.idempotency import Idempotency
from app.http.paging import Page, cut, newest_first
from app.jobs import queue
from app.jobs.schemas import CurvePage, CurvePoint, JobEvent, JobEventPage
from app.limits import service as limits
from app.training.coverings import check_covering
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


def create(ctx: AppContext, body: TrainingJobCreate, idempotency: Idempotency) -> TrainingJob:
    """Queue a training; whatever can be known to be impossible is refused now."""
    dataset = datasets.ready(ctx, body.dataset_id, pointer="/dataset_id")
    request = completed(body, dataset)
    check_covering(ctx.db, request.learner, dataset, left_out=_left_out(request, dataset.report or {}))

    def work(tx: Transaction) -> TrainingJob:
        job = queue.enqueue(
            tx,
            "train",
            request.model_dump(mode="json", exclude_none=True),
            dataset_id=dataset.id,
            model=request.model,
        )
        limits.own(tx, job, idempotency.key_id, ctx.settings.jobs_in_flight)
        return shown(job)

    return idempotency.run(ctx.db, TrainingJob, work)


def completed(body: TrainingJobCreate, dataset: tables.Dataset) -> TrainingJobCreate:
    """The request with its defaults filled in for a data set.

    Raises:
        Invalid: the data set, features, learner and decision do not go together.
    """
    report = dataset.report or {}
    splits = report.get("splits", {})
    given = splits.get("train", 0) > 0
    if isinstance(body.split, GivenSplit) and not given:
        message = "the data set's examples bear no split with a training part; choose random or none"
        raise Invalid(message, errors=[("/split/kind", message)])
    kind = report["kind"]
    features = body.features or catalog.FEATURES_PARAMETERS.validate_python(
        {"kind": "numeric" if kind == "features" else "text"}
    )
    try:
        catalog.check_features(features, body.learner, kind)
        decision = catalog.resolve_decision(body.learner, body.decision)
    except ParameterError as error:
        raise from_learning(error) from error
    return body.model_copy(
        update={
            "split": body.split or (GivenSplit(kind="given") if given else NoSplit(kind="none")),
            "features": features,
            "decision": decision,
        }
    )


def _left_out(request: TrainingJobCreate, report: Mapping[str, Any]) -> int:
    """How many examples are not in the training part."""
    if isinstance(request.split, GivenSplit):
        return int(report["n_examples"] - report["splits"]["train"])
    if isinstance(request.split, RandomSplit):
        return round(int(report["n_examples"]) * request.split.test_fraction)
    return 0


def get(db: Database, job_id: str) -> TrainingJob:
    """One training job."""
    with db.read() as session:
        return shown(_found(session, job_id))


def page(db: Database, page: Page) -> TrainingJobPage:
    """A page of training jobs, the newest first."""
    with db.read() as session:
        statement = select(tables.Job).where(tables.Job.kind == "train")
        rows, cursor = newest_first(session, statement, tables.Job.id, page)
        return TrainingJobPage(items=[shown(row) for row in rows], next_cursor=cursor)


def cancel(db: Database, job_id: str) -> TrainingJob:
    """Ask a job to stop; asking again, or asking one that has ended, changes nothing."""
    with db.write() as tx:
        _found(tx.session, job_id)
        job = queue.lock(tx, job_id)
        assert job is not None, "jobs are not deleted"  # noqa: S101
        queue.request_cancel(tx, job)
        return shown(job)


def events(db: Database, job_id: str, page: Page) -> JobEventPage:
    """A page of what happened to a job, the oldest first."""
    with db.read() as session:
        _found(session, job_id)
        rows = session.scalars(
            select(tables.JobEvent)
            .where(tables.JobEvent.job_id == job_id, tables.JobEvent.seq > page.after_number())
            .order_by(tables.JobEvent.seq)
            .limit(page.limit + 1)
        ).all()
        shown_rows, cursor = cut(rows, page, lambda row: row.seq)
        items = [JobEvent(seq=row.seq, at=row.at, type=row.type, detail=row.detail) for row in shown_rows]
        return JobEventPage(items=items, next_cursor=cursor)


def curve(db: Database, job_id: str, page: Page) -> CurvePage:
    """A page of a training's measures by round, epoch or pass."""
    with db.read() as session:
        _found(session, job_id)
        rows = session.scalars(
            select(tables.CurvePoint)
            .where(tables.CurvePoint.job_id == job_id, tables.CurvePoint.step > page.after_number())
            .order_by(tables.CurvePoint.step)
            .limit(page.limit + 1)
        ).all()
        shown_rows, cursor = cut(rows, page, lambda row: row.step)
        items = [CurvePoint(step=row.step, measures=row.measures) for row in shown_rows]
        return CurvePage(items=items, next_cursor=cursor)


def _found(session: Session, job_id: str) -> tables.Job:
    job = session.get(tables.Job, job_id)
    if job is None or job.kind != "train":
        raise NotFound(f"there is no training job {job_id}")
    return job


def shown(job: tables.Job) -> TrainingJob:
    """A row as clients see it."""
    return TrainingJob.model_validate(
        {
            "id": job.id,
            "model": job.model,
            "dataset_id": job.dataset_id,
            "request": job.spec,
            "state": job.state,
            "progress": job.progress,
            "attempt": job.attempt,
            "created_at": job.created_at,
            "started_at": job.started_at,
            "finished_at": job.finished_at,
            "cancel_requested_at": job.cancel_requested_at,
            "error": job.error,
            "result": job.result,
        }
    )
