"""The forms in which a caller states labels. Predictions have the same form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets

from models.arrays import AnyArray, Bools, Floats, Ints, Labels
from models.base.column_names import numbered
from models.base.validation import as_classes, as_label_matrix
from models.errors import ParameterError
from models.labels.indicator_matrix import collect_labels, indicator_matrix


@dataclass(frozen=True)
class Target:
    """How labels are stated.

    Attributes:
        form: ``sets`` for one collection of label names per example, ``matrix`` for an (n, k) matrix of 0 and
            1, or ``classes`` for one class per example.
        names: the label name of each column or class; empty for ``sets``.
        classes: (k,) the columns or classes; empty for ``sets``.
    """

    form: Literal["sets", "matrix", "classes"]
    names: Sequence[str]
    classes: AnyArray

    @classmethod
    def of_columns(cls, form: Literal["matrix", "classes"], classes: AnyArray) -> Target:
        """Return the target of columns or classes. Their labels have their names; other columns are numbered.

        Raises:
            ParameterError: two columns or classes have the same name.
        """
        values = classes.tolist()
        named = form == "classes" or all(isinstance(value, str) for value in values)
        names = [str(value) for value in values] if named else numbered(len(values))
        if len(set(names)) < len(names):
            raise ParameterError("two labels have the same name; rename one of them")
        return cls(form, names, classes)

    def classes_among(self, labels: Sequence[str]) -> AnyArray:
        """Return the columns or classes; the labels of a pipeline as an array if there are label sets."""
        return np.array(labels) if self.form == "sets" else self.classes

    def label_sets(self, y: Any, n: int) -> list[tuple[str, ...]]:
        """Return the label set of each of n examples.

        Raises:
            ValueError: ``y`` is for another number of examples, has another number of columns, or is of
                another form.
        """
        if form_of(y) != self.form:
            raise ValueError(f"y must have the form of the training, which was {_FORMS[self.form]}")
        if self.form == "sets":
            found = [tuple(sorted(set(names))) for names in y]
        elif self.form == "classes":
            of_class = dict(zip(self.classes.tolist(), self.names, strict=True))
            # A class that training did not see is a label of its own, which is never predicted.
            found = [(of_class.get(value, str(value)),) for value in np.asarray(y).tolist()]
        else:
            matrix = as_label_matrix(y)
            if matrix.shape[1] != len(self.names):
                raise ValueError(f"y has {matrix.shape[1]} columns, but there are {len(self.names)} labels")
            ends = zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True)
            columns = matrix.indices.tolist()
            found = [tuple(sorted(self.names[j] for j in columns[start:end])) for start, end in ends]
        if len(found) != n:
            raise ValueError(f"X has {n} documents, but y has {len(found)}; the numbers must be equal")
        return found

    def columns(self, labels: Sequence[str]) -> Ints:
        """Return the index of the label of each column or class among the labels of a pipeline."""
        if self.form == "sets":
            return np.arange(len(labels))
        index = {label: j for j, label in enumerate(labels)}
        return np.array([index[name] for name in self.names], dtype=np.int64)

    def arranged(self, predicted: Bools, scores: Floats, labels: Sequence[str]) -> Any:
        """Return predictions in the form of the target.

        Args:
            predicted: (n, k) the predicted labels.
            scores: (n, k) their scores, which select the class.
            labels: the k labels.
        """
        if self.form == "sets":
            return [tuple(labels[j] for j in np.flatnonzero(row).tolist()) for row in predicted]
        if self.form == "matrix":
            return predicted.astype(np.int64)
        return self.classes[scores.argmax(axis=1)]


SETS = Target("sets", (), np.empty(0))
_FORMS = {
    "sets": "one collection of label names per example",
    "matrix": "an (n, k) matrix of 0 and 1",
    "classes": "one class per example",
}


def form_of(y: Any) -> Literal["sets", "matrix", "classes"]:
    """Return the form of labels.

    Raises:
        ParameterError: ``y`` is a single text, no list, or a mixture, or a label is no text.

    >>> form_of([("a", "b"), ()]), form_of([[1, 0], [0, 1]]), form_of(["ham", "spam"])
    ('sets', 'matrix', 'classes')
    """
    if isinstance(y, str | bytes):
        raise ParameterError("y is a single text; pass the labels of each document")
    if isinstance(y, Iterator):
        raise ParameterError("pass y as a list; an iterator can be read only once")
    if isinstance(y, Mapping | AbstractSet) and not sparse.issparse(y):
        raise ParameterError(f"pass y as a list in the order of the documents; it is a {type(y).__name__}")
    shape = getattr(y, "shape", (0,))
    if len(shape) > 2 or (sparse.issparse(y) and len(shape) != 2):
        raise ParameterError(f"y has the shape {shape}; pass an (n, k) matrix of 0 and 1, or one class each")
    if len(shape) == 2:
        return "matrix"
    if not isinstance(y, Iterable):
        y = np.asarray(y)
    values = np.asarray(y, dtype=object).ravel().tolist() if hasattr(y, "ndim") else list(y)
    collections = [
        value for value in values if isinstance(value, list | tuple | set | frozenset | np.ndarray)
    ]
    if not collections:
        return "classes"
    if len(collections) < len(values):
        raise ParameterError(
            "the labels of some documents are a collection, and those of others are not; write one label as "
            "a list, too, and no label as an empty list"
        )
    kinds = {type(item) for collection in collections for item in collection}
    if any(issubclass(kind, str) for kind in kinds) or not kinds:
        if others := sorted(kind.__name__ for kind in kinds if not issubclass(kind, str)):
            raise ParameterError(f"labels are names, but some are of the type {others[0]}; pass texts only")
        return "sets"
    if len({len(collection) for collection in collections}) > 1:
        raise ParameterError(
            "y has rows of different lengths; pass an (n, k) matrix of 0 and 1, or the names of the labels "
            "as texts"
        )
    return "matrix"


def read_target(y: Any) -> Target:
    """Return how the labels of a training are stated.

    Raises:
        ValueError: there are fewer than two classes, or ``y`` has NaN or continuous values.
        ParameterError: two classes or columns have the same name.
    """
    form = form_of(y)
    if form == "sets":
        return SETS
    if form == "classes":
        values = as_classes(y)
        check_classification_targets(values)
        classes: AnyArray = np.unique(values)
        if len(classes) < 2:
            raise ValueError(f"y has {len(classes)} class; a classifier needs at least two classes")
    else:
        columns = list(getattr(y, "columns", ()))
        classes = np.array(columns) if columns else np.arange(as_label_matrix(y).shape[1])
    return Target.of_columns(form, classes)


def read_labels(y: Any, n: int) -> Labels:
    """Return the labels of n examples in any form as a matrix of 0 and 1, for what depends on labels only.

    Raises:
        ValueError: as for ``read_target`` and ``Target.label_sets``.
    """
    target = read_target(y)
    sets = target.label_sets(y, n)
    return as_label_matrix(y) if target.form == "matrix" else indicator_matrix(sets, collect_labels(sets))
