"""Labelled examples in memory, and the interface through which all code reads examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

import numpy as np
from scipy.sparse import csr_array, vstack

from models.arrays import Bools, Floats, Ints, Matrix
from models.data.digests import digest_of, digests_of_rows
from models.mail.email import Email

Kind: TypeAlias = Literal["text", "features", "email"]
Split: TypeAlias = Literal["train", "validation", "test"]
SelectedBy: TypeAlias = Literal["sample", "doubt", "fallback", "volunteered"]
"""Why people labelled a message that a version had decided on: it was drawn at random; the version was not
sure; the version did not decide; or a person did so unasked, mostly because of an error."""


@dataclass(frozen=True)
class FeatureRows:
    """Numeric documents: the rows of a sparse matrix with named columns.

    Attributes:
        names: r feature names.
        matrix: (n, r) values.

    >>> len(FeatureRows(["height", "width"], csr_array([[1.0, 2.0], [0.0, 3.0]])))
    2
    """

    names: Sequence[str]
    matrix: Matrix

    def __len__(self) -> int:
        return int(self.matrix.shape[0])


Documents: TypeAlias = "Sequence[str] | Sequence[Email] | FeatureRows"


class ExampleSource(Protocol):
    """Examples that can be read repeatedly, batch by batch, always in the same order.

    Attributes:
        kind: kind of the documents.
        n_examples: number of examples.
    """

    @property
    def kind(self) -> Kind:
        """Kind of the documents."""
        ...

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        ...

    def batches(self) -> Iterator[Examples]:
        """Yield the examples in order, in batches that fit in memory."""
        ...

    def label_sets(self) -> list[tuple[str, ...]]:
        """Return the label set of every example without reading the documents."""
        ...

    def unknown_sets(self) -> list[tuple[str, ...]]:
        """Return the unknown labels of every example without reading the documents.

        They are the labels of which it is not known whether they apply. They are never in the label set.
        """
        ...

    def splits(self) -> list[Split | None]:
        """Return the split of every example (None if it has none) without reading the documents."""
        ...

    def example_weights(self) -> Floats | None:
        """Return the weight of every example, (n_examples,), without reading the documents.

        A weight states how much the example counts in a training: 2 as much as two equal examples. None if
        all weights are 1.
        """
        ...

    def document_digests(self) -> Ints:
        """Return a digest of every document, (n_examples,); see :mod:`models.data.digests`."""
        ...

    def where(self, keep: Bools) -> ExampleSource:
        """Return only the examples for which ``keep`` (n_examples booleans) is true."""
        ...


@dataclass(frozen=True)
class Examples:
    """Examples in memory: a batch of a stored data set, or a whole small data set.

    Attributes:
        kind: kind of the documents; all are of the same kind.
        documents: n documents.
        labels: for each document, the names of its relevant labels.
        ids: for each document, its id; may be empty.
        split_column: for each document, ``"train"``, ``"validation"``, ``"test"`` or None; may be empty.
        unknown: for each document, the labels of which it is not known whether they apply; may be empty.
        weights: for each document, how much it counts in a training; may be empty if all weights are 1.
        fold_column: for each document, its fold or None; may be empty.
        selected_by_column: for each document, what selected it for a review, or None; may be empty.

    >>> Examples("text", ["a bill", "a late parcel"], [("billing",), ("shipping",)]).n_examples
    2
    """

    kind: Kind
    documents: Documents
    labels: Sequence[tuple[str, ...]]
    ids: Sequence[str] = ()
    split_column: Sequence[Split | None] = ()
    unknown: Sequence[tuple[str, ...]] = ()
    weights: Sequence[float] = ()
    fold_column: Sequence[int | None] = ()
    selected_by_column: Sequence[SelectedBy | None] = ()

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.labels)

    def batches(self) -> Iterator[Examples]:
        """Yield all examples as one batch, or nothing if there are none."""
        if self.n_examples:
            yield self

    def label_sets(self) -> list[tuple[str, ...]]:
        """Return the label set of every example."""
        return list(self.labels)

    def unknown_sets(self) -> list[tuple[str, ...]]:
        """Return the unknown labels of every example."""
        return list(self.unknown) or [()] * self.n_examples

    def splits(self) -> list[Split | None]:
        """Return the split of every example; None if it has none."""
        return list(self.split_column) or [None] * self.n_examples

    def example_weights(self) -> Floats | None:
        """Return the weight of every example, (n_examples,); None if all weights are 1."""
        weights = np.array(self.weights, dtype=np.float64)
        return weights if (weights != 1.0).any() else None

    def document_digests(self) -> Ints:
        """Return a digest of every document, (n_examples,); see :mod:`models.data.digests`.

        >>> first, second, third = Examples("text", ["a", "b", "a"], [("x",), (), ()]).document_digests()
        >>> bool(first == third), bool(first == second)
        (True, False)
        """
        if isinstance(self.documents, FeatureRows):
            return digests_of_rows(self.documents.names, self.documents.matrix)
        return np.fromiter(map(digest_of, self.documents), dtype=np.int64, count=self.n_examples)

    def folds(self) -> list[int | None]:
        """Return the fold of every example; None if it has none."""
        return list(self.fold_column) or [None] * self.n_examples

    def selections(self) -> list[SelectedBy | None]:
        """Return what selected every example for a review; None for an example that no decision selected."""
        return list(self.selected_by_column) or [None] * self.n_examples

    def where(self, keep: Bools) -> Examples:
        """Return only the examples for which ``keep`` (n_examples booleans) is true.

        Raises:
            ValueError: ``keep`` does not have the shape (n_examples,).

        >>> import numpy as np
        >>> both = Examples("text", ["a bill", "a fault"], [("billing",), ()])
        >>> both.where(np.array([False, True])).documents
        ['a fault']
        """
        keep = np.asarray(keep, dtype=np.bool_)
        if keep.shape != (self.n_examples,):
            raise ValueError(f"keep has shape {keep.shape}; there are {self.n_examples} examples")
        if isinstance(self.documents, FeatureRows):
            documents: Documents = FeatureRows(
                self.documents.names, self.documents.matrix[np.flatnonzero(keep)]
            )
        else:
            documents = cast("Sequence[str]", list(compress(self.documents, keep)))
        return Examples(
            kind=self.kind,
            documents=documents,
            labels=list(compress(self.labels, keep)),
            ids=list(compress(self.ids, keep)),
            split_column=list(compress(self.split_column, keep)),
            unknown=list(compress(self.unknown, keep)),
            weights=list(compress(self.weights, keep)),
            fold_column=list(compress(self.fold_column, keep)),
            selected_by_column=list(compress(self.selected_by_column, keep)),
        )

    @classmethod
    def concatenate(cls, batches: Sequence[Examples]) -> Examples:
        """Concatenate batches of one source.

        Args:
            batches: at least one batch; all of the same kind and, if numeric, with the same columns.
        """
        first = batches[0]
        if isinstance(first.documents, FeatureRows):
            parts = [batch.documents.matrix for batch in batches if isinstance(batch.documents, FeatureRows)]
            documents: Documents = FeatureRows(first.documents.names, csr_array(vstack(parts, format="csr")))
        else:
            documents = cast(
                "Sequence[str]", list(chain.from_iterable(cast("Any", b.documents) for b in batches))
            )
        return cls(
            kind=first.kind,
            documents=documents,
            labels=[labels for batch in batches for labels in batch.labels],
            ids=[id_ for batch in batches for id_ in batch.ids],
            split_column=[split for batch in batches for split in batch.splits()],
            unknown=(
                [names for batch in batches for names in batch.unknown_sets()]
                if any(batch.unknown for batch in batches)
                else ()
            ),
            weights=(
                [weight for batch in batches for weight in batch.weights or [1.0] * batch.n_examples]
                if any(batch.weights for batch in batches)
                else ()
            ),
            fold_column=(
                [fold for batch in batches for fold in batch.folds()]
                if any(batch.fold_column for batch in batches)
                else ()
            ),
            selected_by_column=(
                [selected_by for batch in batches for selected_by in batch.selections()]
                if any(batch.selected_by_column for batch in batches)
                else ()
            ),
        )


FAIR_SELECTIONS: Final[frozenset[SelectedBy | None]] = frozenset({None, "sample"})
"""What selects examples for a test that can decide between versions; see :func:`is_fair_test`."""


def is_fair_test(selections: Sequence[SelectedBy | None]) -> Bools:
    """Return which examples can decide between versions, (n,).

    A version errs more often on the messages that it doubted, or that people corrected, than another
    version that is equally good on the whole: the selection and the errors have the same cause. So these
    messages would always speak for the other version (regression to the mean). Only messages that were
    selected without regard to a decision are a fair test.

    Args:
        selections: what selected each example for a review; None for one that no decision selected.

    >>> is_fair_test(["sample", "doubt", None, "volunteered"]).tolist()
    [True, False, True, False]
    """
    return np.array([selected_by in FAIR_SELECTIONS for selected_by in selections], dtype=np.bool_)
