"""What is refused, in words that say what to pass instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array

import covey
from covey import errors

TEXTS = ["the invoice is wrong", "my parcel is late", "a late parcel"] * 3
SETS = [("billing",), ("shipping",), ("billing", "shipping")] * 3
CLASSES = ["billing", "shipping", "shipping"] * 3
NUMBERS = np.random.default_rng(0).random((9, 3))


class Frame:
    """A data frame, as far as the library needs one."""

    def __init__(self, **columns: Any) -> None:
        self.columns = list(columns)
        self.values = np.array(list(columns.values()), dtype=object).T
        self.shape, self.ndim = self.values.shape, 2
        self._columns = columns

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values, dtype=dtype)

    def __getitem__(self, name: str) -> Any:
        return np.array(self._columns[name], dtype=object)

    def __len__(self) -> int:
        return len(self.values)


DOCUMENTS: dict[str, tuple[Callable[[], Any], str]] = {
    "None first": (
        lambda: [None, *TEXTS[1:]],
        r"document 0 is missing \(None\); leave it out, or pass an empty",
    ),
    "None": (lambda: [*TEXTS[:8], None], r"document 8 is missing \(None\)"),
    "NaN": (lambda: np.array([*TEXTS[:8], np.nan], dtype=object), r"document 8 is missing \(nan\)"),
    "frame of one column": (lambda: Frame(text=TEXTS), r"pass the column, such as df\['text'\]"),
    "frame": (
        lambda: Frame(n=[1] * 9, body=TEXTS),
        r"such as df\['body'\], or for several columns a list of covey",
    ),
    "array of texts": (lambda: np.array([TEXTS]).T, "X is a table of texts; pass one column"),
    "words": (lambda: [text.split() for text in TEXTS], "document 0 is a list of texts; join"),
    "bytes": (lambda: [text.encode() for text in TEXTS], "document 0 is of the type bytes; decode it"),
    "number": (
        lambda: [3, *TEXTS[1:]],
        "document 1 is of the type str, but the first one is of the type int",
    ),
    "generator": (lambda: (text for text in TEXTS), "an iterator can be read only once"),
    "dict": (lambda: dict.fromkeys(TEXTS), "pass a list of documents; X is a dict"),
    "set": (lambda: set(TEXTS), "pass a list of documents; X is a set"),
    "fewer": (lambda: TEXTS[:3], "X has 3 documents, but y has 9; the numbers must be equal"),
    "none": (list, "X is empty|X has 0 documents, but y has 9"),
}


@pytest.mark.parametrize("create", [covey.Pipeline, covey.TextFeatures])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_are_no_documents_is_named(name: str, create: Any) -> None:
    documents, message = DOCUMENTS[name]
    with pytest.raises(ValueError, match=message):
        create().fit(documents(), CLASSES)


@pytest.mark.parametrize("name", ["None", "bytes", "words", "frame", "generator", "dict"])
def test_what_are_no_documents_is_named_in_predictions_too(name: str) -> None:
    documents, message = DOCUMENTS[name]
    fitted = covey.Pipeline(covey.TextFeatures(), covey.SVM(), "sign").fit(TEXTS, CLASSES)
    with pytest.raises(errors.ParameterError, match=message):
        fitted.predict(documents())


LABELS: dict[str, tuple[Callable[[], Any], str]] = {
    "NaN": (
        lambda: [*CLASSES[:8], float("nan")],
        r"position 8 of y is missing \(nan\); leave the document out",
    ),
    "None": (lambda: [*CLASSES[:8], None], r"position 8 of y is missing \(None\)"),
    "NaN of a column": (
        lambda: np.array([*CLASSES[:8], np.nan], dtype=object),
        r"position 8 of y is missing",
    ),
    "NaN of numbers": (lambda: np.array([0.0, 1, 2, 0, 1, 2, 0, 1, np.nan]), r"position 8 of y is missing"),
    "bytes": (lambda: [name.encode() for name in CLASSES], "position 0 of y is of the type bytes; decode it"),
    "empty": (list, "y is empty"),
    "dict": (lambda: dict.fromkeys(TEXTS), "pass y as a list in the order of the documents; it is a dict"),
    "set": (lambda: set(CLASSES), "pass y as a list in the order of the documents; it is a set"),
    "generator": (lambda: (name for name in CLASSES), "pass y as a list; an iterator can be read only once"),
    "text": (lambda: "billing", "y is a single text"),
    "fewer": (lambda: CLASSES[:4], "has 9 .* y has 4|X has 9 rows and Y has 4"),
    "fewer rows": (lambda: np.eye(4, dtype=int), "has 9 .* y has 4|X has 9 rows and Y has 4"),
    "numbers of labels": (lambda: [(1,), (2, 3), ()] * 3, "rows of different lengths"),
    "names and numbers": (lambda: [("a", 1)] * 9, "labels are names, but some are of the type int"),
    "sparse vector": (lambda: coo_array(np.array([0, 1, 1] * 3)), r"y has the shape \(9,\)"),
    "cube": (lambda: np.zeros((9, 2, 2)), r"y has the shape \(9, 2, 2\)"),
    "table of texts": (lambda: Frame(label=CLASSES), "y is a table of texts; pass a column of classes"),
}


@pytest.mark.parametrize(
    ("create", "X"),
    [
        (covey.Pipeline, TEXTS),
        (lambda: covey.TextFeatures(selection={"kind": "rocchio"}), TEXTS),
        (covey.SVM, NUMBERS),
        (covey.MMP, NUMBERS),
    ],
    ids=["pipeline", "features", "svm", "mmp"],
)
@pytest.mark.parametrize("name", LABELS)
def test_what_are_no_labels_is_named(name: str, create: Any, X: Any) -> None:
    labels, message = LABELS[name]
    with pytest.raises(ValueError, match=message):
        create().fit(X, labels())


@pytest.mark.parametrize("learner", [covey.SVM(), covey.MMP()])
def test_a_learner_alone_says_what_to_use_for_label_sets_and_texts(learner: Any) -> None:
    name = type(learner).__name__
    with pytest.raises(
        errors.ParameterError, match=rf"use covey.Pipeline\(learner=covey.{name}\(\)\), or pass"
    ):
        learner.fit(NUMBERS, SETS)
    for texts in (TEXTS, Frame(text=TEXTS), np.array(TEXTS)):
        with pytest.raises(errors.ParameterError, match=r"make_pipeline\(covey.TextFeatures\(\), …\)"):
            learner.fit(texts, CLASSES)
    no_matrices: list[Any] = [{}, set(TEXTS), iter(NUMBERS)]
    for X in no_matrices:
        with pytest.raises(errors.ParameterError, match="pass X as a matrix of numbers"):
            learner.fit(X, CLASSES)
    with pytest.raises(errors.ParameterError, match="X is empty"):
        learner.fit([], CLASSES)


def test_further_training_says_what_to_use_for_label_sets() -> None:
    with pytest.raises(errors.ParameterError, match=r"use covey.Pipeline\(learner=covey.MMP\(\)\)"):
        covey.MMP().partial_fit(NUMBERS, SETS)
