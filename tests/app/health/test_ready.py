"""Readiness tells of a storage that takes nothing, and never waits for one that does not answer."""

from __future__ import annotations

import errno
import shutil
import threading
from pathlib import Path

import pytest
from waiting import LIMIT_SECONDS, wait_for

from app.context import AppContext
from app.db import tables
from app.health.service import readiness
from app.storage import LocalStorage, StorageUnavailableError, probe
from app.storage.probe import StorageProbe


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The storage is given all the time it needs on a busy machine."""
    monkeypatch.setattr(probe, "TIMEOUT_SECONDS", LIMIT_SECONDS)


class Scripted(LocalStorage):
    """A folder whose checks a test counts, holds up and lets fail."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.checks = 0
        self.answers = threading.Event()
        self.answers.set()
        self.error: OSError | None = None

    def check(self) -> None:
        self.checks += 1
        self.answers.wait(LIMIT_SECONDS)
        if self.error is not None:
            raise self.error
        super().check()


def test_a_folder_that_is_gone_or_a_file_now_makes_the_service_not_ready(ctx: AppContext) -> None:
    assert isinstance(ctx.storage, LocalStorage)
    ctx.storage.check_seconds = 0.0
    with ctx.db.write() as tx:
        tx.session.add(
            tables.Worker(id="wrk_1", host="h", pid=1, concurrency=1, started_at=tx.now, last_seen_at=tx.now)
        )
    assert readiness(ctx).ready
    root = ctx.storage.root
    shutil.rmtree(root)
    found = readiness(ctx)
    assert (found.ready, found.database, found.workers) == (False, True, 1)
    assert found.reasons == ["the storage cannot be used (No such file or directory)"]
    root.touch()
    assert readiness(ctx).reasons == ["the storage cannot be used (Not a directory)"]
    root.unlink()
    (root / "tmp").mkdir(parents=True)
    assert readiness(ctx).ready
    assert list((root / "tmp").iterdir()) == []


def test_an_answer_holds_for_a_while(tmp_path: Path) -> None:
    storage = Scripted(tmp_path)
    storage.check_seconds = LIMIT_SECONDS
    watched = StorageProbe(storage)
    assert [watched.reason() for _ in range(5)] == [None] * 5
    assert storage.checks == 1


def test_nobody_waits_for_a_storage_that_never_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "TIMEOUT_SECONDS", 0.01)
    storage = Scripted(tmp_path)
    storage.check_seconds = 0.0
    storage.answers.clear()
    watched = StorageProbe(storage)
    assert [watched.reason() for _ in range(100)] == ["the storage does not answer"] * 100
    assert storage.checks == 1, "those who ask do not pile up before it"
    storage.answers.set()
    monkeypatch.setattr(probe, "TIMEOUT_SECONDS", LIMIT_SECONDS)
    wait_for(lambda: True if watched.reason() is None else None, what="the storage to answer again")


def test_where_the_bucket_is_is_not_told_to_everybody(tmp_path: Path) -> None:
    storage = Scripted(tmp_path)
    storage.check_seconds = 0.0
    watched = StorageProbe(storage)
    storage.error = StorageUnavailableError("Could not connect to http://bucket.internal:9000")
    assert watched.reason() == "the storage cannot be used (it does not answer)"
    storage.error = OSError(errno.ENOSPC, "No space left on device")
    assert watched.reason() == "the storage cannot be used (No space left on device)"
    storage.error = None
    assert watched.reason() is None
