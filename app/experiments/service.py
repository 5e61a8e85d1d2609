"""Create, return, list and cancel experiments.

An experiment has one job that assigns examples to folds and queues the cells, and one job for each cell.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import case, select
from sqlalchemy.orm import Session

from app.api.idempotency import Idempotency
from app.api.paging import EVERYTHING, ListFilter, Page, newest_first
from app.context import AppContext
from app.datasets import service as datasets
from app.db import tables
from app.db.session import Database, Transaction
from app.errors import NotFound, TooLarge
from app.experiments import completion
from app.experiments.defaults import expand_grid, fill_in_defaults, n_configurations
from app.experiments.folds import held_out_folds
from app.experiments.schemas import Experiment, ExperimentCell, ExperimentCreate, ExperimentPage
from app.ids import new_id
from app.jobs import queue
from app.jobs.views import job_fields
from app.limits import service as limits
from app.training.coverings import check_coverings, coverings_of_learners
from app.training.decision_costs import check_costs

MAX_CELLS = 1000
"""Maximum number of cells in one experiment: configurations times folds."""


def create(ctx: AppContext, body: ExperimentCreate, idempotency: Idempotency) -> Experiment:
    """Queue an experiment; reject it if it is already certain that it cannot run.

    Raises:
        NotFound: the data set does not exist.
        Conflict: the data set is not ready.
        Invalid: the parts of the request do not fit together.
        TooLarge: the experiment has too many cells.
    """
    if (first := idempotency.first_response(ctx.db, Experiment)) is not None:
        return first
    dataset = datasets.get_ready(ctx, body.dataset_id, pointer="/dataset_id")
    datasets.check_labelled(dataset, pointer="/dataset_id")
    # Each configuration has at least one cell. Check this before the grid is expanded.
    _check_cells(n_configurations(body), body, MAX_CELLS)
    request = fill_in_defaults(body, dataset)
    _check_cells(n_cells(request), body, MAX_CELLS)
    # The folds are not known yet, so this only rejects coverings that no fold could use.
    learners = [(pointer, configuration.learner) for pointer, configuration in expand_grid(body)]
    measured = [(f"/coverings/{name}", covering) for name, covering in body.coverings.items()]
    coverings = [*coverings_of_learners(learners), *measured]
    left_out = -1 if body.keep_labels == "all" else int((dataset.report or {})["n_examples"])
    check_coverings(ctx.db, coverings, dataset, left_out=left_out)
    decisions = [(pointer, configuration.decision) for pointer, configuration in expand_grid(body)]
    check_costs(ctx.db, decisions, dataset)

    def work(tx: Transaction) -> Experiment:
        experiment_id = new_id("exp")
        datasets.lock_ready(tx, dataset.id, pointer="/dataset_id")
        spec = {"experiment_id": experiment_id}
        job = queue.enqueue(
            tx,
            "experiment",
            spec,
            dataset_id=dataset.id,
            priority=request.priority,
            key_id=idempotency.key_id,
        )
        limits.check_job_limit(tx, idempotency.key_id, ctx.settings.jobs_in_flight)
        row = tables.Experiment(
            id=experiment_id,
            name=request.name,
            dataset_id=dataset.id,
            dataset_sha256=dataset.sha256,
            request=request.model_dump(mode="json", exclude_none=True),
            state="running",
            job_id=job.id,
            created_at=tx.now,
        )
        tx.session.add(row)
        tx.session.flush()
        return to_response(tx.session, row)

    return idempotency.run(ctx.db, Experiment, work)


def _check_cells(cells: int, body: ExperimentCreate, limit: int) -> None:
    if cells > limit:
        message = (
            f"the experiment has {cells} cells, and {limit} are allowed; use fewer configurations or folds"
        )
        pointer = "/configurations" if body.grid is None else "/grid"
        raise TooLarge(message, errors=[(pointer, message)])


def n_cells(request: ExperimentCreate) -> int:
    """Return the number of cells: configurations times folds."""
    return len(request.configurations or []) * len(held_out_folds(request))


def get(db: Database, experiment_id: str) -> Experiment:
    """Return an experiment with its cells.

    Raises:
        NotFound: the experiment does not exist.
    """
    with db.read() as session:
        return to_response(session, get_or_404(session, experiment_id))


def page(db: Database, page: Page, conditions: ListFilter = EVERYTHING) -> ExperimentPage:
    """Return a page of experiments that meet conditions, without their cells, newest first."""
    of, job = tables.Experiment, tables.Job
    shown_state = (
        select(case((job.state == "queued", "queued"), else_=of.state))
        .where(job.id == of.job_id)
        .scalar_subquery()
    )
    with db.read() as session:
        rows, cursor = newest_first(session, conditions.apply(select(of), of.name, shown_state), of.id, page)
        counts = completion.count_cells(session, [row.id for row in rows])
        plans = dict(
            session.execute(
                select(tables.Job.id, tables.Job.state).where(tables.Job.id.in_([row.job_id for row in rows]))
            ).all()
        )
        items = [_to_response(row, plans[row.job_id], counts[row.id]) for row in rows]
        return ExperimentPage(items=items, next_cursor=cursor)


def cancel(ctx: AppContext, experiment_id: str) -> Experiment:
    """Cancel an experiment: finished cells keep their results, running cells stop, queued cells never start.

    Raises:
        NotFound: the experiment does not exist.
    """
    with ctx.db.write() as tx:
        row = completion.lock(tx, get_or_404(tx.session, experiment_id).id)
        if row.state != "running":
            return to_response(tx.session, row)
        # After this commit no cells are created, so the second transaction finds all of them.
        row.cancel_requested_at = row.cancel_requested_at or tx.now
    with ctx.db.write() as tx:
        # Locks jobs before the experiment, in the same order as the end of a cell, to prevent a deadlock.
        for job_id in completion.unfinished_jobs(tx.session, experiment_id):
            job = queue.lock(tx, job_id)
            assert job is not None, "unfinished jobs are not deleted"  # noqa: S101
            queue.request_cancel(tx, job)
        completion.finish_if_done(tx, experiment_id)
        return to_response(tx.session, get_or_404(tx.session, experiment_id))


def get_or_404(session: Session, experiment_id: str) -> tables.Experiment:
    """Return the row of an experiment.

    Raises:
        NotFound: the experiment does not exist.
    """
    row = session.get(tables.Experiment, experiment_id)
    if row is None:
        raise NotFound(f"there is no experiment {experiment_id}")
    return row


def to_response(session: Session, row: tables.Experiment, *, with_cells: bool = True) -> Experiment:
    """Convert a row to the response schema."""
    counts = completion.count_cells(session, [row.id])[row.id]
    plan_state = session.scalars(select(tables.Job.state).where(tables.Job.id == row.job_id)).one()
    return _to_response(row, plan_state, counts, _cells(session, row.id) if with_cells else None)


def _to_response(
    row: tables.Experiment,
    plan_state: str,
    counts: Counter[str],
    cells: list[ExperimentCell] | None = None,
) -> Experiment:
    total = n_cells(ExperimentCreate.model_validate(row.request))
    counts["cancelled" if row.state in queue.FINISHED else "queued"] += total - counts.total()
    return Experiment.model_validate(
        {
            "id": row.id,
            "name": row.name,
            "dataset_id": row.dataset_id,
            "request": row.request,
            "state": "queued" if plan_state == "queued" else row.state,
            "priority": row.request.get("priority", 0),
            "counts": {
                "total": total,
                **{s: counts[s] for s in ("queued", "running", "succeeded", "failed", "cancelled")},
            },
            "created_at": row.created_at,
            "finished_at": row.finished_at,
            "cancel_requested_at": row.cancel_requested_at,
            "error": row.error,
            "cells": cells,
        }
    )


def cell_rows(session: Session, experiment_id: str) -> list[tuple[tables.ExperimentCell, tables.Job]]:
    """Return every cell with its job, ordered by configuration and fold."""
    rows = session.execute(
        select(tables.ExperimentCell, tables.Job)
        .join(tables.Job, tables.Job.id == tables.ExperimentCell.job_id)
        .where(tables.ExperimentCell.experiment_id == experiment_id)
        .order_by(tables.ExperimentCell.configuration, tables.ExperimentCell.fold)
    )
    return [(cell, job) for cell, job in rows]


def cell_results(session: Session, experiment_id: str, configuration: int) -> dict[int, dict[str, Any]]:
    """Return the result of each cell of a configuration that has succeeded, by fold in ascending order."""
    rows = session.execute(
        select(tables.ExperimentCell.fold, tables.Job.result)
        .join(tables.Job, tables.Job.id == tables.ExperimentCell.job_id)
        .where(
            tables.ExperimentCell.experiment_id == experiment_id,
            tables.ExperimentCell.configuration == configuration,
            tables.Job.state == "succeeded",
        )
        .order_by(tables.ExperimentCell.fold)
    )
    return {fold: result for fold, result in rows if result is not None}


def _cells(session: Session, experiment_id: str) -> list[ExperimentCell]:
    return [
        ExperimentCell.model_validate(
            {
                **job_fields(job),
                "configuration": cell.configuration,
                "fold": cell.fold,
                "progress": job.progress if job.state == "running" else None,
                "metrics": (job.result or {}).get("metrics"),
            }
        )
        for cell, job in cell_rows(session, experiment_id)
    ]
