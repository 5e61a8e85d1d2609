"""Checkpoints: the state of an unfinished training in storage, from which a later attempt resumes.

A checkpoint is a safetensors file (named arrays, no code) under a unique key. It is valid once the job's row
names it together with its digest. The key and the row both carry the fencing token, so an attempt that lost
its claim can neither overwrite nor record one. ``app.maintenance.retention`` deletes files that no row names.
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
from app.storage.interface import UNAVAILABLE_ERRNOS
from app.version import software
from models.base import State
from models.serialization.array_file import write_arrays

log = structlog.get_logger()

FOLDER = "checkpoints"

MAX_TIME_SHARE = 0.05
"""Largest share of the time to spend on checkpoints; slow writes make them less frequent."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read from storage.

    Attributes:
        state: the state of the pipeline.
        seconds: time of each phase up to the checkpoint, summed over all attempts.
    """

    state: State
    seconds: dict[str, float]


class Checkpoints:
    """Write and read the checkpoints of one attempt.

    Args:
        ctx: where to.
        claim: the claim on the job.
        report: the progress reporter of the job.
    """

    def __init__(self, ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
        self._ctx = ctx
        self._claim = claim
        self._report = report
        self._n = 0
        self._due = time.monotonic() + ctx.settings.checkpoint_seconds

    def load(self) -> Checkpoint | None:
        """Read the checkpoint to resume from. An unusable checkpoint is logged and ignored.

        Returns:
            None if there is no usable checkpoint.

        Raises:
            LostClaimError: the claim is no longer valid.
            OSError: the storage is unavailable, so a later attempt may read the checkpoint.
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
            # Arrays that are read from bytes are read-only, and learners continue in these arrays.
            state = {name: array.copy() for name, array in safetensors.numpy.load(content).items()}
        except (OSError, SafetensorError) as error:
            if isinstance(error, OSError) and error.errno in UNAVAILABLE_ERRNOS:
                raise
            self.ignore(f"it cannot be read ({type(error).__name__})")
            return None
        queue.add_event(
            self._ctx.db, self._claim, "resumed", phase=named["phase"], completed=named["completed"]
        )
        return Checkpoint(state, named["seconds"])

    def ignore(self, reason: str) -> None:
        """Record that the checkpoint is not used; the attempt starts from the beginning."""
        log.warning("checkpoint.ignored", reason=reason)
        queue.add_event(self._ctx.db, self._claim, "checkpoint_ignored", reason=reason)

    def offer(
        self,
        phase: str,
        completed: int,
        snapshot: Callable[[], State],
        seconds: Callable[[], dict[str, float]],
    ) -> None:
        """Write a checkpoint if one is due. If the disk or the database is unavailable, skip this checkpoint.

        Args:
            phase: phase of the training.
            completed: completed steps of the phase.
            snapshot: copies the state of the training.
            seconds: returns the time of each phase so far.

        Raises:
            LostClaimError: the claim is no longer valid.
        """
        began = time.monotonic()
        if began < self._due:
            return
        try:
            self._write(phase, completed, snapshot(), seconds())
        except (OSError, *DATABASE_UNAVAILABLE) as error:
            log.warning("checkpoint.failed", reason=type(error).__name__)
        ended = time.monotonic()
        self._due = ended + max(
            self._ctx.settings.checkpoint_seconds, (ended - began) * (1 / MAX_TIME_SHARE - 1)
        )

    def _write(self, phase: str, completed: int, state: State, seconds: Mapping[str, float]) -> None:
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
        delete_all(storage, claim.job_id, keep=key)


def delete_all(storage: Storage, job_id: str, *, keep: str | None = None) -> None:
    """Delete all checkpoints of a job, or all but one."""
    for file in list(storage.files(FOLDER)):
        if job_of(file.key) == job_id and file.key != keep:
            storage.delete(file.key)


def job_of(key: str) -> str:
    """Return the id of the job that a checkpoint belongs to.

    >>> job_of("checkpoints/job_01.3.12.safetensors")
    'job_01'
    """
    return key.removeprefix(f"{FOLDER}/").split(".")[0]


def fence_of(key: str) -> int:
    """Return the fencing token of the attempt that wrote a checkpoint.

    >>> fence_of("checkpoints/job_01.3.12.safetensors")
    3
    """
    return int(key.split(".")[1])
