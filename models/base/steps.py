"""A training in steps. It is watched, stopped and resumed here, in the same way for every learner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar

import numpy as np

from models.arrays import Floats, Matrix
from models.base.training import Monitor, Step
from models.serialization.state import State


class Training(ABC):
    """A training between two of its steps.

    A learner states what a step is, which arrays the training continues from, and what it has learned at the
    end.

    Attributes:
        unit: what a step is counted in, such as ``"rounds"``.
        total: maximum number of steps.
        completed: number of steps so far, including those before an interruption.
    """

    unit: ClassVar[str]

    def __init__(self, total: int) -> None:
        self.total = total
        self.completed = 0

    @abstractmethod
    def advance(self) -> Mapping[str, float] | None:
        """Take the next step and count it.

        Returns:
            values that the learner computes anyway, by name; None if the training has ended before, and there
            was no step to take.
        """

    @abstractmethod
    def arrays(self) -> State:
        """Return a copy of the arrays that the training continues from, besides the number of steps."""

    @abstractmethod
    def restore(self, arrays: State) -> None:
        """Continue from the arrays that ``arrays`` returned after ``completed`` steps."""

    @abstractmethod
    def finish(self) -> None:
        """Set the fitted attributes of the learner, and its summary."""

    def scores(self) -> Callable[[Matrix], Floats] | None:
        """Return a function that scores examples as if the training ended now; None if it cannot."""
        return None

    def running(self) -> AbstractContextManager[object]:
        """Return a context in which all steps are taken."""
        return nullcontext()


def run(training: Training, monitor: Monitor, resume: State | None) -> None:
    """Take all steps of a training, from the beginning or from a snapshot.

    Args:
        training: the training before its first step.
        monitor: called after every step. The snapshot of the step belongs to this moment.
        resume: the snapshot to continue from; None to start from the beginning.
    """

    def snapshot() -> State:
        return {**training.arrays(), "completed": np.array(training.completed)}

    with training.running():
        if resume is not None:
            training.completed = int(resume["completed"])
            training.restore(resume)
        while training.completed < training.total and (measures := training.advance()) is not None:
            monitor(
                Step(training.completed, training.total, training.unit, measures, snapshot, training.scores())
            )
        training.finish()
