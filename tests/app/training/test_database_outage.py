"""A training whose last reports fail loses no point of its curve."""

from __future__ import annotations

from typing import Any

import in_process
import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from app.context import AppContext
from app.db import tables
from app.experiments import service as experiments
from app.experiments.schemas import ExperimentCreate
from app.jobs import queue
from app.training import service as trainings
from app.training.schemas import TrainingJobCreate

ROUNDS = 5
LEARNER = {"algorithm": "mp_boost", "rounds": ROUNDS}
EXAMPLES = [
    {"text": f"{word} number{n}", "labels": [label]}
    for n in range(12)
    for word, label in (("invoice", "billing"), ("parcel", "shipping"))
]


@pytest.fixture
def failing_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is unavailable for reports of a training, but back when the job finishes."""
    write = queue.report_progress

    def report_progress(*args: Any, **options: Any) -> bool:
        if options["curve"]:
            raise OperationalError("UPDATE", {}, ConnectionError("the server closed the connection"))
        return write(*args, **options)

    monkeypatch.setattr(queue, "report_progress", report_progress)


def curve_of(ctx: AppContext, kind: str) -> list[int]:
    """Return the steps of the curve of the only job of a kind."""
    with ctx.db.read() as session:
        job = session.scalars(select(tables.Job).where(tables.Job.kind == kind)).one()
        assert job.state == "succeeded", job.error
        points = select(tables.CurvePoint.step).where(tables.CurvePoint.job_id == job.id)
        return list(session.scalars(points.order_by(tables.CurvePoint.step)))


@pytest.mark.usefixtures("failing_reports")
def test_a_training_writes_the_points_that_no_report_could_write(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, EXAMPLES, format="jsonl")
    body = {"model": "helpdesk", "dataset_id": dataset, "learner": LEARNER}
    trainings.create(ctx, TrainingJobCreate.model_validate(body), in_process.WITHOUT_KEY)
    in_process.work(ctx)
    assert curve_of(ctx, "train") == list(range(1, ROUNDS + 1))


@pytest.mark.usefixtures("failing_reports")
def test_a_cell_of_an_experiment_writes_the_points_that_no_report_could_write(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, EXAMPLES, format="jsonl")
    body = {
        "dataset_id": dataset,
        "configurations": [{"learner": LEARNER}],
        "split": {"kind": "random", "test_fraction": 0.5},
        "measures": ["f1_micro"],
    }
    experiments.create(ctx, ExperimentCreate.model_validate(body), in_process.WITHOUT_KEY)
    in_process.work(ctx)
    assert curve_of(ctx, "cell") == list(range(1, ROUNDS + 1))
