"""Fits learner and decision of a pipeline on computed features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from models.arrays import AnyArray, Floats, Labels, Matrix
from models.base import Context, Learner, Problem, State, Step, TrainingSummary, ValidationSet
from models.base.incremental import IncrementalLearner
from models.base.scaling import scaling_warning
from models.base.training import abbreviated
from models.base.validation import in_every_example
from models.data.digests import document_groups
from models.decisions import DecisionRule, HeldOut
from models.decisions.auto import LabelSetSizes
from models.pipeline.deciding import Decided, decide
from models.pipeline.held_out import FoldScores, FoldStep, validation_scores
from models.pipeline.progress import Phase, Progress, Run
from models.pipeline.reference import Reference, training_reference, with_unknown_terms
from models.pipeline.snapshot import (
    add_prefix,
    check_fingerprint,
    fingerprint,
    fitted_learner_state,
    restore_fitted_learner,
    select_prefix,
)
from models.pipeline.training_set import FeatureMatrices, Features, TrainingSet


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
    """Fits learner and decision: the phases ``training`` and ``thresholds``.

    Args:
        features: the fitted features.
        learner: the learner to fit.
        decision: the decision rule.
        training: the training set.
        matrices: its features.
        seed: seed of the folds for the thresholds.
        how: how the training runs.
        holds_out: whether there must be held-out scores, for the decision or for probabilities.

    Raises:
        ValueError: the matrices do not have the shape of the training set and the features.
    """

    def __init__(
        self,
        features: Features,
        learner: Learner,
        decision: DecisionRule,
        training: TrainingSet,
        matrices: FeatureMatrices,
        *,
        seed: int,
        how: Run,
        holds_out: bool,
    ) -> None:
        self._features = features
        self._learner = learner
        self._decision = decision
        self._training = training
        self._X = matrices.training
        self._seed = seed
        self._how = how
        self._holds_out = holds_out
        if self._X.shape != (training.Y.shape[0], len(features.names_)):
            raise ValueError("the matrix does not have the shape of the training set and the fitted features")
        self._validation: ValidationSet | None = None
        if matrices.validation is not None and (learner.uses_validation or holds_out):
            self._validation = training.validation_set(matrices.validation)
            if matrices.validation.shape != (self._validation.Y.shape[0], len(features.names_)):
                raise ValueError("the matrix does not have the shape of the validation set and the features")
        on_folds = holds_out and self._validation is None
        self._raw = matrices.raw if on_folds else None
        draws = on_folds or (learner.uses_validation and self._validation is None)
        context = Context(
            labels=training.labels,
            features=features.names_,
            parents=training.parents,
            candidates=features.candidates_,
            numeric_features=training.source.kind == "features",
            unknown=training.unknown,
            n_jobs=how.n_jobs,
            validation=self._validation,
        )
        self._problem = Problem(
            self._X, training.Y, context, training.weights, training.groups if draws else None
        )

    def run(self) -> FitResult:
        """Run both phases.

        Raises:
            SnapshotError: the snapshot belongs to another training.
            UnsuitableDataError: the learner cannot be fitted on this data.
        """
        check_fingerprint(self._how.resume, self._fingerprint)
        with self._how.timed("training"):
            self._train()
        with self._how.timed("thresholds"):
            held_out = self._hold_out()
            decided = self._decide(held_out)
        reference = with_unknown_terms(
            decided.reference or training_reference(self._training.Y), self._features.unknown_terms_
        )
        # Only a partial fit needs the scores again.
        kept = held_out if isinstance(self._learner, IncrementalLearner) else None
        return FitResult(decided, self._summarize(decided), reference, kept)

    def _train(self) -> None:
        if restore_fitted_learner(self._learner, self._how.resume):
            return

        def report(step: Step, /) -> None:
            self._report("training", step.completed, step.total, step, dict, step.scores)

        resume = select_prefix("learner", self._how.resume) or None
        self._learner.fit_problem(self._problem, monitor=report, resume=resume)

    def _hold_out(self) -> HeldOut | None:
        """Return the held-out scores; None if nothing needs them, or nothing can be held out."""
        if not self._holds_out:
            return None
        if self._raw is None:
            validation = self._training.validation
            assert validation is not None, "without raw values there are validation examples"  # noqa: S101
            groups = document_groups(validation)
            context = self._problem.context
            return validation_scores(self._features, self._learner, context, groups, seed=self._seed)

        def report(step: FoldStep) -> None:
            def state() -> State:
                return {**step.state(), **fitted_learner_state(self._learner)}

            self._report("thresholds", step.completed, step.total, step.step, state)

        return FoldScores(
            self._features,
            self._learner,
            self._raw,
            self._problem,
            seed=self._seed,
            monitor=report,
            resume=self._how.resume,
        ).run()

    def _decide(self, held_out: HeldOut | None) -> Decided:
        Y = self._training.Y
        return decide(
            self._decision,
            self._learner,
            held_out,
            self._training.labels,
            parents=self._problem.context.parents,
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
            numeric = self._problem.context.numeric_features
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

    def _report(
        self,
        phase: Phase,
        completed: int,
        total: int,
        step: Step,
        state: Callable[[], State],
        scores: Callable[[Matrix], Floats] | None = None,
    ) -> None:
        """Report a step of a learner.

        Args:
            phase: the current phase.
            completed: number of completed steps of the phase.
            total: maximum number of steps of the phase.
            step: the step of the learner.
            state: returns what the snapshot contains besides the snapshot of the learner.
            scores: ``Progress.scores``.
        """

        def snapshot() -> State:
            return {"fingerprint": self._fingerprint, **state(), **add_prefix("learner", step.snapshot())}

        self._how.report(Progress(phase, completed, total, step.unit, step.measures, snapshot, scores))
