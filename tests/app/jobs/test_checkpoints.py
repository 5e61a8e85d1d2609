"""Checkpoints are restored exactly. A missing or damaged checkpoint costs only time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import rows

from app.context import AppContext
from app.jobs import checkpoints, queue
from app.jobs.checkpoints import Checkpoints
from app.jobs.progress import ProgressReporter
from app.jobs.queue import Claim, LostClaimError
from app.storage import StorageUnavailableError
from models.base import State

STATE: State = {
    "learner.weights": np.arange(12.0).reshape(3, 4).T,
    "learner.on": np.array([True, False]),
    "fold": np.array(2),
    "nothing": np.zeros((0, 3), dtype=np.int32),
}


@pytest.fixture
def eager_ctx(ctx: AppContext) -> AppContext:
    """A context with which every offered checkpoint is written."""
    return replace(ctx, settings=ctx.settings.model_copy(update={"checkpoint_seconds": 1e-9}))


def attempt(ctx: AppContext, job_id: str) -> tuple[Claim, Checkpoints]:
    claim = rows.claimed(ctx.db, job_id)
    report = ProgressReporter(ctx.db, claim)
    report("training", 7, 10, "rounds")
    return claim, Checkpoints(ctx, claim, report)


def lose(ctx: AppContext, job_id: str) -> None:
    with ctx.db.write() as tx:
        job = queue.lock(tx, job_id)
        assert job is not None
        queue.requeue_lost(tx, job, reason="test")


def offer(store: Checkpoints, step: int = 7) -> None:
    store.offer("training", step, lambda: STATE, lambda: {"training": 1.5})


def checkpoint_files(ctx: AppContext) -> list[Path]:
    return [ctx.storage.local(file.key) for file in ctx.storage.files(checkpoints.FOLDER)]


def interrupt_job(ctx: AppContext) -> tuple[str, Path]:
    """Create a job that wrote a checkpoint and was queued again. Return its id and the checkpoint's file."""
    job_id = rows.queued(ctx.db)
    _, store = attempt(ctx, job_id)
    offer(store)
    lose(ctx, job_id)
    (path,) = checkpoint_files(ctx)
    return job_id, path


def test_a_later_attempt_loads_the_same_arrays(eager_ctx: AppContext) -> None:
    job_id, _ = interrupt_job(eager_ctx)
    claim, store = attempt(eager_ctx, job_id)
    resumed = store.load()
    assert resumed is not None
    assert resumed.seconds == {"training": 1.5}
    assert resumed.state.keys() == STATE.keys()
    for name, array in STATE.items():
        loaded = resumed.state[name]
        assert (loaded.dtype, loaded.shape) == (array.dtype, array.shape)
        assert np.array_equal(loaded, array)
        assert loaded.flags.writeable
    assert rows.events(eager_ctx.db, claim.job_id)[-1] == "resumed"


def test_a_new_checkpoint_replaces_the_previous_one(eager_ctx: AppContext) -> None:
    job_id = rows.queued(eager_ctx.db)
    other = interrupt_job(eager_ctx)[1]
    claim, store = attempt(eager_ctx, job_id)
    assert store.load() is None
    offer(store, 7)
    store._due = 0.0  # skip the pause after the first checkpoint
    offer(store, 8)
    checkpoint = rows.job(eager_ctx.db, claim.job_id).checkpoint
    assert checkpoint is not None
    assert checkpoint["completed"] == 8
    assert sorted(checkpoint_files(eager_ctx)) == sorted([other, eager_ctx.storage.local(checkpoint["key"])])
    checkpoints.delete_all(eager_ctx.storage, job_id)
    assert checkpoint_files(eager_ctx) == [other]


def flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [flip_bit, truncate, empty, Path.unlink])
def test_a_damaged_or_missing_checkpoint_is_ignored_and_recorded(
    eager_ctx: AppContext, damage: Callable[[Path], None]
) -> None:
    job_id, path = interrupt_job(eager_ctx)
    damage(path)
    _, store = attempt(eager_ctx, job_id)
    assert store.load() is None
    assert rows.events(eager_ctx.db, job_id)[-1] == "checkpoint_ignored"


def test_a_checkpoint_is_not_given_up_while_the_storage_is_absent(eager_ctx: AppContext) -> None:
    job_id, path = interrupt_job(eager_ctx)
    _, store = attempt(eager_ctx, job_id)
    root = path.parents[1]
    root.rename(root.with_name("away"))
    with pytest.raises(StorageUnavailableError):
        store.load()
    root.with_name("away").rename(root)
    checkpoint = store.load()
    assert checkpoint is not None
    assert checkpoint.state.keys() == STATE.keys()


def test_a_file_with_the_right_digest_that_is_not_a_checkpoint_is_ignored(eager_ctx: AppContext) -> None:
    job_id, path = interrupt_job(eager_ctx)
    path.write_bytes(b"something else")
    claim, _ = attempt(eager_ctx, job_id)
    assert claim.checkpoint is not None
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    claim = replace(claim, checkpoint={**claim.checkpoint, "sha256": digest})
    assert Checkpoints(eager_ctx, claim, ProgressReporter(eager_ctx.db, claim)).load() is None
    assert rows.events(eager_ctx.db, job_id)[-1] == "checkpoint_ignored"


def test_a_checkpoint_of_other_software_versions_is_ignored(
    eager_ctx: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id, _ = interrupt_job(eager_ctx)
    monkeypatch.setattr(checkpoints, "software", lambda: {"covey": "later"})
    _, store = attempt(eager_ctx, job_id)
    assert store.load() is None
    assert rows.events(eager_ctx.db, job_id)[-1] == "checkpoint_ignored"


def test_an_attempt_that_lost_its_claim_records_no_checkpoint(eager_ctx: AppContext) -> None:
    job_id = rows.queued(eager_ctx.db)
    _, late = attempt(eager_ctx, job_id)
    lose(eager_ctx, job_id)
    _, current = attempt(eager_ctx, job_id)
    offer(current)
    before = rows.job(eager_ctx.db, job_id).checkpoint
    with pytest.raises(LostClaimError):
        offer(late)
    assert rows.job(eager_ctx.db, job_id).checkpoint == before
    assert before is not None
    assert eager_ctx.storage.local(before["key"]).is_file(), "the late attempt deletes no checkpoint"


def test_checkpoints_are_written_rarely_if_writing_is_slow(
    ctx: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("app.jobs.checkpoints.time.monotonic", lambda: now)
    job_id = rows.queued(ctx.db)
    _, store = attempt(ctx, job_id)
    times = []

    def slow_snapshot() -> State:
        nonlocal now
        times.append(now)
        now += 1.0
        return STATE

    while now < 100.0:
        store.offer("training", 1, slow_snapshot, dict)
        now += 0.5
    assert times[0] == ctx.settings.checkpoint_seconds
    # One second of writing is followed by 19 seconds of training, plus or minus the half second of a step.
    assert all(19.5 <= later - sooner <= 21 for sooner, later in pairwise(times))


def test_a_full_disk_prevents_the_checkpoint_but_does_not_fail_the_job(
    eager_ctx: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = rows.queued(eager_ctx.db)
    _, store = attempt(eager_ctx, job_id)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(eager_ctx.storage, "put", full)
    offer(store)
    assert rows.job(eager_ctx.db, job_id).checkpoint is None
    assert checkpoint_files(eager_ctx) == []
    assert list(eager_ctx.storage.files("tmp")) == []
