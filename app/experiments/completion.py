"""End experiments: the job that ends last sets the final state of its experiment, exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.db import tables
from app.db.outbox import queue_event
from app.db.session import Transaction
from app.jobs import queue


def lock(tx: Transaction, experiment_id: str) -> tables.Experiment:
    """Lock the row of an experiment until the end of the transaction, and read its current values."""
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
    plan = tx.session.execute(
        select(tables.Job.state, tables.Job.error).where(tables.Job.id == row.job_id)
    ).one()
    if plan.state not in queue.FINISHED:
        return False
    cells = count_cells(tx.session, [experiment_id])[experiment_id]
    if any(cells[state] for state in queue.UNFINISHED):
        return False
    # The last case: a cancellation came between the computation of the folds and the creation of the cells.
    if (
        plan.state == "cancelled"
        or cells["cancelled"]
        or (row.cancel_requested_at is not None and not cells.total())
    ):
        row.state = "cancelled"
    elif cells["succeeded"]:
        row.state = "succeeded"
    else:
        row.state = "failed"
        row.error = plan.error or _first_error(tx.session, experiment_id)
    row.finished_at = tx.now
    tx.session.flush()
    data = {"job_id": row.job_id, "kind": "experiment", "state": row.state, "experiment_id": row.id}
    queue_event(tx, "job.ended", data, model=None)
    return True


def count_cells(session: Session, experiment_ids: Collection[str]) -> dict[str, Counter[str]]:
    """Count the cells of each experiment by the state of their jobs, in one statement."""
    rows = session.execute(
        select(tables.ExperimentCell.experiment_id, tables.Job.state, func.count())
        .join(tables.Job, tables.ExperimentCell.job_id == tables.Job.id)
        .where(tables.ExperimentCell.experiment_id.in_(experiment_ids))
        .group_by(tables.ExperimentCell.experiment_id, tables.Job.state)
    )
    counts: dict[str, Counter[str]] = {experiment_id: Counter() for experiment_id in experiment_ids}
    for experiment_id, state, count in rows:
        counts[experiment_id][state] = count
    return counts


def _first_error(session: Session, experiment_id: str) -> dict[str, Any] | None:
    """Return the error of the first failed cell by configuration and fold."""
    return session.scalars(
        select(tables.Job.error)
        .join(tables.ExperimentCell, tables.ExperimentCell.job_id == tables.Job.id)
        .where(tables.ExperimentCell.experiment_id == experiment_id, tables.Job.state == "failed")
        .order_by(tables.ExperimentCell.configuration, tables.ExperimentCell.fold)
        .limit(1)
    ).first()


def unfinished_jobs(session: Session, experiment_id: str) -> list[str]:
    """Return the ids of an experiment's jobs that have not ended, in ascending order."""
    cells = select(tables.ExperimentCell.job_id).where(tables.ExperimentCell.experiment_id == experiment_id)
    plan = select(tables.Experiment.job_id).where(tables.Experiment.id == experiment_id)
    return list(
        session.scalars(
            select(tables.Job.id)
            .where(tables.Job.id.in_(cells.union(plan)), tables.Job.state.in_(queue.UNFINISHED))
            .order_by(tables.Job.id)
        )
    )
