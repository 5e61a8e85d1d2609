"""What passes between a learner and its caller during a training: context, steps and notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from scipy.sparse import csr_array

from models.arrays import Floats, Ints, Matrix
from models.serialization.state import State


@dataclass(frozen=True)
class Context:
    """What a learner may know of a problem besides X and Y. All of it is optional.

    Attributes:
        labels: names of the columns of Y, in label order.
        features: names of the columns of X.
        parents: for each label the index of its parent, -1 for a root (see ``LabelTree.parent_indices``).
        candidates: features by labels, true where local feature selection lets the label use the feature.
        numeric_features: whether features are measurements, whose size matters, and not words; decides what
            ``auto`` means to a learner that has such a choice.
    """

    labels: Sequence[str] | None = None
    features: Sequence[str] | None = None
    parents: Ints | None = None
    candidates: csr_array[Any, tuple[int, int]] | None = None
    numeric_features: bool = False


@dataclass(frozen=True)
class Step:
    """One round, epoch or pass that has just been completed.

    Attributes:
        completed: steps completed so far, counted from the beginning of the training, resumed or not.
        total: steps that the training will take at most.
        unit: what a step is called: ``"rounds"``, ``"epochs"`` or ``"passes"``.
        measures: numbers that the learner has at hand anyway, by name (for the curve).
        snapshot: copies the whole training state; ``fit(..., resume=state)`` goes on from there and ends
            with the same bits as a training that was never interrupted.
        scores: the scores that a training stopped here would give, for measures by round; to be called before
            the monitor returns. None where the learner has none until its end.
    """

    completed: int
    total: int
    unit: str
    measures: Mapping[str, float]
    snapshot: Callable[[], State]
    scores: Callable[[Matrix], Floats] | None = None


class Monitor(Protocol):
    """Called after every step; raises ``StopTraining`` to end the training there."""

    def __call__(self, step: Step, /) -> None:
        """Take note of a step."""
        ...


@dataclass
class TrainingSummary:
    """What a training has to say of itself, for the version's description.

    Attributes:
        warnings: sentences for a person (stopped early, labels that are always on, ...).
        facts: numbers and words by name (distinct pivots, perceptron operations, precision of the weights).
    """

    warnings: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
