"""Retention deletes what is no longer needed and keeps what may still be needed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
import rows
from sqlalchemy import select
from sqlalchemy.pool import QueuePool

from app.context import AppContext
from app.db import tables
from app.db.session import Database
from app.jobs import queue
from app.maintenance import old_versions, retention
from app.maintenance.retention import RetentionResult
from app.storage import FileInfo, LocalStorage, StorageState

OLD = 2 * 3600.0


def put(ctx: AppContext, key: str, age: float = OLD) -> Path:
    """Store a file whose modification time is ``age`` seconds ago."""
    assert isinstance(ctx.storage, LocalStorage)
    path = ctx.storage.root / key
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(b"x")
    modified = time.time() - age
    os.utime(path, (modified, modified))
    return path


def insert_dataset(ctx: AppContext, id_: str, **fields: Any) -> None:
    row = {"id": id_, "name": "n", "format": "jsonl", "options": {}, "state": "ready", **fields}
    with ctx.db.write() as tx:
        tx.session.add(tables.Dataset(**row, created_at=tx.now))


def insert_version(ctx: AppContext, key: str) -> None:
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


def test_files_that_a_row_references_are_kept(ctx: AppContext) -> None:
    insert_dataset(ctx, "ds_1", upload_key="uploads/ds_1.req_1", state="failed")
    insert_dataset(ctx, "ds_2", storage_key="datasets/ds_2.1.parquet")
    insert_version(ctx, "artifacts/job_9.1.covey")
    paths = [
        put(ctx, key) for key in ("uploads/ds_1.req_1", "datasets/ds_2.1.parquet", "artifacts/job_9.1.covey")
    ]
    assert retention.apply_retention(ctx) == RetentionResult(0, 0)
    assert all(path.exists() for path in paths)


def test_orphans_are_deleted_after_the_grace_period(ctx: AppContext) -> None:
    insert_dataset(ctx, "ds_2", storage_key="datasets/ds_2.2.parquet")
    orphans = [
        "uploads/ds_2.req_1",  # its data set does not refer to it any more
        "uploads/ds_gone.req_1",
        "datasets/ds_2.1.parquet",  # written by an attempt that lost its claim
        "datasets/ds_gone.1.parquet",
        "artifacts/job_gone.1.covey",
        "artifacts/req_1.covey",
        "experiments/exp_gone.job_1.1.safetensors",
        "tmp/0123456789ab.covey",
    ]
    old = [put(ctx, key) for key in orphans]
    young = [put(ctx, key.replace(".", ".9", 1), age=60) for key in orphans]
    assert retention.apply_retention(ctx) == RetentionResult(len(orphans), 0)
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in young)
    assert retention.apply_retention(ctx) == RetentionResult(0, 0)


def test_unreferenced_files_of_a_running_job_are_kept(ctx: AppContext) -> None:
    job_id = rows.queued(ctx.db)
    claim = rows.claimed(ctx.db, job_id)
    insert_dataset(ctx, "ds_3", state="ingesting")
    paths = [put(ctx, f"artifacts/{job_id}.1.covey"), put(ctx, "datasets/ds_3.1.parquet")]
    assert retention.apply_retention(ctx) == RetentionResult(0, 0)
    assert all(path.exists() for path in paths)
    with ctx.db.write() as tx:
        queue.finish(tx, claim, "failed")
    assert retention.apply_retention(ctx) == RetentionResult(1, 0)


def test_checkpoints_are_kept_while_a_job_can_continue_from_them(ctx: AppContext) -> None:
    job_id = rows.queued(ctx.db)
    first = rows.claimed(ctx.db, job_id)
    referenced = put(ctx, f"checkpoints/{job_id}.1.2.safetensors", age=0)
    superseded = put(ctx, f"checkpoints/{job_id}.1.1.safetensors", age=0)
    set_checkpoint(ctx, first, f"checkpoints/{job_id}.1.2.safetensors")
    assert retention.apply_retention(ctx) == RetentionResult(0, 0), (
        "the attempt that wrote them is still running"
    )
    with ctx.db.write() as tx:
        job = queue.lock(tx, job_id)
        assert job is not None
        queue.requeue_lost(tx, job, reason="test")
    assert retention.apply_retention(ctx) == RetentionResult(1, 0)
    assert referenced.exists()
    assert not superseded.exists()
    second = rows.claimed(ctx.db, job_id)
    # A file of the current attempt is kept at any age, although no row references it yet.
    unreferenced = put(ctx, f"checkpoints/{job_id}.{second.fence}.1.safetensors", age=OLD)
    assert retention.apply_retention(ctx) == RetentionResult(0, 0)
    with ctx.db.write() as tx:
        queue.finish(tx, second, "succeeded")
    assert retention.apply_retention(ctx) == RetentionResult(2, 0)
    assert not unreferenced.exists()


class _ListedOutsideSessions(LocalStorage):
    """A storage that checks that no session is open while files are listed or deleted."""

    def __init__(self, root: Path, db: Database) -> None:
        super().__init__(root)
        self._pool = db.engine.pool
        self.listed: list[str] = []

    def files(self, folder: str) -> Iterator[FileInfo]:
        """List files."""
        assert isinstance(self._pool, QueuePool)
        self.listed.append(folder)
        assert self._pool.checkedout() == 0
        for file in super().files(folder):
            assert self._pool.checkedout() == 0
            yield file

    def delete(self, key: str) -> None:
        """Delete a file."""
        assert isinstance(self._pool, QueuePool)
        assert self._pool.checkedout() == 0
        super().delete(key)


def test_no_session_is_open_while_files_are_listed_or_deleted(ctx: AppContext) -> None:
    keys = ["uploads/ds_gone.req_1", "checkpoints/job_gone.1.1.safetensors", "shared/exp_gone.folds.npy"]
    paths = [put(ctx, key) for key in keys]
    assert isinstance(ctx.storage, LocalStorage)
    storage = _ListedOutsideSessions(ctx.storage.root, ctx.db)
    retention.apply_retention(replace(ctx, storage=storage))
    assert {"uploads", "datasets", "artifacts", "checkpoints", "shared"} <= set(storage.listed)
    assert not any(path.exists() for path in paths)


def test_a_pass_ends_early_if_the_worker_stops(ctx: AppContext) -> None:
    orphan = put(ctx, "uploads/ds_gone.req_1")
    assert retention.apply_retention(ctx, stop=lambda: True) == RetentionResult(0, 0)
    assert orphan.exists()


def test_several_workers_can_apply_retention_at_the_same_time(ctx: AppContext) -> None:
    for n in range(50):
        put(ctx, f"uploads/ds_gone.req_{n}")
    barrier, failures = Barrier(3), []

    def run() -> None:
        barrier.wait()
        try:
            retention.apply_retention(ctx)
        except Exception as error:  # noqa: BLE001 - the assertion below reports it
            failures.append(error)

    threads = [Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert list(ctx.storage.files("uploads")) == []


@pytest.mark.parametrize(("period", "kept"), [(4.0, False), (6.0, True)])
def test_the_grace_period_depends_on_the_period_of_deletions(
    ctx: AppContext, period: float, kept: bool
) -> None:
    changed = replace(ctx, settings=ctx.settings.model_copy(update={"collect_seconds": period}))
    path = put(ctx, "uploads/ds_gone.req_1", age=60)
    retention.apply_retention(changed)
    assert path.exists() == kept


def test_ages_are_judged_by_the_clock_of_the_storage(
    ctx: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine of a network disk can be hours behind the worker."""
    hours_behind = datetime.now(UTC) - timedelta(hours=3)
    monkeypatch.setattr(type(ctx.storage), "check", lambda _: StorageState(hours_behind))
    young, old = (
        put(ctx, "uploads/ds_gone.req_1", age=3 * 3600),
        put(ctx, "uploads/ds_gone.req_2", age=5 * 3600),
    )
    retention.apply_retention(ctx)
    assert (young.exists(), old.exists()) == (True, False)


