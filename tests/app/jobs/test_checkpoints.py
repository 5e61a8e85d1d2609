"""Checkpoints: what is kept is what is found again, and whatever is wrong with one costs only time."""

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
from models.base import State

STATE: State = {
    "learner.weights": np.arange(12.0).reshape(3, 4).T,
    "learner.on": np.array([True, False]),
    "fold": np.array(2),
    "nothing": np.zeros((0, 3), dtype=np.int32),
}


@pytest.fixture
def env_at_once(ctx: AppContext) -> AppContext:
    """Takes a checkpoint whenever one is offered."""
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


def offer(made: Checkpoints, step: int = 7) -> None:
    made.offer("training", step, lambda: STATE, lambda: {"training": 1.5})


def kept(ctx: AppContext) -> list[Path]:
    return [ctx.storage.local(found.key) for found in ctx.storage.files(checkpoints.FOLDER)]


def interrupted(ctx: AppContext) -> tuple[str, Path]:
    """A job that is queued again and has a checkpoint, and the checkpoint's file."""
    job_id = rows.queued(ctx.db)
    _, made = attempt(ctx, job_id)
    offer(made)
    lose(ctx, job_id)
    (path,) = kept(ctx)
    return job_id, path


def test_a_later_attempt_finds_the_same_arrays(env_at_once: AppContext) -> None:
    job_id, _ = interrupted(env_at_once)
    claim, made = attempt(env_at_once, job_id)
    found = made.load()
    assert found is not None
    assert found.seconds == {"training": 1.5}
    assert found.state.keys() == STATE.keys()
    for name, array in STATE.items():
        again = found.state[name]
        assert (again.dtype, again.shape) == (array.dtype, array.shape)
        assert np.array_equal(again, array)
        assert again.flags.writeable
    assert rows.events(env_at_once.db, claim.job_id)[-1] == "resumed"


def test_a_newer_checkpoint_takes_the_place_of_the_older(env_at_once: AppContext) -> None:
    job_id = rows.queued(env_at_once.db)
    other = interrupted(env_at_once)[1]
    claim, made = attempt(env_at_once, job_id)
    assert made.load() is None
    offer(made, 7)
    made._due = 0.0  # twenty times what the first one took is not waited for here
    offer(made, 8)
    named = rows.job(env_at_once.db, claim.job_id).checkpoint
    assert named is not None
    assert named["completed"] == 8
    assert sorted(kept(env_at_once)) == sorted([other, env_at_once.storage.local(named["key"])])
    checkpoints.delete_all(env_at_once.storage, job_id)
    assert kept(env_at_once) == [other]


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("spoil", [damage, cut_short, empty, Path.unlink])
def test_a_checkpoint_that_cannot_be_read_is_ignored_and_told_of(
    env_at_once: AppContext, spoil: Callable[[Path], None]
) -> None:
    job_id, path = interrupted(env_at_once)
    spoil(path)
    _, made = attempt(env_at_once, job_id)
    assert made.load() is None
    assert rows.events(env_at_once.db, job_id)[-1] == "checkpoint_ignored"


def test_a_file_that_is_what_it_was_but_no_checkpoint_is_ignored(env_at_once: AppContext) -> None:
    job_id, path = interrupted(env_at_once)
    path.write_bytes(b"something else")
    claim, _ = attempt(env_at_once, job_id)
    assert claim.checkpoint is not None
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    claim = replace(claim, checkpoint={**claim.checkpoint, "sha256": digest})
    assert Checkpoints(env_at_once, claim, ProgressReporter(env_at_once.db, claim)).load() is None
    assert rows.events(env_at_once.db, job_id)[-1] == "checkpoint_ignored"


def test_a_checkpoint_of_other_software_is_ignored(
    env_at_once: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id, _ = interrupted(env_at_once)
    monkeypatch.setattr(checkpoints, "software", lambda: {"covey": "later"})
    _, made = attempt(env_at_once, job_id)
    assert made.load() is None
    assert rows.events(env_at_once.db, job_id)[-1] == "checkpoint_ignored"


def test_an_attempt_that_was_overtaken_names_no_checkpoint(env_at_once: AppContext) -> None:
    job_id = rows.queued(env_at_once.db)
    _, late = attempt(env_at_once, job_id)
    lose(env_at_once, job_id)
    _, now = attempt(env_at_once, job_id)
    offer(now)
    before = rows.job(env_at_once.db, job_id).checkpoint
    with pytest.raises(LostClaimError):
        offer(late)
    assert rows.job(env_at_once.db, job_id).checkpoint == before
    assert before is not None
    assert env_at_once.storage.local(before["key"]).is_file(), "and removes none"


def test_checkpoints_come_by_the_clock_and_rarely_where_they_are_dear(
    ctx: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("app.jobs.checkpoints.time.monotonic", lambda: now)
    job_id = rows.queued(ctx.db)
    _, made = attempt(ctx, job_id)
    taken = []

    def dear() -> State:
        nonlocal now
        taken.append(now)
        now += 1.0
        return STATE

    while now < 100.0:
        made.offer("training", 1, dear, dict)
        now += 0.5
    assert taken[0] == ctx.settings.checkpoint_seconds
    # One second of writing is followed by nineteen of training, give or take the half second of a step.
    assert all(19.5 <= later - sooner <= 21 for sooner, later in pairwise(taken))


def test_a_full_disk_costs_the_checkpoint_and_not_the_job(
    env_at_once: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = rows.queued(env_at_once.db)
    _, made = attempt(env_at_once, job_id)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(env_at_once.storage, "put", full)
    offer(made)
    assert rows.job(env_at_once.db, job_id).checkpoint is None
    assert kept(env_at_once) == []
    assert list(env_at_once.storage.files("tmp")) == []
