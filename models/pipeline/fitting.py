"""One call of ``Pipeline.fit``: computes features, trains the learner and selects the thresholds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from models.arrays import AnyArray, Floats, Ints, Labels, Matrix
from models.base import Context, Learner, State, Step, TrainingSummary, ValidationSet
from models.base.scaling import scaling_warning
from models.base.training import abbreviated
from models.base.validation import in_every_example
from models.data.digests import document_groups
from models.data.examples import ExampleSource
from models.decisions import DecisionRule, HeldOut, needs_held_out
from models.decisions.auto import LabelSetSizes
from models.features.columns import stack_rows
from models.features.raw_values import RawValues
from models.labels import LabelTree
from models.labels.indicator_matrix import indicator_matrix, unknown_matrix
from models.pipeline.deciding import Decided, decide
from models.pipeline.documents import read_documents
from models.pipeline.held_out import Features, FoldScores, FoldStep, validation_scores
from models.pipeline.memory import check_training
from models.pipeline.progress import Phase, PipelineMonitor, Progress
from models.pipeline.reference import Reference, training_reference, with_unknown_terms
from models.pipeline.snapshot import (
    add_prefix,
    check_fingerprint,
    fingerprint,
    fitted_learner_state,
    restore_fitted_learner,
    select_prefix,
)


@dataclass(frozen=True)
class TrainingSet:
    """The labelled examples that a pipeline is fitted on.

    Attributes:
        source: the examples.
        labels: the k labels, in label order.
        tree: the label tree, or None.
        Y: (g, k) relevant labels of the examples.
        unknown: (g, k) their unknown labels; None if there are none.
        weights: (g,) their weights; None if all are 1.
        validation: validation examples; None if there are none.
    """

    source: ExampleSource
    labels: list[str]
    tree: LabelTree | None
    Y: Labels
    unknown: Labels | None = None
    weights: Floats | None = None
    validation: ExampleSource | None = None


@dataclass(frozen=True)
class FeatureMatrices:
    """The features of a training set, computed before the fit.

    Attributes:
        raw: what they are computed from.
        training: (g, r) the training examples.
        validation: (m, r) the validation examples; None if there are none.
    """

    raw: RawValues
    training: Matrix
    validation: Matrix | None


@dataclass(frozen=True)
class FitResult:
    """What a pipeline stores after a fit, besides the fitted features and the fitted learner.

    Attributes:
        decided: label sets, probabilities and curves.
        summary: warnings and facts about the training.
        reference: what is predicted for documents like those of the training.
        held_out: the held-out scores, if the learner can continue to learn; None if there are none.
    """

    decided: Decided
    summary: TrainingSummary
    reference: Reference
    held_out: HeldOut | None


class Fitting:
    """Fits the parts of a pipeline.

    Args:
        features: the features to fit.
        learner: the learner to fit.
        decision: the decision rule.
        training: the training set.
        seed: seed of the folds for the thresholds.
        monitor: called after every step.
        resume: the snapshot to resume from.
        matrices: the features of the training set, if ``features`` are already fitted on it.
        memory_bytes: limit of the memory of the training; None if there is none.
        n_jobs: number of threads that the learner may use.
        timings: receives the seconds of every completed phase.
    """

    def __init__(
        self,
        features: Features,
        learner: Learner,
        decision: DecisionRule,
        training: TrainingSet,
        *,
        seed: int,
        monitor: PipelineMonitor | None,
        resume: Mapping[str, AnyArray] | None,
        matrices: FeatureMatrices | None,
        memory_bytes: int | None,
        n_jobs: int,
        timings: dict[Phase, float],
    ) -> None:
        self._features = features
        self._learner = learner
        self._decision = decision
        self._training = training
        self._seed = seed
        self._monitor = monitor
        self._resume: Mapping[str, AnyArray] = resume or {}
        self._matrices = matrices
        self._memory_bytes = memory_bytes
        self._n_jobs = n_jobs
        self._timings = timings

    def run(self) -> FitResult:
        """Run all phases.

        Raises:
            SnapshotError: the snapshot belongs to another training.
            UnsuitableDataError: the features or the learner cannot be fitted on this data.
            MemoryLimitError: the training would need too much memory.
        """
        with self._timed("features"):
            raw, self._X = self._compute_features()
            self._validation = self._validation_set()
            # Only the features of folds are computed from raw values, which take as much memory as X.
            self._raw = raw if needs_held_out(self._decision) and self._validation is None else None
            del raw
        check_fingerprint(self._resume, self._fingerprint)
        labels, tree = self._training.labels, self._training.tree
        self._context = Context(
            labels=labels,
            features=self._features.names_,
            parents=tree.parent_indices(labels) if tree is not None else None,
            candidates=self._features.candidates_,
            numeric_features=self._training.source.kind == "features",
            unknown=self._training.unknown,
            weights=self._training.weights,
            n_jobs=self._n_jobs,
            validation=self._validation,
            groups=self._document_groups(),
        )
        check_training(
            self._learner,
            self._decision,
            self._X,
            self._training.Y,
            self._context,
            0 if self._raw is None else self._raw.values.nnz,
            self._memory_bytes,
        )
        with self._timed("training"):
            self._train()
        with self._timed("thresholds"):
            held_out = self._hold_out()
            decided = self._decide(held_out)
        reference = with_unknown_terms(
            decided.reference or training_reference(self._training.Y), self._features.unknown_terms_
        )
        # Only a partial fit needs the scores again.
        kept = held_out if self._learner.can_partial_fit else None
        return FitResult(decided, self._summarize(decided), reference, kept)

    def _compute_features(self) -> tuple[RawValues, Matrix]:
        Y = self._training.Y
        if self._matrices is None:
            raw = self._features.read(self._documents())
            return raw, self._features.fit(raw, Y, self._training.unknown)
        X = self._matrices.training
        if X.shape != (Y.shape[0], len(self._features.names_)):
            raise ValueError("the matrix does not have the shape of the training set and the fitted features")
        return self._matrices.raw, X

    def _validation_set(self) -> ValidationSet | None:
        """Return the validation examples; None if there are none, or if nothing uses them."""
        source, labels, tree = self._training.validation, self._training.labels, self._training.tree
        needed = self._learner.uses_validation or needs_held_out(self._decision)
        if source is None or not source.n_examples or not needed:
            return None
        X = None if self._matrices is None else self._matrices.validation
        if X is None:
            parts = [self._features.transform(read_documents(batch.documents)) for batch in source.batches()]
            X = stack_rows(parts, len(self._features.names_))
        Y = indicator_matrix(source.label_sets(), labels, tree)
        if X.shape != (Y.shape[0], len(self._features.names_)):
            raise ValueError("the matrix does not have the shape of the validation set and the features")
        return ValidationSet(X, Y, unknown_matrix(source.unknown_sets(), Y, labels, tree))

    def _document_groups(self) -> Ints | None:
        """Return the document of each example, if examples are held out."""
        held_out = self._raw is not None or (self._learner.uses_validation and self._validation is None)
        return document_groups(self._training.source) if held_out else None

    def _documents(self) -> Iterator[Any]:
        source, completed = self._training.source, 0
        for batch in source.batches():
            yield read_documents(batch.documents)
            completed += batch.n_examples
            self._report(Progress("features", completed, source.n_examples, "examples", {}, dict))

    def _train(self) -> None:
        if restore_fitted_learner(self._learner, self._resume):
            return

        def report(step: Step, /) -> None:
            self._report_step("training", step.completed, step.total, step, {}, step.scores)

        self._learner.fit(
            self._X,
            self._training.Y,
            context=self._context,
            monitor=report,
            resume=select_prefix("learner", self._resume) or None,
        )

    def _hold_out(self) -> HeldOut | None:
        """Return the held-out scores; None if the decision does not need them, or nothing can be held out."""
        if not needs_held_out(self._decision):
            return None
        validation = self._training.validation
        if self._raw is None:
            assert validation is not None, "without raw values there are validation examples"  # noqa: S101
            groups = document_groups(validation)
            return validation_scores(self._features, self._learner, self._context, groups, seed=self._seed)

        def report(step: FoldStep) -> None:
            state = {**step.state, **fitted_learner_state(self._learner)}
            self._report_step("thresholds", step.completed, step.total, step.step, state)

        return FoldScores(
            self._features,
            self._learner,
            self._raw,
            self._X,
            self._training.Y,
            context=self._context,
            seed=self._seed,
            monitor=report,
            resume=self._resume,
        ).run()

    def _decide(self, held_out: HeldOut | None) -> Decided:
        Y = self._training.Y
        return decide(
            self._decision,
            self._learner,
            held_out,
            self._training.labels,
            parents=self._context.parents,
            sizes=LabelSetSizes.of(Y, self._training.unknown),
            without_example=np.bincount(Y.indices, minlength=Y.shape[1]) == 0,
        )

    def _summarize(self, decided: Decided) -> TrainingSummary:
        Y, labels, unknown = self._training.Y, self._training.labels, self._training.unknown
        learner, features = self._learner.summary_, self._features.summary_
        constant = [labels[j] for j in np.flatnonzero(in_every_example(Y, unknown))]
        empty = int((np.diff(self._X.indptr) == 0).sum())
        warnings = [*features.warnings]
        if constant:
            warnings.append(f"labels that every training example has: {abbreviated(constant)}")
        warnings += decided.warnings
        if empty:
            warnings.append(f"{empty} training documents have none of the features")
        if self._learner.needs_scaled_features:
            numeric = self._training.source.kind == "features"
            scaling = scaling_warning(self._X, self._learner.algorithm, numeric=numeric)
            warnings += [] if scaling is None else [scaling]
        facts = {
            "examples": int(self._X.shape[0]),
            "labels": int(Y.shape[1]),
            "unlabelled": int((np.diff(Y.indptr) == 0).sum()),
            "empty_documents": empty,
        }
        if unknown is not None:
            facts["unknown_labels"] = int(unknown.nnz)
        if self._training.weights is not None:
            facts["weighted_examples"] = int((self._training.weights != 1.0).sum())
        if self._validation is not None:
            facts["validation_examples"] = int(self._validation.Y.shape[0])
        return TrainingSummary([*warnings, *learner.warnings], {**facts, **features.facts, **learner.facts})

    @cached_property
    def _fingerprint(self) -> AnyArray:
        more: list[Matrix | Labels | None] = [self._training.unknown]
        if self._validation is not None:
            more += [self._validation.X, self._validation.Y, self._validation.unknown]
        if self._training.weights is not None:
            more.append(csr_array(self._training.weights[np.newaxis]))
        data = [self._X, self._training.Y, *(matrix for matrix in more if matrix is not None)]
        return fingerprint(self._learner, self._decision, self._seed, data)

    def _report_step(
        self,
        phase: Phase,
        completed: int,
        total: int,
        step: Step,
        state: State,
        scores: Callable[[Matrix], Floats] | None = None,
    ) -> None:
        """Report a step of a learner.

        Args:
            phase: the current phase.
            completed: number of completed steps of the phase.
            total: maximum number of steps of the phase.
            step: the step of the learner.
            state: what the snapshot contains besides the snapshot of the learner.
            scores: ``Progress.scores``.
        """

        def snapshot() -> State:
            return {"fingerprint": self._fingerprint, **state, **add_prefix("learner", step.snapshot())}

        self._report(Progress(phase, completed, total, step.unit, step.measures, snapshot, scores))

    def _report(self, progress: Progress) -> None:
        if self._monitor is not None:
            self._monitor(progress)

    @contextmanager
    def _timed(self, phase: Phase) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._timings[phase] = time.perf_counter() - start
