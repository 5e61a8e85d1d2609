"""The priority of a request reaches its jobs and its responses."""

from __future__ import annotations

import in_process
import pytest
from pydantic import ValidationError
from sqlalchemy import select
from stack import departments

from app.api.paging import Page
from app.context import AppContext
from app.db import tables
from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluationCreate
from app.experiments import service as experiments
from app.experiments.schemas import ExperimentCreate
from app.training import service as training
from app.training.schemas import TrainingJobCreate

BAYES = {"algorithm": "naive_bayes"}


def priorities(ctx: AppContext, kind: str) -> set[int]:
    with ctx.db.read() as session:
        return set(session.scalars(select(tables.Job.priority).where(tables.Job.kind == kind)))


@pytest.mark.parametrize("kind_of_database", ["sqlite"], indirect=True)
def test_trainings_evaluations_and_experiments_have_the_requested_priority(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(40))
    request = TrainingJobCreate.model_validate(
        {"model": "m", "dataset_id": dataset, "learner": BAYES, "priority": 7}
    )
    job = training.create(ctx, request, in_process.WITHOUT_KEY)
    assert (job.priority, job.request["priority"], priorities(ctx, "train")) == (7, 7, {7})
    in_process.work(ctx)
    evaluation = evaluations.create(
        ctx, "m", 1, EvaluationCreate(dataset_id=dataset, priority=-3), in_process.WITHOUT_KEY
    )
    page = evaluations.page(ctx.db, "m", 1, Page(after=None, limit=10))
    assert [evaluation.priority, *(item.priority for item in page.items)] == [-3, -3]
    body = {"dataset_id": dataset, "configurations": [{"learner": BAYES}], "priority": 5}
    experiment = experiments.create(ctx, ExperimentCreate.model_validate(body), in_process.WITHOUT_KEY)
    in_process.work(ctx, 2)
    assert experiment.priority == 5
    assert (priorities(ctx, "experiment"), priorities(ctx, "cell")) == ({5}, {5})


@pytest.mark.parametrize("priority", [-101, 101, 1.5])
def test_a_priority_outside_of_the_limits_is_rejected(priority: object) -> None:
    with pytest.raises(ValidationError, match="priority"):
        EvaluationCreate.model_validate({"dataset_id": "ds_1", "priority": priority})
