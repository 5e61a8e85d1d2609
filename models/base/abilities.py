"""What only some learners can do: a mixin for each."""

from __future__ import annotations

from abc import ABC, abstractmethod

from models.arrays import Floats, Ints, Matrix
from models.base.pivots import Pivots


class Explaining(ABC):
    """A learner that explains its scores by contributions of features."""

    @property
    def can_explain(self) -> bool:
        """Whether it can do so with its parameters."""
        return True

    @abstractmethod
    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """Return the contribution of each feature of an example to the score of a label.

        Args:
            x: (1, r) one example.
            label: index of the label.

        Returns:
            indices of the features that contribute, and their additive contributions. If the score of a
            learner is not a sum of contributions, the learner returns a linear approximation, which its
            docstring describes.
        """


class WithPivots(ABC):
    """A learner whose training chooses pivots."""

    @abstractmethod
    def pivots(self, label: int | None, *, after: int, limit: int) -> Pivots:
        """Return the pivots that the training chose, by round and label.

        Args:
            label: index of a label; None for all labels.
            after: position of the last pivot of the previous call; -1 for the first one.
            limit: maximum number of pivots.
        """


def can_explain(learner: object) -> bool:
    """Whether a learner can explain its scores with its parameters."""
    return isinstance(learner, Explaining) and learner.can_explain
