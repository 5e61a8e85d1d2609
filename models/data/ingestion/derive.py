"""Makes a data set from stored ones: appends them, selects examples and changes labels.

Memory does not grow with the documents. The ids and labels are read first, one row group at a time, to find
the examples to keep. Then the kept examples are read and written, one row group at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from models.arrays import Bools
from models.data.ingestion.example_filter import ExampleFilter, FilterRun
from models.data.ingestion.ingest import store_items
from models.data.ingestion.label_changes import LabelChanges
from models.data.ingestion.report import DatasetReport
from models.data.ingestion.stored_records import stored_records
from models.data.ingestion.string_set import CompactStringSet
from models.data.limits import IngestLimits
from models.data.record import Declarations, Items, quoted
from models.data.store import StoredExamples
from models.errors import BadDataError
from models.labels import LabelTree

RepeatedIds: TypeAlias = Literal["error", "last", "renumber"]
"""What happens if two sources have an example with the same id."""

Progress: TypeAlias = Callable[[int, int], None]
"""Receives the number of examples so far, and of all examples. An exception that it raises stops the work."""


@dataclass(frozen=True)
class Source:
    """A stored data set to read.

    Attributes:
        name: its name in errors, such as ``data set ds_1``.
        examples: its examples.
        filtered: whether the filter applies to it.
    """

    name: str
    examples: StoredExamples
    filtered: bool = True


@dataclass(frozen=True)
class SourceCounts:
    """How many examples of a source were used, filtered and replaced.

    Attributes:
        n_examples: number of its examples.
        n_filtered: number of examples that the filter did not keep.
        n_replaced: number of examples that an example of a later source with the same id replaced.
    """

    n_examples: int
    n_filtered: int
    n_replaced: int

    @property
    def n_used(self) -> int:
        """Number of examples in the new data set."""
        return self.n_examples - self.n_filtered - self.n_replaced


def derive(
    sources: Sequence[Source],
    target: Path,
    *,
    filter: ExampleFilter | None = None,  # noqa: A002 - the name in the HTTP API
    repeated_ids: RepeatedIds = "error",
    tree: LabelTree | None = None,
    limits: IngestLimits | None = None,
    changes: LabelChanges | None = None,
    progress: Progress | None = None,
) -> tuple[DatasetReport, list[SourceCounts]]:
    """Make a data set from the examples of other ones, in their order.

    Args:
        sources: the data sets to append to each other, at least one.
        target: the Parquet file to create.
        filter: the examples to keep, by their labels before the changes; None keeps all.
        repeated_ids: ``error`` rejects an id that two sources have, ``last`` keeps the example of the last
            source that has it, and ``renumber`` gives every example its running number as its id.
        tree: the label tree; every label set also gets the ancestors of its labels.
        limits: limits on the content; None means the defaults.
        changes: labels to rename, remove or merge; None keeps them as they are.
        progress: receives the progress after each row group.

    Returns:
        The counts and warnings of the data set, and the counts of each source.

    Raises:
        BadDataError: no example is left, two sources have the same id, or the sources are of different kinds.
    """
    run = None if filter is None else FilterRun(filter)
    total = sum(source.examples.n_examples for source in sources)
    report_progress = progress or (lambda _done, _total: None)
    selections = _select(sources, run, repeated_ids, lambda: report_progress(0, total))
    counts = [selection.counts() for selection in selections]
    n_used = sum(count.n_used for count in counts)
    if not n_used:
        raise BadDataError("no example meets the conditions of the filter; a data set needs at least one")

    def items() -> Items:
        for selection in selections:
            yield Declarations(
                labels=sorted(selection.unused_labels), features=selection.source.examples.feature_names
            )
        yield Declarations(warnings=[] if run is None else list(run.warnings()))
        line = 1
        for selection in selections:
            for batch in selection.kept().batches():
                for record in stored_records(batch, line):
                    if repeated_ids == "renumber":
                        record.id = None
                    yield record
                line += batch.n_examples
                report_progress(line - 1, n_used)

    return store_items(items(), target, tree=tree, limits=limits, changes=changes), counts


def _select(
    sources: Sequence[Source], run: FilterRun | None, repeated_ids: RepeatedIds, progress: Callable[[], None]
) -> list[_Selection]:
    """Find the examples to keep of each source."""
    selections: list[_Selection] = []
    for source in reversed(sources):  # so that the ids of later sources are known
        selection = _Selection(source, run if source.filtered else None, selections, repeated_ids)
        for _ in selection.run():
            progress()
        selections = [selection, *selections]
    return selections


class _Selection:
    """The examples to keep of one source.

    Args:
        source: the source.
        filter_run: the filter; None keeps all.
        later: the selections of the later sources.
        repeated_ids: what to do with ids that a later source has, too.

    Attributes:
        ids: the ids of the examples to keep.
        unused_labels: the labels that no example of the source has.
    """

    def __init__(
        self,
        source: Source,
        filter_run: FilterRun | None,
        later: Sequence[_Selection],
        repeated_ids: RepeatedIds,
    ) -> None:
        self.source = source
        self.ids = CompactStringSet()
        self.unused_labels = set(source.examples.labels)
        self._filter_run = filter_run
        self._later = later
        self._repeated_ids = repeated_ids
        self._n_filtered = self._n_replaced = 0
        self._keep = np.ones(source.examples.n_examples, dtype=np.bool_)

    def run(self) -> Iterator[None]:
        """Decide on one row group after the other."""
        examples, filter_run = self.source.examples, self._filter_run
        with_documents = filter_run is not None and filter_run.needs_documents
        start = 0
        for batch in examples.batches() if with_documents else examples.outlines():
            keep = self._keep[start : start + batch.n_examples]
            start += batch.n_examples
            if filter_run is not None:
                keep[:] = filter_run.keeps(batch)
                self._n_filtered += int((~keep).sum())
            if self._repeated_ids != "renumber":
                self._drop_repeated(batch.ids, keep)
            if self.unused_labels:
                self.unused_labels.difference_update(*batch.labels, *batch.unknown_sets())
            yield

    def _drop_repeated(self, ids: Sequence[str], keep: Bools) -> None:
        for i in np.flatnonzero(keep).tolist():
            other = next((each.source.name for each in self._later if ids[i] in each.ids), None)
            if other is None:
                self.ids.add(ids[i])
            elif self._repeated_ids == "last":
                keep[i] = False
                self._n_replaced += 1
            else:
                raise BadDataError(
                    f"{self.source.name} and {other} both have an example with the id {quoted(ids[i])}; set "
                    "repeated_ids to last to keep the later example, or to renumber to keep both with new ids"
                )

    def kept(self) -> StoredExamples:
        """Return the examples to keep."""
        return self.source.examples if self._keep.all() else self.source.examples.where(self._keep)

    def counts(self) -> SourceCounts:
        """Return how many examples were used, filtered and replaced."""
        return SourceCounts(self.source.examples.n_examples, self._n_filtered, self._n_replaced)
