"""The base class of all learners.

A learner follows the conventions of scikit-learn. The constructor only stores parameters, ``fit`` learns from
examples, ``decision_function`` computes a real score for every label, and the names of fitted attributes end
in ``_``. The constraints on the parameters are declared in a :class:`LearnerParameters` model, which
validates requests and generates the JSON Schema and the table in the documentation.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from models.arrays import AnyArray, Bools, Floats, Labels, Matrix, Vector
from models.base.classes import pack_classes, unpack_classes
from models.base.column_names import check_column_names, set_column_names
from models.base.constructor import document, make_constructor, parameter_names
from models.base.steps import Training, run
from models.base.targets import form_of
from models.base.training import Context, Monitor, Problem, Step, TrainingSummary
from models.base.validation import (
    as_feature_matrix,
    as_label_matrix,
    as_training_matrices,
    binarize_classes,
    check_magnitude,
)
from models.base.weights import as_weights
from models.covering import Covering
from models.errors import ParameterError, UnsuitableDataError
from models.serialization.state import State, require


class LearnerParameters(BaseModel):
    """Base class of the parameters of a learner. Subclasses add a literal ``algorithm`` and other fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    def trains_labels_separately(self) -> bool:
        """Whether the scores of a label depend only on the examples and on which of them have this label.

        Such a learner can leave an example out for the labels that are unknown for it.
        """
        return False

    def check_documents(self, *, numeric_features: bool) -> None:
        """Check that the parameters suit the documents.

        Args:
            numeric_features: whether the documents are numbers; otherwise they are texts.

        Raises:
            ParameterError: a parameter has no meaning for these documents.
        """

    def training_covering(self) -> Covering | None:
        """Return the covering whose loss the training minimizes; None if the learner has no covering."""
        return None


