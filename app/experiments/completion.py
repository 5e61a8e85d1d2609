"""Ends experiments: the job that ends last sets the final state of its experiment, exactly once."""

from __future__ import annotations

from collections import Counter

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.context import AppContext
from app.db import tables
from app.db.session import Transaction
from app.experiments import shared_files
from app.jobs import queue


def lock(tx: Transaction, experiment_id: str) -> tables.Experiment:
    """Locks the row of an experiment until the end of the transaction, and reads its current values."""
    return tx.session.get_one(tables.Experiment, experiment_id, with_for_update=True, populate_existing=True)


def finish_if_done(tx: Transaction, experiment_id: str) -> bool:
    """End an experiment if all its jobs have ended.

    Call this in the transaction that ends a job. If two jobs end at the same moment, the second transaction
    waits for the lock of the experiment's row and then sees the changes of the first.

    Returns:
        whether the experiment has ended.
    """
    row = lock(tx, experiment_id)
    if row.state != "running":
        return True
    plan = tx.session.get_one(tables.Job, row.job_id, populate_existing=True)
    if plan.state not in queue.FINISHED:
        return False
    cells = tx.session.scalars(
        select(tables.Job)
        .join(tables.ExperimentCell, tables.ExperimentCell.job_id == tables.Job.id)
        .where(tables.ExperimentCell.experiment_id == experiment_id)
        .order_by(tables.ExperimentCell.configuration, tables.ExperimentCell.fold)
        .execution_options(populate_existing=True)
    ).all()
    if any(job.state not in queue.FINISHED for job in cells):
        return False
    states = Counter(job.state for job in [*cells, plan])
    # The second case: a cancellation came between the computation of the folds and the creation of the cells.
    if states["cancelled"] or (row.cancel_requested_at is not None and not cells):
        row.state = "cancelled"
    elif any(job.state == "succeeded" for job in cells):
        row.state = "succeeded"
    else:
        row.state = "failed"
        row.error = next(job.error for job in [plan, *cells] if job.error is not None)
    row.finished_at = tx.now
    tx.session.flush()
    return True


def finish_done_on(tx: Transaction, dataset_id: str | None) -> None:
    """End the experiments on a data set whose jobs have all ended."""
    running = tx.session.scalars(
        select(tables.Experiment.id)
        .where(tables.Experiment.dataset_id == dataset_id, tables.Experiment.state == "running")
        .order_by(tables.Experiment.id)
    ).all()
    for experiment_id in running:
        finish_if_done(tx, experiment_id)


def unfinished_jobs(session: Session, experiment_id: str) -> list[str]:
    """Return the ids of an experiment's jobs that have not ended, in ascending order."""
    cells = select(tables.ExperimentCell.job_id).where(tables.ExperimentCell.experiment_id == experiment_id)
    plan = select(tables.Experiment.job_id).where(tables.Experiment.id == experiment_id)
    return list(
        session.scalars(
            select(tables.Job.id)
            .where(tables.Job.id.in_(cells.union(plan)), tables.Job.state.not_in(queue.FINISHED))
            .order_by(tables.Job.id)
        )
    )


def delete_unused_files(ctx: AppContext) -> None:
    """Delete the shared files of experiments that have ended."""
    files = ctx.storage.files(shared_files.FOLDER)
    experiments = {file.key: shared_files.experiment_of(file.key) for file in files}
    if not experiments:
        return
    with ctx.db.read() as session:
        running = set(
            session.scalars(
                select(tables.Experiment.id).where(
                    tables.Experiment.id.in_(set(experiments.values())), tables.Experiment.state == "running"
                )
            )
        )
    for key, experiment_id in experiments.items():
        if experiment_id not in running:
            ctx.storage.delete(key)
