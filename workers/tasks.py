"""The tasks: one for each kind of job. The id of a task is that of its job, and it has no arguments."""

from __future__ import annotations

from typing import Any

from workers import pool_process
from workers.celery import app
from workers.pool_process import JobEndedError


@app.task(name="covey.ingest", bind=True, throws=(JobEndedError,))
def ingest(task: Any) -> None:
    """Read an uploaded data set."""
    pool_process.run_job(task.request.id)


@app.task(name="covey.train", bind=True, throws=(JobEndedError,))
def train(task: Any) -> None:
    """Train a version of a model."""
    pool_process.run_job(task.request.id)


@app.task(name="covey.evaluate", bind=True, throws=(JobEndedError,))
def evaluate(task: Any) -> None:
    """Evaluate a version on a data set."""
    pool_process.run_job(task.request.id)


@app.task(name="covey.batch_prediction", bind=True, throws=(JobEndedError,))
def batch_prediction(task: Any) -> None:
    """Predict the labels of a data set."""
    pool_process.run_job(task.request.id)


@app.task(name="covey.experiment", bind=True, throws=(JobEndedError,))
def experiment(task: Any) -> None:
    """Plan the trainings of an experiment."""
    pool_process.run_job(task.request.id)


@app.task(name="covey.cell", bind=True, throws=(JobEndedError,))
def cell(task: Any) -> None:
    """Run one training of an experiment."""
    pool_process.run_job(task.request.id)
