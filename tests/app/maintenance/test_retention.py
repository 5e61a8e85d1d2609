"""What nobody needs any more goes, what somebody may still need stays, however often one collects."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
import rows

from app.context import AppContext
from app.db import tables
from app.jobs import queue
from app.maintenance import retention
from app.maintenance.retention import Collected
from app.storage import LocalStorage

OLD = 2 * 3600.0


def put(ctx: AppContext, key: str, age: float = OLD) -> Path:
    """A file that was written so many seconds ago."""
    assert isinstance(ctx.storage, LocalStorage)
    path = ctx.storage.root / key
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x")
    then = time.time() - age
    os.utime(path, (then, then))
    return path


def dataset(ctx: AppContext, id_: str, **fields: Any) -> None:
    row = {"id": id_, "name": "n", "format": "jsonl", "options": {}, "state": "ready", **fields}
    with ctx.db.write() as tx:
        tx.session.add(tables.Dataset(**row, created_at=tx.now))


def version(ctx: AppContext, key: str) -> None:
    with ctx.db.write() as tx:
        tx.session.add(tables.Model(name="m", last_version=1, created_at=tx.now))
        tx.session.flush()
        tx.session.add(
            tables.ModelVersion(
                model="m",
                version=1,
                artifact_key=key,
                artifact_sha256="0" * 64,
                artifact_bytes=1,
                description={},
                created_at=tx.now,
            )
        )


def set_checkpoint(ctx: AppContext, claim: queue.Claim, key: str) -> None:
    queue.report_progress(
        ctx.db, claim, {"phase": "t"}, curve={}, checkpoint={"key": key, "fence": claim.fence}
    )


def test_files_that_a_row_names_stay(ctx: AppContext) -> None:
    dataset(ctx, "ds_1", upload_key="uploads/ds_1.req_1", state="failed")
    dataset(ctx, "ds_2", storage_key="datasets/ds_2.1.parquet")
    version(ctx, "artifacts/job_9.1.covey")
    paths = [
        put(ctx, key) for key in ("uploads/ds_1.req_1", "datasets/ds_2.1.parquet", "artifacts/job_9.1.covey")
    ]
    assert retention.collect(ctx) == Collected(0, 0)
    assert all(path.exists() for path in paths)


def test_orphans_go_when_they_are_old(ctx: AppContext) -> None:
    dataset(ctx, "ds_2", storage_key="datasets/ds_2.2.parquet")
    orphans = [
        "uploads/ds_2.req_1",  # of a data set that is ready
        "uploads/ds_gone.req_1",
        "datasets/ds_2.1.parquet",  # by an attempt that was overtaken
        "datasets/ds_gone.1.parquet",
        "artifacts/job_gone.1.covey",
        "artifacts/req_1.covey",
        "experiments/exp_gone.job_1.1.safetensors",
        "tmp/0123456789ab.covey",
    ]
    old = [put(ctx, key) for key in orphans]
    young = [put(ctx, key.replace(".", ".9", 1), age=60) for key in orphans]
    assert retention.collect(ctx) == Collected(len(orphans), 0)
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in young)
    assert retention.collect(ctx) == Collected(0, 0)


def test_what_a_running_job_has_written_and_not_yet_named_stays(ctx: AppContext) -> None:
    job_id = rows.queued(ctx.db)
    claim = rows.claimed(ctx.db, job_id)
    dataset(ctx, "ds_3", state="ingesting")
    paths = [put(ctx, f"artifacts/{job_id}.1.covey"), put(ctx, "datasets/ds_3.1.parquet")]
    assert retention.collect(ctx) == Collected(0, 0)
    assert all(path.exists() for path in paths)
    with ctx.db.write() as tx:
        queue.finish(tx, claim, "failed")
    assert retention.collect(ctx) == Collected(1, 0)


def test_checkpoints_stay_while_a_job_may_go_on_from_them(ctx: AppContext) -> None:
    job_id = rows.queued(ctx.db)
    first = rows.claimed(ctx.db, job_id)
    named = put(ctx, f"checkpoints/{job_id}.1.2.safetensors", age=0)
    superseded = put(ctx, f"checkpoints/{job_id}.1.1.safetensors", age=0)
    set_checkpoint(ctx, first, f"checkpoints/{job_id}.1.2.safetensors")
    assert retention.collect(ctx) == Collected(0, 0), "the attempt that wrote them is still there"
    with ctx.db.write() as tx:
        job = queue.lock(tx, job_id)
        assert job is not None
        queue.requeue_lost(tx, job, reason="test")
    assert retention.collect(ctx) == Collected(1, 0)
    assert named.exists()
    assert not superseded.exists()
    second = rows.claimed(ctx.db, job_id)
    # Not named yet, and no time may pass before it is.
    fresh = put(ctx, f"checkpoints/{job_id}.{second.fence}.1.safetensors", age=OLD)
    assert retention.collect(ctx) == Collected(0, 0)
    with ctx.db.write() as tx:
        queue.finish(tx, second, "succeeded")
    assert retention.collect(ctx) == Collected(2, 0)
    assert not fresh.exists()


def test_rows_that_have_had_their_time_go(ctx: AppContext, clock: Any) -> None:
    with ctx.db.write() as tx:
        for name, seen in (("wrk_old", 0), ("wrk_holding", 0), ("wrk_new", 1)):
            moment = tx.now if not seen else tx.now + retention.KEEP_ROWS
            worker = tables.Worker(
                id=name, host="h", pid=1, machine="", concurrency=1, started_at=tx.now, last_seen_at=moment
            )
            tx.session.add(worker)
        tx.session.add(
            tables.IdempotencyRecord(
                caller="anonymous", key="k", fingerprint="f", response={}, created_at=tx.now
            )
        )
    rows.claimed(ctx.db, rows.queued(ctx.db), "wrk_holding")
    clock.advance(retention.KEEP_ROWS.total_seconds())
    assert retention.collect(ctx) == Collected(0, 0)
    clock.advance(1)
    assert retention.collect(ctx) == Collected(0, 2)
    with ctx.db.read() as session:
        assert session.get(tables.Worker, "wrk_old") is None
        assert session.get(tables.Worker, "wrk_holding") is not None
        assert session.get(tables.Worker, "wrk_new") is not None


def test_several_may_collect_at_once(ctx: AppContext) -> None:
    for n in range(50):
        put(ctx, f"uploads/ds_gone.req_{n}")
    together, failures = Barrier(3), []

    def collect(work: Callable[[AppContext], Collected]) -> None:
        together.wait()
        try:
            work(ctx)
        except Exception as error:  # noqa: BLE001 - told by the assertion below
            failures.append(error)

    threads = [Thread(target=collect, args=(retention.collect,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert list(ctx.storage.files("uploads")) == []


@pytest.mark.parametrize("grace", [10.0, 1e9])
def test_the_grace_is_a_setting(ctx: AppContext, grace: float) -> None:
    patient = replace(ctx, settings=ctx.settings.model_copy(update={"orphan_grace_seconds": grace}))
    path = put(ctx, "uploads/ds_gone.req_1", age=60)
    retention.collect(patient)
    assert path.exists() == (grace > 60)
