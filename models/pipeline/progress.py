"""The progress of a pipeline's training, as its monitor receives it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from models.arrays import AnyArray, Floats, Matrix
from models.base import State

Phase: TypeAlias = Literal["features", "training", "thresholds"]
"""A phase of a training: computing features, training the learner, or tuning thresholds on held-out folds."""


@dataclass(frozen=True)
class Progress:
    """A completed step of a training.

    Attributes:
        phase: the current phase.
        completed: number of completed steps of this phase.
        total: maximum number of steps of this phase.
        unit: what a step is, such as ``"rounds"`` or ``"examples"``.
        measures: values that the learner computes anyway, by name.
        snapshot: returns a copy of the complete training state. ``fit_training(…, resume=state)`` continues
            from it and produces exactly the same model as a training without interruption.
        scores: ``Step.scores`` of the learner in the phase ``training``; otherwise None.
    """

    phase: Phase
    completed: int
    total: int
    unit: str
    measures: Mapping[str, float]
    snapshot: Callable[[], State]
    scores: Callable[[Matrix], Floats] | None = None


class PipelineMonitor(Protocol):
    """A function that is called after every step. It can raise ``StopTraining`` to end the training."""

    def __call__(self, progress: Progress, /) -> None:
        """Process a completed step."""
        ...


@dataclass(frozen=True)
class Run:
    """How a training runs. Nothing of it changes the result.

    Attributes:
        monitor: called after every step; None if there is none.
        resume: the snapshot from which an interrupted training continues; empty to start from the beginning.
        n_jobs: number of threads that the learner may use.
        timings: receives the seconds of every completed phase.
    """

    monitor: PipelineMonitor | None = None
    resume: Mapping[str, AnyArray] = field(default_factory=dict)
    n_jobs: int = 1
    timings: dict[Phase, float] = field(default_factory=dict)

    def report(self, progress: Progress) -> None:
        """Call the monitor."""
        if self.monitor is not None:
            self.monitor(progress)

    @contextmanager
    def timed(self, phase: Phase) -> Iterator[None]:
        """Measure a phase."""
        start = time.perf_counter()
        yield
        self.timings[phase] = time.perf_counter() - start
