"""The pipeline: features, learner and decision, fitted together, as an estimator of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if

from models import catalog
from models.arrays import AnyArray, Floats
from models.base import Learner, LearnerParameters, State
from models.base.targets import SETS, Target, read_target
from models.base.training import abbreviated
from models.base.weights import as_weights
from models.calibration import Calibration
from models.catalog import FeaturesConfig
from models.data.examples import Examples, ExampleSource, FeatureRows
from models.decisions import DecisionRule, LabelSetRule, needs_held_out
from models.decisions.curves import HeldOutCurves
from models.decisions.held_out import HeldOutSample
from models.errors import ParameterError, UnsuitableDataError
from models.features import NumericFeatures, TextFeatures
from models.features.auto import N_CANDIDATES, AutoFeaturesParameters
from models.features.documents import as_documents, forget_columns, kind_of, set_columns
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels
from models.mail import MAIL_VERSION
from models.pipeline.feature_choice import FeatureChooser
from models.pipeline.fitting import Fitting
from models.pipeline.predictor import Predictor
from models.pipeline.progress import PipelineMonitor, Progress, Run
from models.pipeline.snapshot import add_prefix, select_prefix
from models.pipeline.training_set import FeatureMatrices, Features, TrainingSet, fit_features
from models.serialization.state import read_array

_LEAD = 1e-9
"""How much more probable, relatively, the predicted class is than others that are as probable."""


def _is_calibrated(pipeline: Pipeline) -> bool:
    """Whether a pipeline has probabilities, or can have them after ``fit``.

    Raises:
        AttributeError: it has none.
    """
    if hasattr(pipeline, "rule_") and pipeline.calibration_ is None:
        raise AttributeError(
            "the pipeline is not calibrated; fit it with a decision that holds out examples (auto), on more "
            "than three different documents"
        )
    return True


class Pipeline(Predictor, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Predicts label sets and rankings of documents.

    It is a classifier for scikit-learn's tools: it can be cloned, searched by ``GridSearchCV``, and be the
    last step of ``make_pipeline``. ``predict`` returns labels in the form of the labels that ``fit``
    received: label sets, an (n, k) matrix of 0 and 1, or one class per document.

    Args:
        features: converts documents to feature vectors. None selects what suits the learner and the kind of
            the documents. ``"auto"``, the default of ``svm``, compares this with richer features on held-out
            documents; see :class:`~models.features.auto.AutoFeaturesParameters`.
        learner: converts feature vectors to scores. None selects ``svm``.
        decision: converts scores to label sets: a decision, its name or its JSON form. None selects the
            learner's default.
        seed: seed of the folds on which thresholds are tuned. The learner has its own ``random_state``;
            ``from_parameters`` sets both to the same seed.

    Attributes:
        features_: the fitted features.
        learner_: the fitted learner.
        decision_: the decision in use.
        classes_: the columns or classes of the labels that ``fit`` received; ``labels_`` as an array if it
            received label sets.
        target_: the form of the labels that ``fit`` received.
        n_features_in_: number of columns if ``fit`` received a matrix.
        feature_names_in_: names of the columns if it received a table with names.
        kind_: kind of the training documents.
        labels_: the k labels, in label order: those with a positive training example, those that were kept
            without one, and their ancestors.
        tree_: the label tree, or None. With a tree, an example of a label is also one of its ancestors.
        rule_: how scores become label sets.
        calibration_: converts scores to probabilities; None if there were no held-out scores.
        curves_: what the possible thresholds of each label predict for held-out examples; None if there were
            none.
        held_out_: held-out scores for partial fits; None if there are none, or the learner cannot continue
            to learn.
        decision_report_: how the decision was tuned; None if its kind gives no choice.
        reference_: what is predicted for documents like those of the training.
        mail_version_: version of the mail parser, if the documents are e-mails; otherwise None.
        summary_: warnings and facts about the training.
        timings_: seconds of each completed phase; not saved with the model.

    >>> texts = ["the invoice is wrong", "my parcel is late", "a late parcel and a wrong invoice"]
    >>> pipeline = Pipeline()
    >>> pipeline.fit(texts, [("billing",), ("shipping",), ("billing", "shipping")]).predict(["late parcel"])
    [('shipping',)]
    >>> pipeline.predictions(["late parcel"], top=1)[0].ranking[0][0]
    'shipping'
    """

    classes_: AnyArray
    target_: Target = SETS

    def __init__(
        self,
        features: Features | Literal["auto"] | None = None,
        learner: Learner | None = None,
        decision: DecisionRule | Mapping[str, Any] | str | None = None,
        *,
        seed: int = 0,
    ) -> None:
        self.features = features
        self.learner = learner
        self.decision = decision
        self.seed = seed

    @classmethod
    def from_parameters(
        cls,
        features: FeaturesConfig | AutoFeaturesParameters,
        learner: LearnerParameters,
        decision: DecisionRule | None = None,
        *,
        seed: int = 0,
    ) -> Self:
        """Create an unfitted pipeline from the parameters of a training request.

        Args:
            features: parameters of the features.
            learner: parameters of the learner.
            decision: the decision; None selects the learner's default.
            seed: seed of all random choices.
        """
        created = catalog.create_learner(learner, seed=seed)
        if isinstance(features, AutoFeaturesParameters):
            return cls("auto", created, decision, seed=seed)
        return cls(catalog.create_features(features), created, decision, seed=seed)

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        tree: LabelTree | None = None,
        kept_labels: Sequence[str] = (),
        validation: ExampleSource | None = None,
        n_jobs: int = 1,
    ) -> Self:
        """Fit features, learner and thresholds on labelled examples.

        Args:
            X: the training examples: a source of labelled examples; or n documents, see
                :func:`~models.features.documents.as_documents`.
            y: the labels of the documents if ``X`` has none: n collections of label names, an (n, k) matrix
                of 0 and 1, or (n,) one class per document.
            sample_weight: (n,) how much each document counts if ``X`` is no source; 2 as much as two equal
                documents, and 0 as if it was not there. None if all count once.
            tree: the label tree.
            kept_labels: labels that the pipeline has even if no training example has them.
            validation: examples for early stopping and for ``tuned_threshold``; nothing else is fitted on
                them. Without them, both hold out training examples.
            n_jobs: number of threads that the learner may use; they never change the result. ``svm`` and
                ``h_svm`` use them if there are at least as many examples as features.

        Raises:
            ParameterError: the parameters are invalid, alone, together or for this kind of data.
            UnsuitableDataError: no example has a label, or the learner cannot learn from this data, for
                example because some labels are unknown.
        """
        self._forget()
        source, kept_labels = self._read_training(X, y, sample_weight, kept_labels)
        return self._fit(TrainingSet(source, validation, tree, kept_labels), None, Run(n_jobs=n_jobs))

    def fit_training(
        self,
        training: TrainingSet,
        matrices: FeatureMatrices | None = None,
        *,
        monitor: PipelineMonitor | None = None,
        resume: Mapping[str, AnyArray] | None = None,
        n_jobs: int = 1,
    ) -> Self:
        """Fit as ``fit`` does, in a training that can be watched, stopped and resumed.

        Args:
            training: the examples.
            matrices: their features, by the fitted features of this pipeline. No document is read then. None
                to fit the features.
            monitor: called after every step.
            resume: a snapshot of an interrupted call with the same examples and parameters. The features are
                computed again; the learner continues from the snapshot.
            n_jobs: as for ``fit``.

        Raises:
            ParameterError: as for ``fit``.
            SnapshotError: the snapshot belongs to another training.
            UnsuitableDataError: as for ``fit``.
            ValueError: the matrices are those of other examples or features.
        """
        self._forget()
        return self._fit(training, matrices, Run(monitor, resume or {}, n_jobs))

    def _forget(self) -> None:
        """Forget the forms of the documents and labels of an earlier training."""
        self.target_ = SETS
        forget_columns(self)

    def _begin(self, training: TrainingSet) -> None:
        """Set what follows from the parameters and the labels, and check that they suit each other."""
        self.learner_ = catalog.default_learner(seed=self.seed) if self.learner is None else self.learner
        self.decision_ = catalog.resolve_decision(self.learner_, self.decision)
        if not any(training.label_sets):
            raise UnsuitableDataError("no training example has a label; there is nothing to learn")
        self.kind_, self.labels_, self.tree_ = training.source.kind, training.labels, training.tree
        self.mail_version_ = MAIL_VERSION if self.kind_ == "email" else None
        self.timings_ = {}
        if training.unknown is not None:
            catalog.check_unknown_labels(self.learner_)
        if training.weights is not None:
            catalog.check_weights(self.learner_)

    def _fit(self, training: TrainingSet, matrices: FeatureMatrices | None, how: Run) -> Self:
        """Fit the features if there are no matrices, and learner and thresholds."""
        self._begin(training)
        how = replace(how, timings=self.timings_)
        self.features_, compared = self._resolve_features(training, how)
        if matrices is None:
            matrices = self._fit_features(training, how)
        fitting = Fitting(
            self.features_,
            self.learner_,
            self.decision_,
            training,
            matrices,
            seed=self.seed,
            how=how,
            holds_out=self._holds_out,
        )
        result = fitting.run()
        decided, self.summary_, self.reference_ = result.decided, result.summary, result.reference
        self.rule_, self.decision_report_ = decided.rule, decided.report
        self.calibration_, self.curves_ = decided.calibration, decided.curves
        self.held_out_ = None if result.held_out is None else HeldOutSample.of(result.held_out)
        with_example = collect_labels(training.label_sets, training.tree)
        if empty := sorted(set(training.labels).difference(with_example)):
            self.summary_.warnings.append(f"labels without a training example: {abbreviated(empty)}")
        if isinstance(self.features_, NumericFeatures):
            self.n_features_in_ = len(self.features_.base_names_)
        if compared:
            self.summary_.facts["average_precision_of_features"] = compared
        self.classes_ = self.target_.classes_among(training.labels)
        return self

    def _fit_features(self, training: TrainingSet, how: Run) -> FeatureMatrices:
        def report(n_read: int) -> None:
            how.report(Progress("features", n_read, training.source.n_examples, "examples", {}, dict))

        validated = training.validation is not None and training.validation.n_examples > 0
        with how.timed("features"):
            return fit_features(
                self.features_,
                training,
                report,
                keep_raw=self._holds_out and not validated,
                with_validation=self.learner_.uses_validation or self._holds_out,
            )

    def _resolve_features(self, training: TrainingSet, how: Run) -> tuple[Features, dict[str, float]]:
        """Return the features, and how well candidates ranked held-out documents, if any did."""
        source = training.source
        if isinstance(self.features, TextFeatures | NumericFeatures):
            catalog.check_features(self.features.parameters, self.learner_, source.kind)
            return self.features, {}
        recipe = catalog.resolve_features(self.learner_, None, source.kind)
        if self.features is None and not catalog.chooses_features(self.learner_):
            return catalog.create_features(recipe), {}

        def report(n_compared: int) -> None:
            how.report(Progress("features", n_compared, N_CANDIDATES, "candidates", {}, dict))

        chooser = FeatureChooser(self.learner_, source, tree=training.tree, seed=self.seed, on_step=report)
        choice = chooser.choose(recipe)
        return catalog.create_features(choice.parameters), choice.average_precision

    def _read_training(
        self, X: Any, y: Any, sample_weight: Any, kept_labels: Sequence[str]
    ) -> tuple[ExampleSource, Sequence[str]]:
        """Return labelled examples, and the labels that are kept without an example."""
        if hasattr(X, "label_sets"):
            if y is not None or sample_weight is not None:
                raise ParameterError("the examples have their labels and weights; pass them alone")
            return X, kept_labels
        documents = as_documents(X)
        if y is None:
            raise ValueError("Pipeline requires y to be passed, but the target y is None")
        self.target_ = target = read_target(y)
        if isinstance(documents, FeatureRows):
            set_columns(self, X, documents)
        weights = as_weights(sample_weight, len(documents))
        examples = Examples(
            kind=kind_of(documents),
            documents=documents,  # type: ignore[arg-type]  # read e-mails are read as they are
            labels=target.label_sets(y, len(documents)),
            weights=() if weights is None else weights.tolist(),
        )
        if weights is not None and not weights.all():
            if not weights.any():
                raise ValueError("the weights of all documents are zero; there is nothing to learn")
            examples = examples.where(weights > 0)
        return examples, [*kept_labels, *target.names]

    def predict(self, X: Any) -> Any:
        """Return the predicted labels in the form of the labels that ``fit`` received.

        That is a list of n label sets in label order, an (n, k) matrix of 0 and 1, or (n,) classes. A
        pipeline that was fitted on a source of examples returns label sets.

        Args:
            X: n documents, see :func:`~models.features.documents.as_documents`.

        Raises:
            ParameterError: the documents are of another kind, or ``X`` is a single text.
            UnsuitableDataError: a score is not finite because the values of a document are too large.
        """
        scored = self.scored(X)
        columns = self.target_.columns(self.labels_)
        return self.target_.arranged(
            scored.predicted(self.rule_)[:, columns], scored.scores[:, columns], self.labels_
        )

    def decision_function(self, X: Any) -> Floats:
        """Return the unrounded score of each column or class of ``classes_``, (n, k) float64.

        With two classes, it is (n,) the score of the second class minus that of the first one.
        """
        scores = self.scores(X)[:, self.target_.columns(self.labels_)]
        return scores[:, 1] - scores[:, 0] if self._is_binary else scores

    @available_if(_is_calibrated)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Any) -> Floats:
        """Return the calibrated probability of each column or class of ``classes_``, (n, k).

        The method exists if the pipeline is calibrated. The probabilities of a document do not add up to 1,
        because any number of labels can apply. With one class per document, they are scaled so that they do,
        and the predicted class is the most probable one.

        Args:
            X: documents as for ``predict``, or a source of examples.

        Raises:
            ParameterError: the documents are of another kind.
            UnsuitableDataError: a score is not finite because the values of a document are too large.
        """
        self._check_fitted()
        assert self.calibration_ is not None  # noqa: S101 - see _is_calibrated
        scored, columns = self.scored(X), self.target_.columns(self.labels_)
        probabilities, _ = self.calibration_.probabilities(
            scored.scores, scored.predicted(self.rule_), scored.empty
        )
        probabilities = probabilities[:, columns]
        if self.target_.form != "classes":
            return probabilities
        predicted = np.arange(len(probabilities)), scored.scores[:, columns].argmax(axis=1)
        probabilities[predicted] = probabilities.max(axis=1) * (1 + _LEAD)
        total = probabilities.sum(axis=1, keepdims=True)
        uniform = np.full_like(probabilities, 1 / probabilities.shape[1])
        return np.asarray(np.divide(probabilities, total, out=uniform, where=total > 0))

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return the names of the columns of ``feature_matrix``."""
        self._check_fitted()
        return self.features_.get_feature_names_out(input_features)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of documents whose predicted label set or class is exactly right.

        For other measures, pass a ``scoring`` to scikit-learn's tools, or call ``evaluate``.

        Args:
            X: documents as for ``predict``, or a source of examples.
            y: their labels in the form of ``fit``, if ``X`` has none.
            sample_weight: (n,) how much each document counts; None if all count once.
        """
        self._check_fitted()
        if hasattr(X, "label_sets"):
            right = np.array(
                [
                    tuple(self.labels_[j] for j in np.flatnonzero(row)) == tuple(true)
                    for row, true in zip(self.scored(X).predicted(self.rule_), X.label_sets(), strict=True)
                ]
            )
        else:
            predicted = self.predict(X)
            true = self.target_.label_sets(y, len(predicted))
            found = self.target_.label_sets(predicted, len(predicted)) if len(predicted) else []
            right = np.array([one == other for one, other in zip(true, found, strict=True)])
        return float(np.average(right, weights=as_weights(sample_weight, len(right))))

    @property
    def _holds_out(self) -> bool:
        """Whether a training holds out documents: for the decision, or for the probabilities of classes."""
        of_classes = self.target_.form == "classes" and self.decision_.kind == "single_label"
        return of_classes or needs_held_out(self.decision_)

    @property
    def _is_binary(self) -> bool:
        return self.target_.form == "classes" and len(self.target_.names) == 2

    def get_state(self) -> State:
        """Return the arrays of features, learner, decision, calibration, curves and held-out scores."""
        self._check_fitted()
        calibration, curves, held_out = self.calibration_, self.curves_, self.held_out_
        return {
            **add_prefix("features", self.features_.get_state()),
            **add_prefix("learner", self.learner_.get_state()),
            "decision.thresholds": self.thresholds_,
            **({} if calibration is None else add_prefix("calibration", calibration.get_state())),
            **({} if curves is None else add_prefix("curves", curves.get_state())),
            **({} if held_out is None else add_prefix("held_out", held_out.get_state())),
        }

    def set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Restore the arrays of ``get_state``. The caller sets the other fitted attributes.

        Raises:
            ArtifactError: the state is invalid.
            ParameterError: the pipeline was created without features or without a learner.
        """
        if self.learner is None or not isinstance(self.features, TextFeatures | NumericFeatures):
            raise ParameterError("a state has no parameters; create the pipeline with features and a learner")
        self.features_, self.learner_ = self.features, self.learner
        self.features_.set_state(select_prefix("features", state))
        self.learner_.set_state(select_prefix("learner", state))
        self.rule_ = LabelSetRule(read_array(state, "decision.thresholds", "float64", (None,)))
        calibration = select_prefix("calibration", state)
        n_labels = len(self.rule_.thresholds)
        self.calibration_ = Calibration.from_state(calibration, n_labels) if calibration else None
        curves = select_prefix("curves", state)
        self.curves_ = HeldOutCurves.from_state(curves, n_labels) if curves else None
        held_out = select_prefix("held_out", state)
        self.held_out_ = HeldOutSample.from_state(held_out, n_labels) if held_out else None
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rule_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.classifier_tags = ClassifierTags(multi_label=True)
        return tags
