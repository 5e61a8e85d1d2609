"""Readiness reports a storage that cannot be written, and never waits for one that does not answer."""

from __future__ import annotations

import errno
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import rows
from sqlalchemy.exc import IntegrityError
from waiting import LIMIT_SECONDS, wait_for

from app.context import AppContext
from app.db import locks, tables
from app.db.session import Database
from app.health.service import check_readiness
from app.storage import LocalStorage, StorageState, StorageUnavailableError, probe
from app.storage.local import NOT_MOUNTED
from app.storage.probe import StorageProbe


@pytest.fixture(autouse=True)
def long_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a check may take long."""
    monkeypatch.setattr(probe, "TIMEOUT_SECONDS", LIMIT_SECONDS)


class FakeStorage(LocalStorage):
    """A local storage whose checks a test can count, delay and let fail."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.initialize()
        self.checks = 0
        self.responds = threading.Event()
        self.responds.set()
        self.error: OSError | None = None

    def check(self) -> StorageState:
        self.checks += 1
        self.responds.wait(LIMIT_SECONDS)
        if self.error is not None:
            raise self.error
        return super().check()


def test_the_service_is_not_ready_without_the_folder_of_the_storage_or_its_marker(ctx: AppContext) -> None:
    assert isinstance(ctx.storage, LocalStorage)
    ctx.storage.check_seconds = 0.0
    with ctx.db.write() as tx:
        tx.session.add(
            tables.Worker(id="wrk_1", host="h", pid=1, concurrency=1, started_at=tx.now, last_seen_at=tx.now)
        )
    assert check_readiness(ctx).ready
    root = ctx.storage.root
    shutil.rmtree(root)
    state = check_readiness(ctx)
    assert (state.ready, state.database, state.workers) == (False, True, 1)
    assert state.reasons == [f"the storage cannot be used ({NOT_MOUNTED})"]
    root.touch()
    assert check_readiness(ctx).reasons == [f"the storage cannot be used ({NOT_MOUNTED})"]
    root.unlink()
    root.mkdir()
    assert check_readiness(ctx).reasons == [f"the storage cannot be used ({NOT_MOUNTED})"]
    assert list(root.iterdir()) == [], "nothing is written where the storage is not mounted"
    ctx.storage.initialize()
    assert check_readiness(ctx).ready
    assert list((root / "tmp").iterdir()) == []


def test_the_result_of_a_check_is_reused(tmp_path: Path) -> None:
    storage = FakeStorage(tmp_path)
    storage.check_seconds = LIMIT_SECONDS
    storage_probe = StorageProbe(storage)
    assert [storage_probe.reason() for _ in range(5)] == [None] * 5
    assert storage.checks == 1


def test_readiness_does_not_wait_for_a_storage_that_never_responds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "TIMEOUT_SECONDS", 0.01)
    storage = FakeStorage(tmp_path)
    storage.check_seconds = 0.0
    storage.responds.clear()
    storage_probe = StorageProbe(storage)
    assert [storage_probe.reason() for _ in range(100)] == ["the storage does not answer"] * 100
    assert storage.checks == 1, "one check runs at a time"
    storage.responds.set()
    monkeypatch.setattr(probe, "TIMEOUT_SECONDS", LIMIT_SECONDS)
    wait_for(lambda: True if storage_probe.reason() is None else None, what="the storage to answer again")


def test_the_reason_does_not_reveal_the_address_of_the_bucket(tmp_path: Path) -> None:
    storage = FakeStorage(tmp_path)
    storage.check_seconds = 0.0
    storage_probe = StorageProbe(storage)
    storage.error = StorageUnavailableError("Could not connect to http://bucket.internal:9000")
    assert storage_probe.reason() == "the storage cannot be used (it does not answer)"
    storage.error = OSError(errno.ENOSPC, "No space left on device")
    assert storage_probe.reason() == "the storage cannot be used (No space left on device)"
    storage.error = None
    assert storage_probe.reason() is None


def test_readiness_names_the_lock_that_stops_the_heartbeats(
    ctx: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "TRY_SECONDS", 0.01)
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.0)
    assert check_readiness(ctx).reasons == ["no worker has sent a heartbeat in the last 15 s"]
    other = Database(ctx.settings.resolved_database_url())
    sqlite = other.engine.dialect.name == "sqlite"
    with ThreadPoolExecutor(1) as pool, other.write() as tx:
        tx.session.add(tables.Model(name="m", last_version=0, created_at=tx.now))
        tx.session.flush()
        if not sqlite:  # somebody must wait for the lock
            waiting = pool.submit(insert_model, ctx)
            rows.wait_for_lock_wait(other)
        (reason,) = check_readiness(ctx).reasons
        assert ("another program has locked" if sqlite else "for a lock that process") in reason
    if not sqlite:
        assert isinstance(waiting.exception(), IntegrityError)
    other.close()
    assert check_readiness(ctx).reasons == ["no worker has sent a heartbeat in the last 15 s"]


def insert_model(ctx: AppContext) -> None:
    with ctx.db.write() as tx:
        tx.session.add(tables.Model(name="m", last_version=0, created_at=tx.now))
