"""Labelled examples in memory, and the one way in which everything else reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, Self, TypeAlias

import numpy as np

from models.arrays import Bools, Labels, Matrix
from models.mail.source import Email

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
    def kind(self) -> Kind: ...

    @property
    def n_examples(self) -> int: ...

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
        given_splits: for each ``"train"``, ``"test"`` or None.
    """

    kind: Kind
    documents: Documents
    labels: Sequence[tuple[str, ...]]
    ids: Sequence[str] = ()
    given_splits: Sequence[Split | None] = ()

    @property
    def n_examples(self) -> int:
        """How many examples there are."""
        return len(self.labels)
