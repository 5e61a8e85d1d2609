"""The learning curve of a trial: measures of the training part and the test part during the training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models import catalog
from models.arrays import Bools, Labels, Matrix
from models.base import State
from models.data.examples import ExampleSource
from models.decisions import AutoDecision, needs_held_out, untuned_rule
from models.labels.indicator_matrix import indicator_matrix, unknown_matrix
from models.measures.covering import COVERING_MEASURES, covering_error, covering_loss, covering_measure
from models.measures.evaluation import evaluate
from models.measures.rankings import RANKING_MEASURES
from models.pipeline import Pipeline, Progress, ScoredDocuments, TrainingSet
from models.trials.errors import ErrorLimits
from models.trials.precomputed_features import PrecomputedFeatures

STEP_GROWTH = 1.1
"""Ratio of the steps of consecutive points of a curve. At first, every step is a point."""


@dataclass(frozen=True)
class Measured:
    """What a trial measures.

    Attributes:
        measures: names of the measures of the learning curve, including those of coverings, such as
            ``covering_loss.NAME``. If thresholds are tuned after the training, the curve only has those among
            them that depend on the scores alone.
        coverings: coverings by name; each adds the measures ``covering_error.NAME`` and
            ``covering_loss.NAME`` to the result. The curve has them if they are among ``measures``.
        every_step_up_to: number of the first steps that are all points of the curve. After them, the distance
            between points grows by a tenth.
        errors: how many errors on the test part the result has; None if it has none.
    """

    measures: Sequence[str] = ()
    coverings: Mapping[str, Any] = field(default_factory=dict)
    every_step_up_to: int = 1
    errors: ErrorLimits | None = None


class Curve:
    """Computes the points of a learning curve.

    With the decision ``auto``, which is fitted after the training, the label sets of the curve are those of
    the learner's own decision. If thresholds are tuned after the training, only measures that depend on the
    scores alone can be computed during the training: ranking measures and covering losses.

    Args:
        pipeline: the unfitted pipeline.
        features: the features of both parts.
        training: the training set.
        test: the test part.
        measured: the measures and the points of the curve.

    Attributes:
        unit: what a step is, such as ``rounds``; None before the first point.
    """

    STATE = ("curve.calls", "curve.next", "curve.unit")

    def __init__(
        self,
        pipeline: Pipeline,
        features: PrecomputedFeatures,
        training: TrainingSet,
        test: ExampleSource,
        measured: Measured,
    ) -> None:
        learner = pipeline.learner
        assert learner is not None, "the pipeline of a trial has a learner"  # noqa: S101
        decision = catalog.resolve_decision(learner, pipeline.decision)
        if isinstance(decision, AutoDecision):
            decision = catalog.own_decision(learner)
        self._labels, self._tree = training.labels, training.tree
        Y = indicator_matrix(test.label_sets(), self._labels, self._tree)
        unknown = unknown_matrix(test.unknown_sets(), Y, self._labels, self._tree)
        self._parts: dict[str, tuple[Matrix, Bools, Labels, Labels | None]] = {
            "train": (features.matrices.training, features.train_empty, training.Y, training.unknown),
            "test": (features.test, features.test_empty, Y, unknown),
        }
        threshold = catalog.default_threshold(learner, len(self._labels))
        self._rule = untuned_rule(decision, np.full(len(self._labels), threshold))
        tuned = needs_held_out(decision)
        self._measures = [
            name
            for name in measured.measures
            if not tuned or name in RANKING_MEASURES or name.startswith("covering_loss")
        ]
        self._coverings = {
            covering_measure(measure, name): (measure, covering)
            for name, covering in measured.coverings.items()
            for measure in COVERING_MEASURES
        }
        self._n_steps = 0
        self._next_step = 1
        self._every_step_up_to = measured.every_step_up_to
        self.unit: str | None = None

    def get_state(self) -> State:
        """Return the state from which a resumed trial continues with the same steps."""
        return {
            "curve.calls": np.array(self._n_steps),
            "curve.next": np.array(self._next_step),
            "curve.unit": np.frombuffer((self.unit or "").encode(), dtype=np.uint8),
        }

    def set_state(self, state: State) -> None:
        """Restore the result of ``get_state``. An empty state has no effect."""
        if state:
            self._n_steps, self._next_step = int(state["curve.calls"]), int(state["curve.next"])
            self.unit = state["curve.unit"].tobytes().decode() or None

    def point(self, progress: Progress) -> dict[str, float]:
        """Compute the measures at a step, as ``train.NAME`` and ``test.NAME``.

        Returns:
            the measures; empty if the step is not a point of the curve.
        """
        if progress.phase != "training" or progress.scores is None:
            return {}
        self._n_steps += 1
        if self._n_steps < self._next_step and progress.completed < progress.total:
            return {}
        self._next_step = self._n_steps + 1
        if self._n_steps >= self._every_step_up_to:
            self._next_step = max(self._next_step, int(self._n_steps * STEP_GROWTH))
        point: dict[str, float] = {}
        for part, (X, empty, Y, unknown) in self._parts.items():
            scores = progress.scores(X)
            label_sets = ScoredDocuments(scores, empty).label_sets(self._rule)
            evaluation = evaluate(Y, label_sets, scores, self._labels, tree=self._tree, unknown=unknown)
            values = evaluation.measures
            point |= {f"{part}.{name}": values[name] for name in self._measures if name in values}
            if not Y.shape[0] or unknown is not None:
                continue
            for name in self._measures:
                measure, covering = self._coverings.get(name, (None, None))
                if measure == "covering_error":
                    point[f"{part}.{name}"] = covering_error(Y, label_sets, covering, self._labels)
                elif measure == "covering_loss":
                    point[f"{part}.{name}"] = covering_loss(Y, scores, covering, self._labels)
        if point:
            self.unit = progress.unit
        return point
