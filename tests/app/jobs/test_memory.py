"""The share of the machine's memory that a job can use."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import in_process
import numpy as np
import pytest
from stack import departments

from app.context import AppContext
from app.jobs.memory import SCORE_BYTES, SHARE, check_training, job_limit, machine_memory
from app.settings import Settings
from app.training import service
from app.training.schemas import TrainingJobCreate
from models.catalog import LEARNER_PARAMETERS, create_learner
from models.data.examples import Examples
from models.pipeline import Pipeline


def test_the_default_limit_is_a_share_of_the_machine() -> None:
    assert job_limit(Settings(worker_concurrency=4)) == int(SHARE * machine_memory()) // 4
    assert job_limit(Settings(job_memory_bytes=5)) == 5
    assert job_limit(Settings(job_memory_bytes=0)) == 0


def test_the_limit_of_a_container_counts_if_it_is_smaller(tmp_path: Path) -> None:
    physical = machine_memory(tmp_path)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("1:name=systemd:/\n0::/pods/covey\n")
    groups = tmp_path / "sys/fs/cgroup"
    (groups / "pods/covey").mkdir(parents=True)
    (groups / "pods/covey/memory.max").write_text("max\n")
    assert machine_memory(tmp_path) == physical
    (groups / "pods/memory.max").write_text("1000000\n")
    assert machine_memory(tmp_path) == 1_000_000
    (groups / "memory").mkdir()
    (groups / "memory/memory.limit_in_bytes").write_text("500000\n")
    assert machine_memory(tmp_path) == 500_000


def test_a_training_whose_scores_exceed_the_limit_fails_before_it_starts(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(20))
    body = {"model": "helpdesk", "dataset_id": dataset, "learner": {"algorithm": "svm"}}
    job = service.create(ctx, TrainingJobCreate.model_validate(body), in_process.WITHOUT_KEY)
    limited = replace(ctx, settings=ctx.settings.model_copy(update={"job_memory_bytes": 2**20}))
    assert in_process.work(limited) == ["train"]
    error = service.get(ctx.db, job.id).error
    assert error is not None
    assert error.code == "out_of_memory"
    assert "the scores of 15 training examples for 4 labels take 0.0 GiB" in error.detail
    assert "the data set has 20 examples and 4 labels: select fewer features" in error.detail
    check_training(Settings(job_memory_bytes=0), 10**9, 10**6)  # without a limit


@pytest.mark.parametrize("algorithm", ["naive_bayes", "mp_boost"])
def test_no_training_that_fits_is_refused(algorithm: str) -> None:
    g, k = 3_000, 100
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{word}" for word in rng.integers(0, 50, 5)) for _ in range(g)]
    examples = Examples("text", texts, [(f"l{i % k:02}",) for i in range(g)])
    more = {"rounds": 2} if algorithm == "mp_boost" else {}
    learner = create_learner(LEARNER_PARAMETERS.validate_python({"algorithm": algorithm, **more}))
    tracemalloc.start()
    try:
        Pipeline(None, learner, "sign").fit(examples).evaluate(examples)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak >= SCORE_BYTES * g * k