def insert_decisions(ctx: AppContext, days: Sequence[str], **fields: Any) -> list[Path]:
    """Insert a decision with a kept message for each day. Return the files."""
    keys = [f"messages/{day}/dec_{n}.zst" for n, day in enumerate(days)]
    with ctx.db.write() as tx:
        for n, key in enumerate(keys):
            row = {"id": f"dec_{n}", "router_id": "rtr_1", "router": "desk", "message_key": str(n)}
            tx.session.add(tables.Decision(**row, response={}, created_at=tx.now, kept_message=key, **fields))
    return [put(ctx, key) for key in keys]


def test_the_files_of_expired_messages_are_deleted_with_their_rows(ctx: AppContext) -> None:
    paths = insert_decisions(ctx, ["2026-01-01", "2026-01-02"], kept_until=datetime(2026, 1, 3, tzinfo=UTC))
    listed = _ListedOutsideSessions(paths[0].parents[2], ctx.db)
    context = replace(ctx, storage=listed)
    assert retention.delete_expired_rows(context, lambda: False)["kept_messages"] == 2
    assert (listed.listed, any(path.parent.exists() for path in paths)) == ([], False)


def test_messages_without_a_row_are_looked_for_day_by_day(
    ctx: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = [f"2026-01-0{n}" for n in range(1, 6)]
    kept = insert_decisions(ctx, days)
    orphans = [put(ctx, f"messages/{day}/dec_gone.zst") for day in days]
    listed: set[str] = set()
    for n in range(3):
        now = datetime.fromtimestamp(time.time() + n * ctx.settings.collect_seconds, UTC)
        monkeypatch.setattr(_ListedOutsideSessions, "check", lambda _, now=now: StorageState(now))
        storage = _ListedOutsideSessions(kept[0].parents[2], ctx.db)
        retention.apply_retention(replace(ctx, storage=storage))
        searched = {folder for folder in storage.listed if folder.startswith("messages/")}
        assert len(searched) == 3
        assert {f"messages/{day}" for day in days[-2:]} < searched
        listed |= searched
    assert listed == {f"messages/{day}" for day in days}
    assert not any(path.exists() for path in orphans)
    assert all(path.exists() for path in kept)


def test_old_versions_and_data_sets_are_deleted_but_not_those_that_are_used(
    ctx: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(1, 8):
        insert_dataset(ctx, f"ds_{n}", storage_key=f"datasets/ds_{n}.1.parquet")
    with ctx.db.write() as tx:
        tx.session.add(tables.Model(name="m", last_version=7, created_at=tx.now))
        tx.session.flush()
        for n in range(1, 8):
            row = {"artifact_key": f"artifacts/m-{n}", "artifact_sha256": "0" * 64, "artifact_bytes": 1}
            version = {"model": "m", "version": n, "dataset_id": f"ds_{n}", "description": {}}
            tx.session.add(tables.ModelVersion(**version, **row, created_at=tx.now))
        tx.session.add(tables.ModelAlias(model="m", alias="live", version=3, updated_at=tx.now))
        change = {"model": "m", "alias": "live", "reason": "promoted", "changed_at": tx.now}
        tx.session.add(tables.AliasChange(**change, revision=1, from_version=None, to_version=1))
        tx.session.add(tables.AliasChange(**change, revision=2, from_version=1, to_version=2))
        tx.session.add(tables.AliasChange(**change, revision=3, from_version=2, to_version=3))
        router = {"name": "desk", "id": "rtr_1", "model": "m", "version": 4, "config": {}}
        tx.session.add(tables.Router(**router, created_at=tx.now, updated_at=tx.now))

    def apply(**settings: int) -> tuple[list[int], list[str]]:
        retention.apply_retention(replace(ctx, settings=ctx.settings.model_copy(update=settings)))
        with ctx.db.read() as session:
            numbers = session.scalars(
                select(tables.ModelVersion.version).order_by(tables.ModelVersion.version)
            )
            return list(numbers), list(session.scalars(select(tables.Dataset.id).order_by(tables.Dataset.id)))

    everything = list(range(1, 8)), [f"ds_{n}" for n in range(1, 8)]
    assert apply() == everything, "by default all are kept"
    assert apply(keep_versions=2, keep_datasets=1) == everything, "they are young"
    monkeypatch.setattr(old_versions, "MIN_AGE", timedelta(0))
    # Version 3 is live, 2 was it before, 4 is used by a router; 6 and 7 are the last ones.
    kept = [2, 3, 4, 6, 7]
    assert apply(keep_versions=2, keep_datasets=1) == (kept, [f"ds_{n}" for n in kept])
