"""The forms in which a caller states labels. Predictions have the same form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets

from models.arrays import AnyArray, Bools, Floats, Ints
from models.base.validation import as_label_matrix
from models.errors import ParameterError
from models.labels.indicator_matrix import indicator_matrix
from models.measures.sets import wrong_labels
from models.pipeline.inputs import numbered


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
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {n} documents, "
                f"but y has {len(found)}"
            )
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
        ParameterError: ``y`` is a single text, or a mixture.

    >>> form_of([("a", "b"), ()]), form_of([[1, 0], [0, 1]]), form_of(["ham", "spam"])
    ('sets', 'matrix', 'classes')
    """
    if isinstance(y, str):
        raise ParameterError("y is a single text; pass the labels of each document")
    if sparse.issparse(y) or getattr(y, "ndim", 1) == 2:
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
    first = next((item for collection in collections for item in collection), "")
    return "sets" if isinstance(first, str) else "matrix"


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
        values = np.asarray(y)
        assert_all_finite(values, input_name="y")
        check_classification_targets(values)
        classes: AnyArray = np.unique(values)
        if len(classes) < 2:
            raise ValueError(f"y has {len(classes)} class; a classifier needs at least two classes")
        names = [str(value) for value in classes.tolist()]
    else:
        names = list(getattr(y, "columns", ()))
        n = as_label_matrix(y).shape[1]
        classes = np.array(names) if names else np.arange(n)
        if not all(isinstance(name, str) for name in names) or not names:
            names = numbered(n)
    if len(set(names)) < len(names):
        raise ParameterError("two labels have the same name; rename one of them")
    return Target(form, names, classes)


def exactly_right(target: Target, y: Any, predicted: Any, n: int) -> Bools:
    """Return (n,) whether each predicted label set or class equals the true one."""
    true = target.label_sets(y, n)
    found = target.label_sets(predicted, n) if n else []
    labels = sorted({name for names in (*true, *found) for name in names})
    return np.asarray(wrong_labels(indicator_matrix(true, labels), indicator_matrix(found, labels)) == 0)
