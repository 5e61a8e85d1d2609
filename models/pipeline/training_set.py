"""The examples of a training: their labels as matrices, and their features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from models.arrays import Floats, Ints, Labels, Matrix
from models.base import ValidationSet
from models.data.digests import document_groups
from models.data.examples import Documents, ExampleSource, FeatureRows
from models.features import NumericFeatures, TextFeatures
from models.features.columns import stack_rows
from models.features.documents import read_documents
from models.features.raw_values import RawValues
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels, indicator_matrix, unknown_matrix

Features: TypeAlias = TextFeatures | NumericFeatures


@dataclass(frozen=True)
class TrainingSet:
    """Labelled examples. Everything else about them is computed when it is first needed.

    Attributes:
        source: the g training examples.
        validation: m validation examples, for early stopping and for tuning a decision; None if there are
            none.
        tree: the label tree, or None. With a tree, an example of a label is also one of its ancestors.
        kept_labels: labels that belong to the training even if no example has them.
    """

    source: ExampleSource
    validation: ExampleSource | None = None
    tree: LabelTree | None = None
    kept_labels: Sequence[str] = ()

    @cached_property
    def label_sets(self) -> Sequence[tuple[str, ...]]:
        """The labels of each training example."""
        return self.source.label_sets()

    @cached_property
    def labels(self) -> list[str]:
        """The k labels, in label order."""
        return collect_labels(self.label_sets, self.tree, kept=self.kept_labels)

    @cached_property
    def parents(self) -> Ints | None:
        """(k,) the index of each label's parent, -1 for a root; None without a tree."""
        return None if self.tree is None else self.tree.parent_indices(self.labels)

    @cached_property
    def Y(self) -> Labels:  # noqa: N802 - the name of the papers
        """(g, k) the relevant labels."""
        return indicator_matrix(self.label_sets, self.labels, self.tree)

    @cached_property
    def unknown(self) -> Labels | None:
        """(g, k) the unknown labels; None if there are none."""
        return unknown_matrix(self.source.unknown_sets(), self.Y, self.labels, self.tree)

    @cached_property
    def weights(self) -> Floats | None:
        """(g,) the weights; None if all are 1."""
        return self.source.example_weights()

    @cached_property
    def groups(self) -> Ints:
        """(g,) the document of each training example."""
        return document_groups(self.source)

    def validation_set(self, X: Matrix) -> ValidationSet:
        """Return the validation examples with their features, (m, r)."""
        assert self.validation is not None, "there are validation examples"  # noqa: S101
        Y = indicator_matrix(self.validation.label_sets(), self.labels, self.tree)
        return ValidationSet(X, Y, unknown_matrix(self.validation.unknown_sets(), Y, self.labels, self.tree))


@dataclass(frozen=True)
class FeatureMatrices:
    """The features of a training set.

    Attributes:
        training: (g, r) the training examples.
        raw: what they are computed from, for the features of folds; None if it is not needed.
        validation: (m, r) the validation examples; None if there are none.
    """

    training: Matrix
    raw: RawValues | None = None
    validation: Matrix | None = None


DOCUMENTS_OF_A_STEP = 250
"""Number of documents that are read and counted between two reports."""


def _parts(documents: Documents) -> Iterator[Documents]:
    """Yield documents in parts. Numeric documents need no time, and stay together."""
    if isinstance(documents, FeatureRows):
        yield documents
        return
    for start in range(0, len(documents), DOCUMENTS_OF_A_STEP):
        yield documents[start : start + DOCUMENTS_OF_A_STEP]


def fit_features(
    features: Features,
    training: TrainingSet,
    on_read: Callable[[int], None],
    *,
    keep_raw: bool = True,
    with_validation: bool = True,
) -> FeatureMatrices:
    """Fit features on the training examples, and compute those of all examples.

    Args:
        features: the features.
        training: the examples.
        on_read: called with the number of training examples read so far.
        keep_raw: whether to keep what the features are computed from, which takes as much memory.
        with_validation: whether to compute the features of validation examples.

    Raises:
        UnsuitableDataError: the features cannot be fitted, for example because no term is left.
    """

    def documents() -> Iterator[Any]:
        n_read = 0
        for batch in training.source.batches():
            for part in _parts(batch.documents):
                yield read_documents(part)
                n_read += len(part)
                on_read(n_read)

    raw = features.read(documents())
    X = features.fit_raw(raw, training.Y, training.unknown)
    validation = None
    if with_validation and training.validation is not None and training.validation.n_examples:
        batches = training.validation.batches()
        parts = [features.vectors(read_documents(batch.documents)) for batch in batches]
        validation = stack_rows(parts, X.shape[1])
    return FeatureMatrices(X, raw if keep_raw else None, validation)
