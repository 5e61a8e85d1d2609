"""Labelled examples in memory, and the one way in which everything else reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any, Literal, Protocol, TypeAlias, cast

import numpy as np
from scipy.sparse import csr_array, vstack

from models.arrays import Bools, Matrix
from models.mail.email import Email

Kind: TypeAlias = Literal["text", "features", "email"]
Split: TypeAlias = Literal["train", "test"]


@dataclass(frozen=True)
class FeatureRows:
    """Numeric documents: rows of a sparse matrix whose columns have names.

    Attributes:
        names: r feature names.
        matrix: (n, r) values.
    """

    names: Sequence[str]
    matrix: Matrix

    def __len__(self) -> int:
        return int(self.matrix.shape[0])


Documents: TypeAlias = "Sequence[str] | Sequence[Email] | FeatureRows"


class ExampleSource(Protocol):
    """Examples that can be read again and again, a batch at a time, always in the same order.

    Attributes:
        kind: what its documents are.
        n_examples: how many there are.
    """

    @property
    def kind(self) -> Kind:
        """What its documents are."""
        ...

    @property
    def n_examples(self) -> int:
        """How many there are."""
        ...

    def batches(self) -> Iterator[Examples]:
        """The examples in their order, in batches that fit in memory."""
        ...

    def label_sets(self) -> list[tuple[str, ...]]:
        """The label set of every example; reads no documents."""
        ...

    def splits(self) -> list[Split | None]:
        """The split of every example, None where it has none; reads no documents."""
        ...

    def where(self, keep: Bools) -> ExampleSource:
        """Only the examples for which ``keep`` (n_examples booleans) is true."""
        ...


@dataclass(frozen=True)
class Examples:
    """A handful of examples in memory: a batch of a stored data set, or all of a small one.

    Attributes:
        kind: what the documents are; all are of one kind.
        documents: n documents.
        labels: for each the names of its relevant labels.
        ids: for each its id; running numbers where none are given.
        split_column: for each ``"train"``, ``"test"`` or None.
    """

    kind: Kind
    documents: Documents
    labels: Sequence[tuple[str, ...]]
    ids: Sequence[str] = ()
    split_column: Sequence[Split | None] = ()

    @property
    def n_examples(self) -> int:
        """How many examples there are."""
        return len(self.labels)

    def batches(self) -> Iterator[Examples]:
        """All of them, as one batch; none where there are no examples."""
        if self.n_examples:
            yield self

    def label_sets(self) -> list[tuple[str, ...]]:
        """The label set of every example."""
        return list(self.labels)

    def splits(self) -> list[Split | None]:
        """The split of every example, None where it has none."""
        return list(self.split_column) or [None] * self.n_examples

    def where(self, keep: Bools) -> Examples:
        """Only the examples for which ``keep`` (n_examples booleans) is true.

        Raises:
            ValueError: ``keep`` has another length.

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
        )

    @classmethod
    def concatenate(cls, batches: Sequence[Examples]) -> Examples:
        """Batches of one source as one.

        Args:
            batches: one batch or more, of one kind and, where they are numeric, with the same columns.
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
        )
