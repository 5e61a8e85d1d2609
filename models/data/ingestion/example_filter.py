"""Selects examples of stored data sets by their labels, ids, splits and texts."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from models.arrays import Bools
from models.data.examples import Documents, Examples, FeatureRows, Split
from models.data.record import join_first
from models.mail.reader import read_email


@dataclass(frozen=True)
class ExampleFilter:
    """Conditions on an example. An example is kept if it meets all of them.

    Attributes:
        labels: it has at least one of these labels; None for no condition.
        without_labels: it has none of these labels.
        ids: its id is one of these; None for no condition.
        without_ids: its id is none of these.
        splits: its split is one of these, where None stands for no split; None for no condition.
        labelled: whether it has a label; None for no condition.
        with_text: whether its document has content: a text, a subject or text of an e-mail, or a feature
            other than 0; None for no condition.
    """

    labels: AbstractSet[str] | None = None
    without_labels: AbstractSet[str] = frozenset()
    ids: AbstractSet[str] | None = None
    without_ids: AbstractSet[str] = frozenset()
    splits: AbstractSet[Split | None] | None = None
    labelled: bool | None = None
    with_text: bool | None = None


class FilterRun:
    """Applies a filter to the batches of data sets, and notes which of its names occur.

    Args:
        conditions: the filter.
    """

    def __init__(self, conditions: ExampleFilter) -> None:
        self._conditions = conditions
        self._labels = conditions.without_labels | (conditions.labels or frozenset())
        self._ids = conditions.without_ids | (conditions.ids or frozenset())
        self._absent_labels = set(self._labels)
        self._absent_ids = set(self._ids)

    @property
    def needs_documents(self) -> bool:
        """Whether the batches must contain the documents."""
        return self._conditions.with_text is not None

    def keeps(self, batch: Examples) -> Bools:
        """Return for each example of a batch whether it is kept, (n_examples,)."""
        conditions = self._conditions
        keep = np.ones(batch.n_examples, dtype=np.bool_)
        splits = batch.splits()
        for i, (id_, labels) in enumerate(zip(batch.ids, batch.labels, strict=True)):
            self._absent_ids.discard(id_)
            if self._absent_labels:
                self._absent_labels.difference_update(labels)
            keep[i] = (
                (conditions.labels is None or not conditions.labels.isdisjoint(labels))
                and conditions.without_labels.isdisjoint(labels)
                and (conditions.ids is None or id_ in conditions.ids)
                and id_ not in conditions.without_ids
                and (conditions.splits is None or splits[i] in conditions.splits)
                and (conditions.labelled is None or conditions.labelled == bool(labels))
            )
        if conditions.with_text is not None:
            for i in np.flatnonzero(keep).tolist():
                keep[i] = _has_content(batch.documents, i) == conditions.with_text
        return keep

    def warnings(self) -> Iterator[str]:
        """Yield which labels and ids of the filter no example has."""
        for names, what in ((self._absent_labels, "labels"), (self._absent_ids, "ids")):
            if names:
                yield f"{what} in the filter that no example has: {join_first(sorted(names))}"


def _has_content(documents: Documents, i: int) -> bool:
    if isinstance(documents, FeatureRows):
        start, end = documents.matrix.indptr[i : i + 2]
        return bool(documents.matrix.data[start:end].any())
    document = documents[i]
    if isinstance(document, str):
        return bool(document) and not document.isspace()
    mail = read_email(document)
    return any(map(str.strip, (mail.subject, mail.new_text, mail.quoted_text)))
