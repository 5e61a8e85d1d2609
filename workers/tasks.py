"""The tasks: one for each kind of job. The id of a task is that of its job, and it has no arguments."""

from __future__ import annotations

from typing import Any

from app.jobs.kinds import KINDS
from workers import pool_process
from workers.celery import app
from workers.pool_process import JobEndedError


def run_job(task: Any) -> None:
    """Run the job of a task."""
    pool_process.run_job(task.request.id)


for kind in KINDS:
    app.task(name=f"covey.{kind}", bind=True, throws=(JobEndedError,))(run_job)