class Learner(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base class of all learners.

    Subclasses define ``parameters``, ``algorithm``, ``_training``, ``_scores``, ``_get_state`` and
    ``_set_state``. ``parameters`` is the only declaration of the parameters: the constructor takes them, and
    ``random_state`` if ``randomized``. What only some learners can do is a mixin, see
    ``models.base.abilities``.

    Attributes:
        n_features_in_: number r of features seen in ``fit``.
        feature_names_in_: (r,) names of the columns, if ``fit`` received a table with names.
        n_labels_: number k of labels seen in ``fit``.
        classes_: the sorted classes if ``fit`` received one class per example; otherwise the label indices.
        single_label_: whether ``fit`` received one class per example.
        summary_: warnings and facts about the training.
    """

    parameters: ClassVar[type[LearnerParameters]]
    algorithm: ClassVar[str]
    randomized: ClassVar[bool] = False
    """Whether the constructor takes a ``random_state``, the seed of everything that is random."""
    needs_scaled_features: ClassVar[bool] = False
    """Whether a pipeline warns of features whose scales differ."""

    n_features_in_: int
    n_labels_: int
    classes_: AnyArray
    single_label_: bool = False
    summary_: TrainingSummary

    def __init__(self, *args: Any, **parameters: Any) -> None:
        """Store the parameters; see ``parameters`` for their names and defaults."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "parameters" in vars(cls):
            cls.__init__ = make_constructor(cls.parameters, randomized=cls.randomized)  # type: ignore[method-assign]
            cls.__doc__ = document(cls.__doc__ or "", cls.parameters, randomized=cls.randomized)

    def validated_parameters(self) -> Any:
        """Validate the parameters and return them as an instance of ``parameters``.

        Raises:
            ParameterError: a parameter has the wrong type or is out of range.
        """
        fields = self.parameters.model_fields
        arguments = {k: v for k, v in self.get_params(deep=False).items() if k in fields}
        # None stands for a default that is an object, see ``make_constructor``.
        values = {k: v for k, v in arguments.items() if v is not None or fields[k].default is None}
        try:
            return self.parameters.model_validate({"algorithm": self.algorithm, **values})
        except ValidationError as error:
            first = error.errors()[0]
            pointer = "".join(f"/{part}" for part in ("learner", *first["loc"]))
            raise ParameterError(f"{pointer}: {first['msg']}", pointer) from error

    @classmethod
    def from_parameters(cls, parameters: LearnerParameters, *, random_state: int = 0) -> Self:
        """Create an unfitted learner from validated parameters."""
        values = {name: getattr(parameters, name) for name in parameter_names(type(parameters))}
        if cls.randomized:
            values["random_state"] = random_state
        return cls(**values)

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        groups: Any = None,
        context: Context | None = None,
    ) -> Self:
        """Learn from examples.

        Args:
            X: (g, r) features, sparse or dense. Sparse features stay sparse.
            y: (g, k) relevant labels as 0/1, sparse or dense. A row may have no label. Alternatively (g,) one
                class per example, as for scikit-learn's classifiers: each class becomes a label (two classes
                become one label, for the second class), and ``predict`` returns classes.
            groups: (g,) the document of each example. A learner that holds out training examples keeps those
                with equal numbers together. None if every example is a document of its own.
            context: label and feature names, the label tree, candidate features of each label, unknown
                labels, and validation examples.

        Raises:
            ParameterError: a parameter is invalid.
            UnsuitableDataError: this algorithm cannot learn from this data, for example because it trains
                all labels together and some are unknown.
            ValueError: X or y is invalid, for example because it contains NaN.
        """
        return self._fit(X, y, None, groups, context)

    def fit_problem(
        self, problem: Problem, *, monitor: Monitor | None = None, resume: State | None = None
    ) -> Self:
        """Learn as ``fit`` does, in a training that can be watched, stopped and resumed.

        Args:
            problem: the examples. Only learners that accept weights may get them.
            monitor: called after every step.
            resume: a snapshot of an interrupted call with the same problem and parameters, to continue it.

        Raises:
            ParameterError: as for ``fit``.
            UnsuitableDataError: as for ``fit``.
            ValueError: as for ``fit``.
        """
        return self._fit(
            problem.X, problem.Y, problem.weights, problem.groups, problem.context, monitor, resume
        )

    def _fit(
        self,
        X: Any,
        y: Any,
        weights: Any,
        groups: Any,
        context: Context | None,
        monitor: Monitor | None = None,
        resume: State | None = None,
    ) -> Self:
        parameters = self.validated_parameters()
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        Y = self._as_array(y)
        self.single_label_ = Y.ndim == 1
        if self.single_label_:
            self.classes_, Y = binarize_classes(y)
        matrix, labels = as_training_matrices(X, Y)
        set_column_names(self, X)
        if not self.single_label_:
            self.classes_ = np.arange(labels.shape[1])
        self.n_features_in_ = matrix.shape[1]
        self.n_labels_ = labels.shape[1]
        self.summary_ = TrainingSummary()
        context = self._check_unknown(context or Context(), labels, parameters)
        check_magnitude(matrix, context.features)
        problem = Problem(matrix, labels, context, weights, None if groups is None else np.asarray(groups))
        run(self._training(problem, parameters), monitor or _no_monitor, resume)
        return self

    def _as_array(self, y: Any) -> Any:
        """Return labels as an array or a sparse matrix.

        Raises:
            ParameterError: they are label sets, or no list.
        """
        if form_of(y) == "sets":
            kind = type(self).__name__
            raise ParameterError(
                f"y has label sets; use covey.Pipeline(learner=covey.{kind}()), or pass a learner alone an "
                "(n, k) matrix of 0 and 1, such as that of scikit-learn's MultiLabelBinarizer"
            )
        return y if sparse.issparse(y) else np.asarray(y)

    def _check_unknown(self, context: Context, Y: Labels, parameters: LearnerParameters) -> Context:
        """Check the unknown labels of a training, and return the context without empty ones.

        Raises:
            UnsuitableDataError: there are unknown labels, and this learner trains all labels together.
            ValueError: the unknown labels do not have the shape of Y, or contain relevant labels.
        """
        if context.unknown is None:
            return context
        unknown = as_label_matrix(context.unknown)
        if unknown.shape != Y.shape:
            raise ValueError(f"the unknown labels have the shape {unknown.shape}, but Y has {Y.shape}")
        if not unknown.nnz:
            return replace(context, unknown=None)
        if unknown.multiply(Y).nnz:
            raise ValueError("a label of an example is relevant and also unknown")
        if not parameters.trains_labels_separately():
            raise UnsuitableDataError(
                f"some labels of the training examples are unknown, and {self.algorithm} trains all labels "
                "together, so it cannot leave out an example for one label; use a learner that trains each "
                "label separately, or state for each example whether the label applies"
            )
        return replace(context, unknown=unknown)

    def decision_function(self, X: Any) -> Floats:
        """Return unrounded scores of every label, (n, k) float64; (n,) if ``fit`` received two classes."""
        check_is_fitted(self)
        check_column_names(self, X)
        scores = self._scores(
            as_feature_matrix(X, n_features=self.n_features_in_, reader=type(self).__name__)
        )
        return scores[:, 0] if self._is_binary else scores

    @property
    def _is_binary(self) -> bool:
        return self.single_label_ and len(self.classes_) == 2

    def score_one(self, x: Vector) -> Floats:
        """Return the scores of one example, (k,) float64, with the same bits as ``decision_function``.

        The input is not checked. Learners override this method if they can avoid the cost of a sparse matrix.

        Args:
            x: an example with features below ``n_features_in_``.
        """
        scores: Floats = self._scores(x.to_matrix(self.n_features_in_))[0]
        return scores

    def predict(self, X: Any) -> AnyArray:
        """Return the labels that the learner's own decision selects, as an (n, k) matrix of 0 and 1.

        These are the labels with a score above 0, unless the description of the learner states otherwise. If
        ``fit`` received one class per example, return (n,) the class with the highest score. With two
        classes, this is the second class if the score is above 0.
        """
        scores = self.decision_function(X)
        if not self.single_label_:
            return self._decide(scores).astype(np.int64)
        indices = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        classes: AnyArray = self.classes_[indices]
        return classes

    def _decide(self, scores: Floats) -> Bools:
        """Return the labels that the learner's own decision selects, (n, k)."""
        return scores > 0

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of examples whose predicted label set or class is exactly right.

        Args:
            X: (n, r) features.
            y: the labels of the examples in the form of ``fit``.
            sample_weight: (n,) how much each example counts; None if all count once.
        """
        predicted = self.predict(X)
        if self.single_label_:
            right = np.asarray(predicted == np.asarray(y))
        else:
            wrong = abs(as_label_matrix(y) - as_label_matrix(predicted))
            right = np.asarray(wrong.sum(axis=1)) == 0
        return float(np.average(right, weights=as_weights(sample_weight, len(predicted))))

    @property
    def uses_validation(self) -> bool:
        """Whether ``fit`` uses ``context.validation`` with these parameters."""
        return False

    @property
    def has_fixed_scale(self) -> bool:
        """Whether scores of learners that are trained on different examples are on the same scale."""
        return True

    @abstractmethod
    def _training(self, problem: Problem, parameters: Any) -> Training:
        """Begin a training on checked examples with validated parameters."""

    @abstractmethod
    def _scores(self, X: Matrix) -> Floats: ...

    def get_state(self) -> State:
        """Return everything that prediction needs, as named arrays.

        Raises:
            ParameterError: the classes are neither texts, numbers nor booleans.
        """
        return {**self._get_state(), **(pack_classes(self.classes_) if self.single_label_ else {})}

    def set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Restore the result of ``get_state``. The arrays may be read-only memory maps of a file.

        Raises:
            ArtifactError: the state is invalid.
        """
        self._set_state(state)
        self.__dict__.pop("feature_names_in_", None)
        classes = unpack_classes(state)
        self.single_label_ = classes is not None
        if classes is None:
            self.classes_ = np.arange(self.n_labels_)
        else:
            columns = 1 if len(classes) == 2 else len(classes)
            require(columns == self.n_labels_, "the classes are not those of the labels")
            self.classes_ = classes
        return self

    @abstractmethod
    def _get_state(self) -> State:
        """Return everything that prediction needs besides the classes."""

    @abstractmethod
    def _set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Restore the result of ``_get_state``."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.classifier_tags = ClassifierTags(multi_label=True)
        return tags


def _no_monitor(step: Step, /) -> None:
    """Ignore the step."""
