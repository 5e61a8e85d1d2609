"""The share of the machine's memory that a job can use."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import in_process
from stack import departments

from app.context import AppContext
from app.jobs.memory import SHARE, available_to_training, job_limit, machine_memory, memory_of
from app.settings import Settings
from app.training import service
from app.training.schemas import TrainingJobCreate


def test_the_default_limit_is_a_share_of_the_machine() -> None:
    assert job_limit(Settings(worker_concurrency=4)) == int(SHARE * machine_memory()) // 4
    assert job_limit(Settings(job_memory_bytes=5)) == 5
    assert job_limit(Settings(job_memory_bytes=0)) == 0
    assert available_to_training(Settings(job_memory_bytes=0)) is None
    assert available_to_training(Settings(job_memory_bytes=5)) == 0


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


def test_a_training_that_would_exceed_the_limit_fails_before_it_starts(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(20))
    body = {"model": "helpdesk", "dataset_id": dataset, "learner": {"algorithm": "svm"}}
    job = service.create(ctx, TrainingJobCreate.model_validate(body), in_process.WITHOUT_KEY)
    limit = memory_of(os.getpid()) + 100 * 2**20
    limited = replace(ctx, settings=ctx.settings.model_copy(update={"job_memory_bytes": limit}))
    assert in_process.work(limited) == ["train"]
    error = service.get(ctx.db, job.id).error
    assert error is not None
    assert error.code == "out_of_memory"
    assert "svm would need about 0.1 GiB" in error.detail
