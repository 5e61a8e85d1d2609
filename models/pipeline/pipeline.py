"""The pipeline: features, learner and decision, fitted together on labelled documents."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, Protocol, Self, TypeAlias

import numpy as np
from sklearn.base import clone

from models import catalog
from models.arrays import AnyArray, Bools, Floats, Ints, Labels, Matrix
from models.base import Context, Learner, LearnerParameters, State, Step, TrainingSummary
from models.base.validation import in_every_example
from models.boosting.adaboost_lc import AdaBoostLC
from models.catalog import FeaturesUnion
from models.data.examples import Documents, ExampleSource, FeatureRows, Kind
from models.decisions import DecisionUnion, TunedThresholdDecision, decide
from models.decisions.thresholds import transferable, tuned_thresholds
from models.errors import NotFittedError, ParameterError, SnapshotError, UnsuitableDataError
from models.features import NumericFeatures, TextFeatures
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.labels.ranking import ranking
from models.mail import MAIL_VERSION, MailDocument, read_email
from models.mail.email import Email
from models.measures.evaluation import Evaluation, evaluate
from models.perceptrons import MLPP
from models.serialization.state import read_array
from models.splits import stratified_folds

Phase: TypeAlias = Literal["features", "training", "thresholds"]

Features: TypeAlias = TextFeatures | NumericFeatures

_N_FOLDS = 3


@dataclass(frozen=True)
class Progress:
    """How far a training has come.

    Attributes:
        phase: what is being done: reading documents, training, or tuning thresholds on held-out folds.
        completed: steps of this phase completed so far.
        total: steps that the phase will take at most.
        unit: what a step is called.
        measures: numbers that the learner has at hand, by name.
        snapshot: copies the whole training state; ``fit(..., resume=state)`` goes on from there and ends
            with the same bits as a training that was never interrupted.
        scores: while training, what ``Step.scores`` is.
    """

    phase: Phase
    completed: int
    total: int
    unit: str
    measures: Mapping[str, float]
    snapshot: Callable[[], State]
    scores: Callable[[Matrix], Floats] | None = None


class PipelineMonitor(Protocol):
    """Called after every step; raises ``StopTraining`` to end the training there."""

    def __call__(self, progress: Progress, /) -> None:
        """Take note of a step."""
        ...


@dataclass(frozen=True)
class Explanation:
    """Why a label was predicted.

    Attributes:
        label: its name.
        terms: names of features of the document, and what each adds to the label's score; the weightiest
            first, whatever their sign.
    """

    label: str
    terms: list[tuple[str, float]]


@dataclass(frozen=True)
class Prediction:
    """What is predicted for one document.

    Attributes:
        labels: the predicted label set, in label order.
        ranking: every label (or the best ones, where so asked) with its score, by falling score; among
            equals by label order.
        explanation: one for each predicted label, in label order; empty where not asked for.
        dot_products: with quick voting, how many inner products it took; else None.
    """

    labels: list[str]
    ranking: list[tuple[str, float]]
    explanation: list[Explanation] = field(default_factory=list)
    dot_products: int | None = None


class Pipeline:
    """Documents in, label sets and rankings out.

    Args:
        features: how documents become numbers.
        learner: how the numbers become scores.
        decision: how scores become label sets; None: the learner's own way.
        seed: of the folds on which thresholds are tuned. (A learner has its own ``random_state``;
            ``from_parameters`` gives both the same seed.)

    Attributes:
        decision_: the decision in use.
        kind_: what the documents were that it was fitted on.
        labels_: the k labels, in label order: those with a positive training example, and their ancestors.
        tree_: the label tree, or None. With a tree, training sets are closed under ancestors.
        thresholds_: (k,) scores above which a label is on.
        mail_version_: the version of the reading of mail, for e-mail; else None.
        summary_: warnings and facts about the training.
        timings_: seconds that each phase took; not part of the saved form.
    """

    decision_: DecisionUnion
    kind_: Kind
    labels_: list[str]
    tree_: LabelTree | None
    thresholds_: Floats
    mail_version_: int | None
    summary_: TrainingSummary
    timings_: dict[Phase, float]

    def __init__(
        self, features: Features, learner: Learner, decision: DecisionUnion | None = None, *, seed: int = 0
    ) -> None:
        self.features = features
        self.learner = learner
        self.decision = decision
        self.seed = seed

    @classmethod
    def from_parameters(
        cls,
        features: FeaturesUnion,
        learner: LearnerParameters,
        decision: DecisionUnion | None = None,
        *,
        seed: int = 0,
    ) -> Self:
        """The unfitted pipeline that a training request asks for.

        Args:
            features: parameters of the features.
            learner: parameters of the learner.
            decision: the decision; None: the learner's own way.
            seed: of everything that is left to chance.
        """
        return cls(
            catalog.create_features(features), catalog.create_learner(learner, seed=seed), decision, seed=seed
        )

    def fit(
        self,
        source: ExampleSource,
        *,
        tree: LabelTree | None = None,
        monitor: PipelineMonitor | None = None,
        resume: Mapping[str, AnyArray] | None = None,
        matrix: Matrix | None = None,
    ) -> Self:
        """Learn from examples; all statistics come from these alone.

        Args:
            source: the training part.
            tree: the label tree.
            monitor: told of every step.
            resume: a snapshot of an earlier, interrupted call with the same source and parameters. The
                features are computed again, the learner goes on where it stood.
            matrix: what ``features.fit_transform`` gave for this very training part, where the features
                have been fitted on it before; no document is read then.

        Raises:
            ParameterError: parameters that cannot be used, alone, together or with this kind of data.
            SnapshotError: the snapshot is of another training.
            UnsuitableDataError: no example has a label, or the learner cannot learn from this data.
        """
        self.decision_ = catalog.resolve_decision(self.learner, self.decision)
        catalog.check_features(self.features.parameters, self.learner, source.kind)
        label_sets = source.label_sets()
        labels = collect_labels(label_sets, tree)
        if not labels:
            raise UnsuitableDataError("no training example has a label; there is nothing to learn")
        self.kind_, self.labels_, self.tree_ = source.kind, labels, tree
        self.mail_version_ = MAIL_VERSION if source.kind == "email" else None
        self.timings_ = {}
        _Training(self, source, indicator_matrix(label_sets, labels, tree), monitor, resume, matrix).run()
        return self

    def scores(self, documents: Documents | Sequence[MailDocument] | ExampleSource) -> Floats:
        """Scores of every label, (n, k) float64, never rounded.

        Args:
            documents: documents of the kind it was fitted on, or a source of examples, read in batches.
        """
        labels = self._fitted()
        if isinstance(documents, FeatureRows | Sequence):
            return self._scores(self._matrix(documents))
        parts = [self.scores(batch.documents) for batch in documents.batches()]
        return np.concatenate([np.empty((0, len(labels))), *parts])

    def decide(self, scores: Floats) -> Labels:
        """The label sets that scores stand for, (n, k) sparse 0/1."""
        self._fitted()
        return decide(self.decision_, scores, self.thresholds_)

    def predict(
        self,
        documents: Documents | Sequence[MailDocument],
        *,
        top: int | None = None,
        explain: bool = False,
        terms: int = 10,
        quick: bool = False,
    ) -> list[Prediction]:
        """Label sets and rankings.

        Args:
            documents: n documents of the kind it was fitted on.
            top: length of the rankings; None: every label.
            explain: whether to explain the predicted labels by the document's terms.
            terms: at most so many terms a label.
            quick: find the ``top`` labels by quick voting: the same as by full voting, for fewer inner
                products, but only these; the label set is then that of the best labels alone.

        Raises:
            ParameterError: documents of another kind; ``quick`` without ``top``, or of a learner that does
                not vote.
            UnsuitableDataError: values so large that a score is not finite.
        """
        X = self._matrix(documents)
        products: Sequence[int | None] = [None] * X.shape[0]
        if quick:
            scores, order, products = self._quick_scores(X, top)
        else:
            scores = self._scores(X)
            order = ranking(scores)[:, :top]
        sets = self.decide(scores)
        falling = np.take_along_axis(scores, order, axis=1)
        predictions = []
        for i in range(X.shape[0]):
            on = sets.indices[sets.indptr[i] : sets.indptr[i + 1]].tolist()
            if quick:
                on = [j for j in on if scores[i, j] > -np.inf]
            x = X[[i]] if explain and on else X
            predictions.append(
                Prediction(
                    labels=[self.labels_[j] for j in on],
                    ranking=[
                        (self.labels_[j], score)
                        for j, score in zip(order[i].tolist(), falling[i].tolist(), strict=True)
                    ],
                    explanation=[self._explanation(x, j, terms) for j in on] if explain else [],
                    dot_products=products[i],
                )
            )
        return predictions

    def explain(
        self, documents: Documents | Sequence[MailDocument], label: str, *, terms: int = 10
    ) -> list[Explanation]:
        """What speaks for and against a label in each document, whether it is predicted or not.

        Args:
            documents: n documents of the kind it was fitted on.
            label: one of ``labels_``.
            terms: at most so many terms a document.

        Raises:
            ParameterError: the label is unknown.
        """
        if label not in self._fitted():
            raise ParameterError(f"the model has no label {label!r}", "/label")
        j, X = self.labels_.index(label), self._matrix(documents)
        return [self._explanation(X[[i]], j, terms) for i in range(X.shape[0])]

    def evaluate(self, source: ExampleSource, *, covering: Any = None) -> Evaluation:
        """All measures of the predictions for labelled examples.

        They average over the version's labels; labels that only these examples have are warned of.

        Args:
            source: labelled examples.
            covering: the covering of ``covering_error`` and ``covering_loss``, or its JSON spelling; None:
                the learner's own, where it has one.
        """
        return self.measure(source.label_sets(), self.scores(source), covering=covering)

    def measure(
        self, label_sets: Sequence[tuple[str, ...]], scores: Floats, *, covering: Any = None
    ) -> Evaluation:
        """All measures of scores of examples.

        Args:
            label_sets: the true label set of each of n examples.
            scores: (n, k) their scores.
            covering: as in ``evaluate``.
        """
        if covering is None and isinstance(self.learner, AdaBoostLC):
            covering = self.learner.validated_parameters().covering
        labels = self._fitted()
        Y = indicator_matrix(label_sets, labels, self.tree_)
        evaluation = evaluate(Y, self.decide(scores), scores, labels, tree=self.tree_, covering=covering)
        unknown = sorted(set(collect_labels(label_sets, self.tree_)) - set(labels))
        if unknown:
            evaluation.warnings.append(
                f"labels without a training example are not measured: {_listed(unknown)}"
            )
        return evaluation

    @property
    def closed_under_ancestors_(self) -> bool:
        """Whether every predicted set is sure to be closed under the ancestors of the label tree."""
        self._fitted()
        return self.tree_ is not None and catalog.predicts_closed_sets(self.learner, self.decision_)

    def get_state(self) -> State:
        """The fitted arrays of features, learner and decision."""
        self._fitted()
        return {
            **_prefixed("features", self.features.get_state()),
            **_prefixed("learner", self.learner.get_state()),
            "decision.thresholds": self.thresholds_,
        }

    def set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Take the arrays of ``get_state`` back; the other fitted attributes are set by the loader."""
        self.features.set_state(_unprefixed("features", state))
        self.learner.set_state(_unprefixed("learner", state))
        self.thresholds_ = read_array(state, "decision.thresholds", "float64", (None,))
        return self

    def _fitted(self) -> list[str]:
        if not hasattr(self, "thresholds_"):
            raise NotFittedError("the pipeline is not fitted; call fit first")
        return self.labels_

    def _matrix(self, documents: Documents | Sequence[MailDocument]) -> Matrix:
        self._fitted()
        if isinstance(documents, FeatureRows) != (self.kind_ == "features"):
            raise ParameterError(f"the model was trained on {self.kind_}; give it documents of that kind")
        return self.features.transform(read_documents(documents))

    def _scores(self, X: Matrix) -> Floats:
        if not X.shape[0]:  # no example at all is more likely a mistake elsewhere, and learners refuse it
            return np.empty((0, len(self.labels_)))
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self.learner.decision_function(X)
        _refuse_infinite(scores)
        return scores

    def _quick_scores(self, X: Matrix, top: int | None) -> tuple[Floats, Ints, list[int]]:
        """Scores of the top labels (−∞ for the others), the labels by falling score, and the cost."""
        if not isinstance(self.learner, MLPP):
            raise ParameterError(f"{self.learner.algorithm} has no quick voting; leave quick out", "/quick")
        if top is None:
            raise ParameterError("quick voting finds the top labels; say how many", "/top")
        scores = np.full((X.shape[0], len(self.labels_)), -np.inf)
        if not X.shape[0]:
            return scores, np.empty((0, min(top, scores.shape[1])), dtype=np.int64), []
        with np.errstate(over="ignore", invalid="ignore"):
            votes = self.learner.quick_top(X, top)
        _refuse_infinite(votes.scores)
        np.put_along_axis(scores, votes.labels, votes.scores, axis=1)
        return scores, votes.labels, votes.products.tolist()

    def _explanation(self, x: Matrix, label: int, n_terms: int) -> Explanation:
        with np.errstate(over="ignore", invalid="ignore"):
            features, weights = self.learner.explain(x, label)
        _refuse_infinite(weights)
        weightiest = np.argsort(-np.abs(weights), kind="stable")[:n_terms]
        names = self.features.names_
        return Explanation(
            self.labels_[label],
            [
                (names[feature], weight)
                for feature, weight in zip(
                    features[weightiest].tolist(), weights[weightiest].tolist(), strict=True
                )
            ],
        )


