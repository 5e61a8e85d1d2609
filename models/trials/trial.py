"""One learner tried out on one split: the cell of an experiment.

Features are computed apart from the learner, so that several learners can be tried on the same ones.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import safetensors
import safetensors.numpy
from scipy.sparse import csr_array, vstack

from models import catalog
from models.arrays import AnyArray, Floats, Matrix
from models.base import LearnerParameters, State, TrainingSummary
from models.catalog import FEATURES_PARAMETERS, FeaturesUnion
from models.data.examples import ExampleSource
from models.decisions import DecisionUnion, TunedThresholdDecision, decide
from models.features import TextFeatures
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.measures.covering import covering_error
from models.measures.evaluation import Evaluation, evaluate
from models.measures.examples import COVERING, example_measures
from models.measures.rankings import RANKING_MEASURES
from models.pipeline import Features, Pipeline, Progress, read_documents
from models.serialization.array_file import write_arrays

STEP_GROWTH = 1.1
"""The points of a curve: every step at first, later steps that are so much further than the one before."""


class PrecomputedFeatures:
    """Features fitted on a training part, and the matrices of both parts.

    Attributes:
        parameters: of the features.
        train: (g, r) the training part.
        test: (n, r) the test part.
        seconds: what computing them took.
    """

    def __init__(
        self,
        parameters: FeaturesUnion,
        state: State,
        candidates: csr_array[Any, tuple[int, int]] | None,
        notes: TrainingSummary,
        train: Matrix,
        test: Matrix,
        seconds: float,
    ) -> None:
        self.parameters = parameters
        self._state = state
        self._candidates = candidates
        self._notes = notes
        self.train = train
        self.test = test
        self.seconds = seconds

    @classmethod
    def fit(
        cls,
        parameters: FeaturesUnion,
        training: ExampleSource,
        test: ExampleSource,
        *,
        tree: LabelTree | None = None,
        progress: Callable[[int], None] = lambda _: None,
    ) -> PrecomputedFeatures:
        """Fit features on a training part, and transform both parts.

        Args:
            parameters: of the features.
            training: the examples that all statistics come from.
            test: the others.
            tree: the label tree.
            progress: told how many examples have been read.

        Raises:
            UnsuitableDataError: no feature is left.
        """
        clock = time.perf_counter()
        label_sets = training.label_sets()
        labels = collect_labels(label_sets, tree)
        read = 0

        def documents(source: ExampleSource) -> Iterator[Any]:
            nonlocal read
            for batch in source.batches():
                yield read_documents(batch.documents)
                read += batch.n_examples
                progress(read)

        features = catalog.create_features(parameters)
        train = features.fit_transform(documents(training), indicator_matrix(label_sets, labels, tree))
        parts = [features.transform(some) for some in documents(test)]
        return cls(
            parameters,
            features.get_state(),
            features.candidates_,
            features.summary_,
            train,
            _stacked(parts, train.shape[1]),
            time.perf_counter() - clock,
        )

    def features(self) -> Features:
        """The fitted features, for one pipeline."""
        features = catalog.create_features(self.parameters)
        features.set_state(self._state)
        if isinstance(features, TextFeatures):
            features.candidates_ = self._candidates
        features.summary_ = TrainingSummary(list(self._notes.warnings), dict(self._notes.facts))
        return features

    def save(self, path: Path) -> None:
        """Write everything to a file: arrays with their names, and no code."""
        arrays = {f"state.{name}": array for name, array in self._state.items()}
        arrays |= _packed("train", self.train) | _packed("test", self.test)
        if self._candidates is not None:
            arrays |= _packed("candidates", self._candidates)
        metadata = {
            "parameters": self.parameters.model_dump_json(),
            "notes": json.dumps(asdict(self._notes)),
            "seconds": json.dumps(self.seconds),
        }
        write_arrays(path, arrays, metadata)

    @classmethod
    def load(cls, path: Path) -> PrecomputedFeatures:
        """What ``save`` wrote; the same bits."""
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata: Mapping[str, str] = file.metadata()
            arrays: dict[str, AnyArray] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        state = {
            name.removeprefix("state."): array for name, array in arrays.items() if name.startswith("state.")
        }
        return cls(
            FEATURES_PARAMETERS.validate_json(metadata["parameters"]),
            state,
            _unpacked("candidates", arrays) if "candidates.shape" in arrays else None,
            TrainingSummary(**json.loads(metadata["notes"])),
            _unpacked("train", arrays),
            _unpacked("test", arrays),
            float(json.loads(metadata["seconds"])),
        )


@dataclass(frozen=True)
class TrialResult:
    """What came of one try.

    Attributes:
        pipeline: fitted on the training part.
        train: the measures of the training part.
        test: the measures of the test part.
        examples: measures of each test example (``measures.examples``), by name.
        curve_unit: what a step of the curve is, such as ``rounds``; None without a curve.
        fit_seconds: what the learner took; thresholds included, features and measuring not.
        score_seconds: what scoring the test part took.
    """

    pipeline: Pipeline
    train: Evaluation
    test: Evaluation
    examples: dict[str, Floats]
    curve_unit: str | None
    fit_seconds: float
    score_seconds: float


@dataclass(frozen=True)
class TrialStep:
    """How far a try has come.

    Attributes:
        progress: of the training; its ``snapshot`` is what ``run_trial`` goes on from.
        curve: at some steps the measures of both parts if training stopped there, as ``train.NAME`` and
            ``test.NAME``; else empty.
        fit_seconds: what fitting has taken up to here, in earlier attempts too.
    """

    progress: Progress
    curve: dict[str, float]
    fit_seconds: float


class TrialMonitor(Protocol):
    """Told of every step; raises to end the try there."""

    def __call__(self, step: TrialStep, /) -> None:
        """Take note of a step."""
        ...


def run_trial(
    shared: PrecomputedFeatures,
    learner: LearnerParameters,
    decision: DecisionUnion | None,
    training: ExampleSource,
    test: ExampleSource,
    *,
    tree: LabelTree | None = None,
    seed: int = 0,
    measures: Sequence[str] = (),
    coverings: Mapping[str, Any] | None = None,
    monitor: TrialMonitor | None = None,
    resume: State | None = None,
    spent: float = 0.0,
) -> TrialResult:
    """Train a learner on one part and measure it on both.

    Args:
        shared: features fitted on the training part.
        learner: parameters of the learner.
        decision: the decision; None: the learner's own way.
        training: the training part.
        test: the test part.
        tree: the label tree.
        seed: of everything that is left to chance.
        measures: those of the curve. With thresholds that are tuned after the training, only the ranking
            measures among them have one.
        coverings: by name; each adds the measure ``covering_error.NAME``, to the curve too.
        monitor: told of every step.
        resume: a snapshot of an earlier attempt to go on from; what comes of it is the same.
        spent: seconds of fitting that are in ``resume``.

    Raises:
        ParameterError: what cannot go together.
        UnsuitableDataError: the learner cannot learn from this data.
        SnapshotError: ``resume`` is of something else.
    """
    pipeline = Pipeline(shared.features(), catalog.create_learner(learner, seed=seed), decision, seed=seed)
    curve = _Curve(pipeline, shared, training, test, tree, measures, coverings or {})
    left = dict(resume or {})
    curve.set_state({name: left.pop(name) for name in _Curve.STATE if name in left})
    measuring = 0.0

    def tell(progress: Progress, /) -> None:
        nonlocal measuring
        began = time.perf_counter()
        point = curve.at(progress)
        if monitor is not None:
            inner = progress.snapshot
            step = replace(progress, snapshot=lambda: {**inner(), **curve.get_state()})
            monitor(TrialStep(step, point, spent + began - clock - measuring))
        measuring += time.perf_counter() - began

    clock = time.perf_counter()
    pipeline.fit(training, tree=tree, monitor=tell, matrix=shared.train, resume=left or None)
    fitted = time.perf_counter()
    scores = pipeline.learner.decision_function(shared.test)
    scored = time.perf_counter()
    train_scores = pipeline.learner.decision_function(shared.train)
    train, _ = _measured(pipeline, training.label_sets(), train_scores, coverings or {})
    evaluation, examples = _measured(pipeline, test.label_sets(), scores, coverings or {})
    return TrialResult(
        pipeline=pipeline,
        train=train,
        test=evaluation,
        examples=examples,
        curve_unit=curve.unit,
        fit_seconds=spent + fitted - clock - measuring,
        score_seconds=scored - fitted,
    )


def _measured(
    pipeline: Pipeline, label_sets: list[tuple[str, ...]], scores: Floats, coverings: Mapping[str, Any]
) -> tuple[Evaluation, dict[str, Floats]]:
    """The measures of one part, and those of each of its examples."""
    evaluation = pipeline.evaluate_scores(label_sets, scores)
    labels, tree = pipeline.labels_, pipeline.tree_
    Y = indicator_matrix(label_sets, labels, tree)
    sets = pipeline.decide(scores)
    examples = example_measures(Y, sets, scores, labels, tree=tree, coverings=coverings)
    for name in coverings:
        errors = examples[f"{COVERING}{name}"]
        if len(errors):
            evaluation.measures[f"{COVERING}{name}"] = float(errors.mean())
    return evaluation, examples


class _Curve:
    """The measures of both parts, at some steps of a training.

    Attributes:
        unit: what a step is, once there was one.
    """

    STATE = ("curve.calls", "curve.next", "curve.unit")

    def __init__(
        self,
        pipeline: Pipeline,
        shared: PrecomputedFeatures,
        training: ExampleSource,
        test: ExampleSource,
        tree: LabelTree | None,
        measures: Sequence[str],
        coverings: Mapping[str, Any],
    ) -> None:
        self._decision = catalog.resolve_decision(pipeline.learner, pipeline.decision)
        self._labels = collect_labels(training.label_sets(), tree)
        self._tree = tree
        self._parts = {
            name: (X, indicator_matrix(source.label_sets(), self._labels, tree))
            for name, X, source in (("train", shared.train, training), ("test", shared.test, test))
        }
        self._thresholds = np.full(
            len(self._labels), catalog.default_threshold(pipeline.learner, len(self._labels))
        )
        tuned = isinstance(self._decision, TunedThresholdDecision)
        self._measures = [name for name in measures if name in RANKING_MEASURES or not tuned]
        self._coverings = {} if tuned else {f"{COVERING}{name}": some for name, some in coverings.items()}
        self._calls = 0
        self._next = 1
        self.unit: str | None = None

    def get_state(self) -> State:
        """Which steps come next, so that an interrupted curve goes on with the same ones."""
        return {
            "curve.calls": np.array(self._calls),
            "curve.next": np.array(self._next),
            "curve.unit": np.frombuffer((self.unit or "").encode(), dtype=np.uint8),
        }

    def set_state(self, state: State) -> None:
        """Go on from what ``get_state`` gave; from the beginning where it is empty."""
        if state:
            self._calls, self._next = int(state["curve.calls"]), int(state["curve.next"])
            self.unit = state["curve.unit"].tobytes().decode() or None

    def at(self, progress: Progress) -> dict[str, float]:
        if progress.phase != "training" or progress.scores is None:
            return {}
        self._calls += 1
        if self._calls < self._next and progress.completed < progress.total:
            return {}
        self._next = max(self._calls + 1, int(self._calls * STEP_GROWTH))
        point: dict[str, float] = {}
        for part, (X, Y) in self._parts.items():
            scores = progress.scores(X)
            sets = decide(self._decision, scores, self._thresholds)
            found = evaluate(Y, sets, scores, self._labels, tree=self._tree).measures
            point |= {f"{part}.{name}": found[name] for name in self._measures if name in found}
            if Y.shape[0]:
                for name, covering in self._coverings.items():
                    point[f"{part}.{name}"] = covering_error(Y, sets, covering, self._labels)
        if point:
            self.unit = progress.unit
        return point


def _stacked(parts: list[Matrix], n_features: int) -> Matrix:
    if not parts:
        return csr_array((0, n_features), dtype=np.float64)
    return csr_array(vstack(parts, format="csr"))


def _packed(name: str, matrix: Any) -> dict[str, AnyArray]:
    return {
        f"{name}.shape": np.array(matrix.shape, dtype=np.int64),
        f"{name}.data": matrix.data,
        f"{name}.indices": matrix.indices,
        f"{name}.indptr": matrix.indptr,
    }


def _unpacked(name: str, arrays: Mapping[str, AnyArray]) -> Any:
    data, indices, indptr = (arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    rows, columns = arrays[f"{name}.shape"].tolist()
    return csr_array((data, indices, indptr), shape=(rows, columns))
