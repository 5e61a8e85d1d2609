"""What a learner and its caller exchange during a training: context, steps and a summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from scipy.sparse import csr_array

from models.arrays import AnyArray, Floats, Ints, Labels, Matrix
from models.base.validation import as_label_matrix
from models.serialization.state import State


@dataclass(frozen=True)
class ValidationSet:
    """Examples for decisions during a training, such as when to stop. No learner is trained on them.

    Attributes:
        X: (n, r) features.
        Y: (n, k) relevant labels.
        unknown: (n, k) unknown labels, disjoint from the relevant ones; None if there are none.
    """

    X: Matrix
    Y: Labels
    unknown: Labels | None = None


@dataclass(frozen=True)
class Context:
    """Optional information about a learning problem besides X and Y.

    Attributes:
        labels: names of the columns of Y, in label order.
        features: names of the columns of X.
        parents: (k,) index of each label's parent, -1 for a root (see ``LabelTree.parent_indices``).
        candidates: (r, k) true if local feature selection allows the label to use the feature.
        numeric_features: whether the features are measurements rather than words. Some learners have a
            parameter whose value ``auto`` depends on it.
        unknown: (g, k) labels of which it is not known whether they apply to an example, disjoint from Y;
            None if there are none. Only learners that train each label separately accept them.
        n_jobs: number of threads that a learner may use; they never change the result.
        validation: examples for early stopping; None lets the learner hold out training examples.
    """

    labels: Sequence[str] | None = None
    features: Sequence[str] | None = None
    parents: Ints | None = None
    candidates: csr_array[Any, tuple[int, int]] | None = None
    numeric_features: bool = False
    unknown: Labels | None = None
    n_jobs: int = 1
    validation: ValidationSet | None = None

    def where(self, rows: AnyArray) -> Context:
        """Return the context of some of the examples: a mask, (g,), or their indices."""
        return replace(self, unknown=None if self.unknown is None else as_label_matrix(self.unknown)[rows])


@dataclass(frozen=True)
class Problem:
    """Everything that a learner is fitted on.

    Attributes:
        X: (g, r) features.
        Y: (g, k) relevant labels.
        context: what else is known.
        weights: (g,) how much each example counts, positive; 2 as much as two equal examples. None if all
            are 1.
        groups: (g,) the document of each example. A learner that holds out training examples keeps those with
            equal numbers together. None if every example is a document of its own.
    """

    X: Matrix
    Y: Labels
    context: Context = field(default_factory=Context)
    weights: Floats | None = None
    groups: Ints | None = None

    def where(self, rows: AnyArray, X: Matrix | None = None) -> Problem:
        """Return the problem of some of the examples.

        Args:
            rows: a mask, (g,), or their indices.
            X: their features, if these are others.
        """
        return Problem(
            self.X[rows] if X is None else X,
            self.Y[rows],
            self.context.where(rows),
            None if self.weights is None else self.weights[rows],
            None if self.groups is None else self.groups[rows],
        )


@dataclass(frozen=True)
class Step:
    """A completed step of a training, such as a boosting round.

    Attributes:
        completed: number of completed steps since the beginning of the training, including steps before a
            resume.
        total: maximum number of steps of the training.
        unit: what a step is, such as ``"rounds"``, ``"passes"`` or ``"examples"``.
        measures: values that the learner computes anyway, by name, for the learning curve.
        snapshot: returns a copy of the complete training state. ``fit_problem(…, resume=state)`` continues
            from it and produces exactly the same model as a training without interruption. Call it only
            before the monitor returns.
        scores: computes the scores of a model whose training stops at this step, also only before the monitor
            returns. None if the learner has no scores before the end of the training.
    """

    completed: int
    total: int
    unit: str
    measures: Mapping[str, float]
    snapshot: Callable[[], State]
    scores: Callable[[Matrix], Floats] | None = None


class Monitor(Protocol):
    """A function that is called after every step. It can raise ``StopTraining`` to end the training."""

    def __call__(self, step: Step, /) -> None:
        """Process a completed step."""
        ...


@dataclass
class TrainingSummary:
    """Warnings and facts about a training, for the description of a model version.

    Attributes:
        warnings: sentences for users, for example that the training stopped early.
        facts: values by name, for example the number of distinct pivots or of perceptron operations.
    """

    warnings: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


def abbreviated(labels: list[str], max_items: int = 10) -> str:
    """Return the first labels as text, and the number of the others."""
    n_others = len(labels) - max_items
    return ", ".join(labels[:max_items]) + (f" and {n_others} more" if n_others > 0 else "")