class _Training:
    """One call of ``Pipeline.fit``: its phases, and what a snapshot holds in each.

    A snapshot in "features" is empty. In "training" it holds the learner's. In "thresholds" it holds the
    fitted learner with its notes, the held-out scores so far, and the snapshot of the current fold's learner.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        source: ExampleSource,
        Y: Labels,
        monitor: PipelineMonitor | None,
        resume: Mapping[str, AnyArray] | None,
        matrix: Matrix | None,
    ) -> None:
        self.pipeline = pipeline
        self.learner = pipeline.learner
        self.source = source
        self.Y = Y
        self.monitor = monitor
        self.resume: Mapping[str, AnyArray] = resume or {}
        self.matrix = matrix
        self.lost: list[str] = []
        """Labels whose tuned threshold did not carry over."""

    def run(self) -> None:
        pipeline, features = self.pipeline, self.pipeline.features
        with self._timed("features"):
            self.X = self._features()
        self._refuse_foreign_snapshot()
        self.context = Context(
            labels=pipeline.labels_,
            features=features.names_,
            parents=pipeline.tree_.parent_indices(pipeline.labels_) if pipeline.tree_ is not None else None,
            candidates=features.candidates_,
            numeric_features=pipeline.kind_ == "features",
        )
        with self._timed("training"):
            self._train()
        with self._timed("thresholds"):
            thresholds = self._thresholds()
        pipeline.thresholds_ = thresholds
        pipeline.summary_ = self._notes()

    def _features(self) -> Matrix:
        if self.matrix is None:
            return self.pipeline.features.fit_transform(self._documents(), self.Y)
        if self.matrix.shape != (self.Y.shape[0], len(self.pipeline.features.names_)):
            raise ValueError("the matrix is not that of these features and this training part")
        return self.matrix

    def _documents(self) -> Iterator[Any]:
        completed = 0
        for batch in self.source.batches():
            yield read_documents(batch.documents)
            completed += batch.n_examples
            self._tell(Progress("features", completed, self.source.n_examples, "examples", {}, dict))

    def _train(self) -> None:
        if "fitted.notes" in self.resume:
            self.learner.set_state(_unprefixed("fitted", self.resume))
            self.learner.summary_ = TrainingSummary(**json.loads(self.resume["fitted.notes"].tobytes()))
            return

        def tell(step: Step, /) -> None:
            snapshot = partial(self._snapshot, {}, step.snapshot)
            self._tell(
                Progress(
                    "training", step.completed, step.total, step.unit, step.measures, snapshot, step.scores
                )
            )

        resume = _unprefixed("learner", self.resume) or None
        self.learner.fit(self.X, self.Y, context=self.context, monitor=tell, resume=resume)

    def _thresholds(self) -> Floats:
        """The learner's own thresholds, or those tuned on held-out folds.

        A label with fewer positives than folds, or none in the training part of a fold, cannot be tuned. It
        keeps the learner's own threshold where scores are about zero. Where they tell only an order or count
        votes there is none that means anything, and the label gets its highest held-out score, as a hopeless
        label does (SCutFBR). Where no label can be tuned nothing is held out, and all keep their own.
        A threshold about zero that does not carry over to the learner in use gives way to its own.
        """
        n_labels = self.Y.shape[1]
        own = catalog.default_threshold(self.learner, n_labels)
        decision = self.pipeline.decision_
        tunable = np.bincount(self.Y.indices, minlength=n_labels) >= _N_FOLDS
        if not isinstance(decision, TunedThresholdDecision) or not tunable.any():
            return np.full(n_labels, own)
        folds = stratified_folds(self.Y, _N_FOLDS, seed=self.pipeline.seed)
        scores = self.resume.get("held_out", np.zeros(self.Y.shape)).copy()
        first = int(self.resume["fold"]) if "fold" in self.resume else 0
        for fold in range(_N_FOLDS):
            training = folds != fold
            # A learner that never met a label has nothing to tell about it.
            tunable &= np.bincount(self.Y[training].indices, minlength=n_labels) > 0
            if fold >= first:
                scores[~training] = self._held_out_scores(fold, training, scores)
        if not catalog.has_zero_threshold(self.learner):
            return tuned_thresholds(scores, self.Y, tunable, default=None, fbr=decision.fbr)
        tuned = tuned_thresholds(scores, self.Y, tunable, default=own, fbr=decision.fbr)
        training_scores = np.asarray(self.learner.decision_function(self.X))
        lost = tunable & ~transferable(tuned, scores, training_scores, self.Y)
        self.lost = [self.pipeline.labels_[j] for j in np.flatnonzero(lost)]
        return np.where(lost, own, tuned)

    def _held_out_scores(self, fold: int, training: Bools, scores: Floats) -> Floats:
        """Scores of one fold by a learner trained on the others; all labels stay, so that scores compare."""
        learner = clone(self.learner)

        def tell(step: Step, /) -> None:
            outer = {"fold": np.array(fold), "held_out": scores.copy(), **self._fitted_learner()}
            snapshot = partial(self._snapshot, outer, step.snapshot)
            done, total = fold * step.total + step.completed, _N_FOLDS * step.total
            self._tell(Progress("thresholds", done, total, step.unit, step.measures, snapshot))

        interrupted = "fold" in self.resume and int(self.resume["fold"]) == fold
        learner.fit(
            self.X[training],
            self.Y[training],
            context=self.context,
            monitor=tell,
            resume=_unprefixed("learner", self.resume) if interrupted else None,
        )
        return np.asarray(learner.decision_function(self.X[~training]))

    def _notes(self) -> TrainingSummary:
        pipeline, learned, seen = self.pipeline, self.learner.summary_, self.pipeline.features.summary_
        always = [pipeline.labels_[j] for j in np.flatnonzero(in_every_example(self.Y))]
        empty = int((np.diff(self.X.indptr) == 0).sum())
        warnings = [*seen.warnings]
        if always:
            warnings.append(f"labels that every training example has: {_listed(always)}")
        if self.lost:
            warnings.append(
                "labels that keep the learner's own threshold, as the tuned one does not carry over from the "
                f"held-out folds to the whole training part: {_listed(self.lost)}"
            )
        if empty:
            warnings.append(f"{empty} training documents have none of the features")
        facts = {
            "examples": int(self.X.shape[0]),
            "labels": int(self.Y.shape[1]),
            "unlabelled": int((np.diff(self.Y.indptr) == 0).sum()),
            "empty_documents": empty,
        }
        return TrainingSummary([*warnings, *learned.warnings], {**facts, **seen.facts, **learned.facts})

    def _snapshot(self, outer: State, inner: Callable[[], State]) -> State:
        return {"fingerprint": self._fingerprint, **outer, **_prefixed("learner", inner())}

    def _fitted_learner(self) -> State:
        notes = json.dumps(asdict(self.learner.summary_)).encode()
        return {
            **_prefixed("fitted", self.learner.get_state()),
            "fitted.notes": np.frombuffer(notes, dtype=np.uint8),
        }

    @cached_property
    def _fingerprint(self) -> AnyArray:
        """A digest of the problem, so that a snapshot is not taken up by another one."""
        learner = (self.learner.algorithm, sorted(self.learner.get_params().items()))
        digest = hashlib.sha256(repr((learner, self.pipeline.decision_, self.pipeline.seed)).encode())
        for matrix in (self.X, self.Y):
            digest.update(repr(matrix.shape).encode())
            for array in (matrix.data, matrix.indices, matrix.indptr):
                digest.update(np.ascontiguousarray(array).data)
        return np.frombuffer(digest.digest(), dtype=np.uint8)

    def _refuse_foreign_snapshot(self) -> None:
        if "fingerprint" in self.resume and not np.array_equal(self.resume["fingerprint"], self._fingerprint):
            raise SnapshotError("the snapshot is of a training on other data or with other parameters")

    def _tell(self, progress: Progress) -> None:
        if self.monitor is not None:
            self.monitor(progress)

    @contextmanager
    def _timed(self, phase: Phase) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.pipeline.timings_[phase] = time.perf_counter() - started


def read_documents(documents: Documents | Sequence[MailDocument]) -> Any:
    """Documents as features want them: mail is read, everything else is there already."""
    if isinstance(documents, FeatureRows):
        return documents
    return [read_email(document) if isinstance(document, Email) else document for document in documents]


def _refuse_infinite(numbers: Floats) -> None:
    if not np.isfinite(numbers).all():
        raise UnsuitableDataError("the values of a document are so large that its scores are not finite")


def _prefixed(prefix: str, state: Mapping[str, AnyArray]) -> State:
    return {f"{prefix}.{name}": array for name, array in state.items()}


def _unprefixed(prefix: str, state: Mapping[str, AnyArray]) -> State:
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in state.items() if name.startswith(start)}


def _listed(labels: Sequence[str], at_most: int = 10) -> str:
    more = len(labels) - at_most
    return ", ".join(labels[:at_most]) + (f" and {more} more" if more > 0 else "")
