"""Checkpoints: how far a training has come, kept in storage so that another attempt can go on from there.

A checkpoint is a safetensors file (arrays and their names, no code) under a key of its own, and it counts
once the job's row names it together with its digest. Both the key and the row carry the fencing token, so
an attempt that was overtaken can neither overwrite nor name one. A file that was written and never named is
collected later by ``app.maintenance.retention``.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import safetensors.numpy
import structlog
from safetensors import SafetensorError

from app.context import AppContext
from app.db.session import DATABASE_UNAVAILABLE
from app.jobs import queue
from app.jobs.progress import ProgressReporter
from app.jobs.queue import Claim
from app.storage import Storage
from app.version import software
from models.base import State
from models.serialization.array_file import write_arrays

log = structlog.get_logger()

FOLDER = "checkpoints"

LARGEST_SHARE = 0.05
"""Of the time; where writing takes long, checkpoints become rarer."""


@dataclass(frozen=True)
class Kept:
    """A checkpoint that was read back.

    Attributes:
        state: the pipeline's snapshot.
        seconds: what each phase had taken up to there, in all attempts that led to it.
    """

    state: State
    seconds: dict[str, float]


class Checkpoints:
    """Takes and finds the checkpoints of one attempt.

    Args:
        ctx: where to.
        claim: the right to name them.
        report: the job's line to its row.
    """

    def __init__(self, ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
        self._ctx = ctx
        self._claim = claim
        self._report = report
        self._n = 0
        self._due = time.monotonic() + ctx.settings.checkpoint_seconds

    def load(self) -> Kept | None:
        """The checkpoint to go on from; one that cannot be used is told of and ignored.

        Raises:
            LostClaimError: the job is not ours any more.
        """
        named = self._claim.checkpoint
        if named is None:
            return None
        if named["software"] != software():
            self.ignore("it was written by other versions of the software")
            return None
        try:
            content = self._ctx.storage.local(named["key"]).read_bytes()
            if hashlib.sha256(content).hexdigest() != named["sha256"]:
                self.ignore("its content is damaged")
                return None
            # Copied: what is read from bytes cannot be written to, and learners go on in these arrays.
            state = {name: array.copy() for name, array in safetensors.numpy.load(content).items()}
        except (OSError, SafetensorError) as error:
            self.ignore(f"it cannot be read ({type(error).__name__})")
            return None
        queue.add_event(
            self._ctx.db, self._claim, "resumed", phase=named["phase"], completed=named["completed"]
        )
        return Kept(state, named["seconds"])

    def ignore(self, reason: str) -> None:
        """Say that the checkpoint is not used; the attempt begins at the beginning."""
        log.warning("checkpoint.ignored", reason=reason)
        queue.add_event(self._ctx.db, self._claim, "checkpoint_ignored", reason=reason)

    def offer(
        self,
        phase: str,
        completed: int,
        snapshot: Callable[[], State],
        seconds: Callable[[], dict[str, float]],
    ) -> None:
        """Take a checkpoint if it is time for one. A disk or database that is away costs only this one.

        Args:
            phase: of the training.
            completed: steps of the phase that are in it.
            snapshot: copies the training's state.
            seconds: what each phase has taken up to here.

        Raises:
            LostClaimError: the job is not ours any more.
        """
        began = time.monotonic()
        if began < self._due:
            return
        try:
            self._take(phase, completed, snapshot(), seconds())
        except (OSError, *DATABASE_UNAVAILABLE) as error:
            log.warning("checkpoint.failed", reason=type(error).__name__)
        ended = time.monotonic()
        self._due = ended + max(
            self._ctx.settings.checkpoint_seconds, (ended - began) * (1 / LARGEST_SHARE - 1)
        )

    def _take(self, phase: str, completed: int, state: State, seconds: Mapping[str, float]) -> None:
        storage, claim = self._ctx.storage, self._claim
        self._n += 1
        key = f"{FOLDER}/{claim.job_id}.{claim.fence}.{self._n}.safetensors"
        with storage.temporary_file(".safetensors") as path:
            write_arrays(path, state)
            stored = storage.put(key, path)
        named: dict[str, Any] = {
            "key": key,
            "sha256": stored.sha256,
            "size_bytes": stored.size_bytes,
            "fence": claim.fence,
            "phase": phase,
            "completed": completed,
            "seconds": dict(seconds),
            "software": software(),
        }
        self._report.checkpoint(named)
        discard(storage, claim.job_id, but=key)


def discard(storage: Storage, job_id: str, *, but: str | None = None) -> None:
    """Remove a job's checkpoints, all of them or all but the one that counts."""
    for found in list(storage.files(FOLDER)):
        if job_of(found.key) == job_id and found.key != but:
            storage.delete(found.key)


def job_of(key: str) -> str:
    """The job whose checkpoint it is.

    >>> job_of("checkpoints/job_01.3.12.safetensors")
    'job_01'
    """
    return key.removeprefix(f"{FOLDER}/").split(".")[0]


def fence_of(key: str) -> int:
    """The fencing token of the attempt that wrote it.

    >>> fence_of("checkpoints/job_01.3.12.safetensors")
    3
    """
    return int(key.split(".")[1])
