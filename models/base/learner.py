"""What every learner has in common.

A learner is a class in scikit-learn's manner: the constructor stores parameters and does nothing else,
``fit`` learns, ``decision_function`` gives every label a real score, and fitted state ends in ``_``.
The constraints on its parameters are data: a :class:`LearnerParameters` that validates requests, makes the
JSON Schema and the documentation table.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from models.arrays import AnyArray, Floats, Ints, Labels, Matrix
from models.base.training import Context, Monitor, Step, TrainingSummary
from models.base.validation import as_feature_matrix, as_training_matrices, binarize_classes
from models.errors import ParameterError
from models.serialization.state import State


class LearnerParameters(BaseModel):
    """Base of the parameters of one algorithm; subclasses add a literal ``algorithm`` and their fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class Learner(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base of all learners.

    Subclasses define ``parameters`` and ``algorithm``, a constructor with the parameters' names and
    defaults (plus ``random_state`` where the algorithm is random), ``_fit``, ``_scores`` and the two halves
    of the saved form, ``get_state`` and ``set_state``.

    Attributes:
        n_features_in_: number r of features seen in ``fit``.
        n_labels_: number k of labels seen in ``fit``.
        classes_: the classes, sorted, where ``fit`` was given one class an example; else the labels' indices.
        single_label_: whether it was given one class an example.
        summary_: what the training has to say of itself.
    """

    parameters: ClassVar[type[LearnerParameters]]
    algorithm: ClassVar[str]
    default_decision: ClassVar[str] = "sign"

    n_features_in_: int
    n_labels_: int
    classes_: AnyArray
    single_label_: bool = False
    summary_: TrainingSummary

    def validated_parameters(self) -> Any:
        """The parameters, checked, as an instance of ``parameters``.

        Raises:
            ParameterError: a parameter is of the wrong type or out of range.
        """
        names = self.parameters.model_fields
        given = {k: v for k, v in self.get_params(deep=False).items() if k in names}
        try:
            return self.parameters.model_validate({"algorithm": self.algorithm, **given})
        except ValidationError as error:
            first = error.errors()[0]
            pointer = "".join(f"/{part}" for part in ("learner", *first["loc"]))
            raise ParameterError(f"{pointer}: {first['msg']}", pointer) from error

    @classmethod
    def from_parameters(cls, parameters: LearnerParameters, *, random_state: int = 0) -> Self:
        """The learner that a validated request asks for."""
        given = {
            name: getattr(parameters, name) for name in type(parameters).model_fields if name != "algorithm"
        }
        if "random_state" in cls._get_param_names():
            given["random_state"] = random_state
        return cls(**given)

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        context: Context | None = None,
        monitor: Monitor | None = None,
        resume: State | None = None,
    ) -> Self:
        """Learn from examples.

        Args:
            X: (g, r) features, sparse or dense; never turned dense where it is sparse.
            Y: (g, k) relevant labels as 0/1, sparse or dense. Rows without a label are legal. Or (g,) one
                class an example, as scikit-learn's classifiers take them: each class becomes a label (two
                classes become one label, the second), and ``predict`` answers with classes.
            context: label and feature names, the label tree, local candidates.
            monitor: called after every round, epoch or pass.
            resume: a snapshot of an earlier, interrupted call with the same X, Y and parameters.

        Raises:
            ParameterError: parameters that cannot be used.
            UnsuitableDataError: data that this algorithm cannot learn from.
        """
        parameters = self.validated_parameters()
        if Y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        Y = Y if sparse.issparse(Y) else np.asarray(Y)
        self.single_label_ = Y.ndim == 1
        if self.single_label_:
            self.classes_, Y = binarize_classes(Y)
        matrix, labels = as_training_matrices(X, Y)
        if not self.single_label_:
            self.classes_ = np.arange(labels.shape[1])
        self.n_features_in_ = matrix.shape[1]
        self.n_labels_ = labels.shape[1]
        self.summary_ = TrainingSummary()
        self._fit(matrix, labels, parameters, context or Context(), monitor or _no_monitor, resume)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Scores of every label, (n, k) float64, never rounded; (n,) after training on two classes."""
        check_is_fitted(self)
        scores = self._scores(
            as_feature_matrix(X, n_features=self.n_features_in_, reader=type(self).__name__)
        )
        return scores[:, 0] if self.single_label_ and len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> AnyArray:
        """The label sets under the sign rule (score > 0), (n, k) of 0 and 1.

        After training on classes: (n,) the class of the highest score, the second of two where its score is
        above 0.
        """
        scores = self.decision_function(X)
        if not self.single_label_:
            return (scores > 0).astype(np.int64)
        which = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        classes: AnyArray = self.classes_[which]
        return classes

    @property
    def can_explain(self) -> bool:
        """Whether ``explain`` has an answer, with these parameters."""
        return True

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:  # noqa: ARG002 - a learner may have none
        """The features of one example and what each adds to the score of a label.

        Args:
            x: (1, r) one example.
            label: index of the label.

        Returns:
            indices of the features that count, and their additive weights in the score, same length; a
            learner whose score is not such a sum gives the nearest linear reading and says so in its
            docstring.

        Raises:
            ParameterError: with these parameters the scores have no such reading.
        """
        raise ParameterError(f"{self.algorithm} cannot explain its scores; leave explain out", "/explain")

    @abstractmethod
    def _fit(
        self,
        X: Matrix,
        Y: Labels,
        parameters: Any,
        context: Context,
        monitor: Monitor,
        resume: State | None,
    ) -> None: ...

    @abstractmethod
    def _scores(self, X: Matrix) -> Floats: ...

    @abstractmethod
    def get_state(self) -> State:
        """The fitted state as named arrays (no objects); all that prediction needs."""

    @abstractmethod
    def set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Become the fitted learner whose ``get_state`` this was; arrays may be read-only maps of a file."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.classifier_tags = ClassifierTags(multi_label=True)
        return tags


def _no_monitor(step: Step, /) -> None:
    """Look the other way."""
