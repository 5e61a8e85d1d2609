"""The constructor of features, which accepts single parameters, and the interface of scikit-learn to them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError
from sklearn.base import BaseEstimator, TransformerMixin

from models.arrays import AnyArray, Labels, Matrix
from models.base.targets import read_labels
from models.base.validation import UnfittedError
from models.data.examples import FeatureRows
from models.errors import ParameterError
from models.features.documents import as_documents, forget_columns, match_columns, read_documents, set_columns
from models.features.raw_values import RawValues

P = TypeVar("P", bound=BaseModel)


class ParameterizedFeatures(TransformerMixin, BaseEstimator, Generic[P]):  # type: ignore[misc]  # no types
    """Base class of features.

    ``fit``, ``transform`` and ``fit_transform`` are for callers of the library and scikit-learn's tools. A
    pipeline uses ``read``, ``fit_raw``, ``values``, ``vectors`` and ``vector``, whose documents are checked
    and parsed.

    Args:
        parameters: the parameters; None means the defaults.
        **changes: parameters that differ from them, by name.

    Raises:
        ParameterError: a parameter is unknown or out of range.
    """

    parameters_type: ClassVar[type[BaseModel]]
    parameters: P
    names_: list[str]

    def __init__(self, parameters: P | None = None, **changes: Any) -> None:
        if changes or parameters is None:
            parameters = self._validated({} if parameters is None else dict(parameters), changes)
        self._configure(parameters)

    def _configure(self, parameters: P) -> None:
        self.parameters = parameters

    def _validated(self, values: dict[str, Any], changes: dict[str, Any]) -> P:
        try:
            validated: Any = self.parameters_type.model_validate({"kind": self.kind, **values, **changes})
        except ValidationError as error:
            first = error.errors()[0]
            pointer = "".join(f"/{part}" for part in ("features", *first["loc"]))
            raise ParameterError(f"{pointer}: {first['msg']}", pointer) from error
        else:
            return validated  # type: ignore[no-any-return]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the features on documents.

        Args:
            X: n documents, see :func:`~models.features.documents.as_documents`.
            y: their labels in any form; only a ``selection`` by labels needs them.

        Raises:
            ParameterError: the documents are of another kind, or the selection needs labels.
            UnsuitableDataError: the features cannot be fitted, for example because no term is left.
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Matrix:
        """Fit the features on documents, and return the vectors of these, (n, r), sparse.

        Args:
            X: as for ``fit``.
            y: as for ``fit``.
        """
        documents = self._documents(X)
        forget_columns(self)
        if isinstance(documents, FeatureRows):
            set_columns(self, X, documents)
        n = len(documents)
        if not n:
            raise ParameterError("X is empty; pass at least one document")
        Y = read_labels([()] * n if y is None else y, n)
        self._check_labels(Y)
        return self.fit_raw(self.read([read_documents(documents)]), Y)

    def transform(self, X: Any) -> Matrix:
        """Return the vectors of other documents, (n, r), sparse.

        Args:
            X: as for ``fit``.

        Raises:
            NotFittedError: the features are not fitted.
            ParameterError: the documents are of another kind.
        """
        self._check_fitted()
        documents = self._documents(X)
        if isinstance(documents, FeatureRows):
            documents = match_columns(self, X, documents, self.names_)
        return self.vectors(read_documents(documents))

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:  # noqa: ARG002 - see above
        """Return the names of the r features, ``names_``, as an array."""
        self._check_fitted()
        return np.array(self.names_, dtype=object)

    @abstractmethod
    def read(self, batches: Iterable[Any]) -> RawValues:
        """Return what the features of documents are computed from. Batches are read once."""

    @abstractmethod
    def fit_raw(self, raw: RawValues, Y: Labels, unknown: Labels | None = None) -> Matrix:
        """Fit the features on what ``read`` returned, and return the vectors."""

    @abstractmethod
    def vectors(self, documents: Any) -> Matrix:
        """Return the vectors of other documents, (n, r)."""

    def _check_labels(self, Y: Labels) -> None:
        """Check that there are labels if the features depend on them."""

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise UnfittedError("the features are not fitted; call fit first")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "names_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        numeric = self.kind == "numeric"
        tags.input_tags.sparse = tags.input_tags.two_d_array = numeric
        tags.input_tags.string = not numeric
        return tags

    def _documents(self, X: Any) -> FeatureRows | Sequence[Any]:
        documents = as_documents(X)
        if isinstance(documents, FeatureRows) != (self.kind == "numeric") and len(documents):
            given, other = (
                ("texts", "TextFeatures") if self.kind == "numeric" else ("numbers", "NumericFeatures")
            )
            raise ParameterError(
                f"{type(self).__name__} cannot convert {given}; use {other}", "/features/kind"
            )
        return documents

    @property
    def kind(self) -> str:
        """``text`` or ``numeric``."""
        annotation: Any = self.parameters_type.model_fields["kind"].annotation
        return str(annotation.__args__[0])

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's interface
        """Return the parameters by name."""
        return {name: value for name, value in self.parameters if name != "kind"}

    def set_params(self, **changes: Any) -> Self:
        """Change parameters. ``analyzer__stop_words`` changes one value of the parameter ``analyzer``.

        Raises:
            ParameterError: a parameter is unknown or out of range.
        """
        values: dict[str, Any] = {}
        for name, value in changes.items():
            outer, _, inner = name.partition("__")
            if inner:
                current = values.get(outer, getattr(self.parameters, outer, None))
                values[outer] = {**dict(current or {}), inner: value}
            else:
                values[name] = value
        self._configure(self._validated(dict(self.parameters), values))
        return self

    def __sklearn_clone__(self) -> Self:
        return type(self)(self.parameters)

    def __repr__(self) -> str:
        changed = ", ".join(
            f"{name}={value!r}"
            for name, value in self.parameters
            if name != "kind" and value != self.parameters_type.model_fields[name].default
        )
        return f"{type(self).__name__}({changed})"
