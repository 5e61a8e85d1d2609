"""From the bytes of a file to a stored data set and its report, in one pass and in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, Protocol

from models.data.ingestion.report import DatasetReport, ReportBuilder
from models.data.ingestion.string_set import CompactStringSet
from models.data.limits import IngestLimits
from models.data.readers.input_file import InputFile, open_input_file
from models.data.readers.options import FormatOptions
from models.data.readers.registry import FORMATS, detect
from models.data.record import Declarations, Item, Record, RecordError
from models.data.store import DatasetWriter
from models.errors import BadDataError, BadRecord, ParameterError
from models.labels import LabelTree

MAX_REPORTED_RECORDS = 20
"""How many refused records are told; reading goes on until that many are found."""


class ExampleSink(Protocol):
    """Where examples go."""

    def append(self, record: Record, id_: str, labels: list[str], /) -> None:
        """Take one example with its id and its closed label set, in label order."""
        ...


def ingest(
    stream: BinaryIO,
    format: str | None,  # noqa: A002 - the contract's own word
    target: Path,
    *,
    tree: LabelTree | None = None,
    options: FormatOptions | None = None,
    limits: IngestLimits | None = None,
    max_bad_records: int = 0,
    progress: Callable[[int], None] | None = None,
) -> DatasetReport:
    """Read a file into a data set.

    The stream is read once, decompressed on the way where it is gzip or zstd. The target appears when the
    whole file has been read and found good, or not at all.

    Args:
        stream: the file's bytes.
        format: its format, a key of ``FORMATS``; None tells it from the content.
        target: the Parquet file to make, for :class:`~models.data.store.StoredExamples`.
        tree: the label tree; label sets are closed under its ancestors.
        options: of the format; its defaults without.
        limits: caps on what a file may hold.
        max_bad_records: go on without this many bad records; one more refuses the file.
        progress: told after every few hundred kilobytes how many bytes of the stream have been read; what it
            raises ends the reading.

    Raises:
        BadDataError: the file cannot be used; carries the first 20 records at fault.
        ParameterError: an unknown format, or options of another one.
    """
    limits = limits or IngestLimits()
    features: dict[str, int] = {}
    source = open_input_file(stream, target.parent, limits, progress)
    with DatasetWriter(target, features) as writer:
        report = process_file(source, format, writer, features, tree, options, limits, max_bad_records)
        writer.commit(labels=list(report.label_counts), parents=report.label_tree)
    return report


def process_file(
    source: InputFile,
    format: str | None,  # noqa: A002
    sink: ExampleSink,
    features: dict[str, int],
    tree: LabelTree | None,
    options: FormatOptions | None,
    limits: IngestLimits,
    max_bad_records: int,
) -> DatasetReport:
    """Read a file and hand its examples on.

    Args:
        source: the file.
        format: its format, a key of ``FORMATS``; None tells it from the content.
        sink: takes the examples.
        features: codes of the feature names met, filled in the order in which they are met.
        tree: the label tree.
        options: of the format; its defaults without.
        limits: caps on what a file may hold.
        max_bad_records: go on without this many bad records.

    Raises:
        BadDataError: the file cannot be used.
        ParameterError: an unknown format, or options of another one.
    """
    name = detect(source) if format is None else format
    if name not in FORMATS:
        raise ParameterError(f"unknown format {name!r}; there are {', '.join(FORMATS)}", "/format")
    chosen = FORMATS[name]
    options = options or chosen.options.model_validate({"format": name})
    if not isinstance(options, chosen.options):
        raise ParameterError(f"these options are not of the format {name}", "/options")
    intake = _RecordProcessor(sink, features, tree, limits, max_bad_records)
    try:
        intake.take(chosen.read(source, options, limits))
    except BadDataError as error:
        raise BadDataError(
            str(error), [*intake.bad_records, *error.records][:MAX_REPORTED_RECORDS]
        ) from error
    return intake.report()


class _RecordProcessor:
    """Checks what holds between records: one kind, distinct ids, the caps."""

    def __init__(
        self,
        sink: ExampleSink,
        features: dict[str, int],
        tree: LabelTree | None,
        limits: IngestLimits,
        max_bad_records: int,
    ) -> None:
        self._sink = sink
        self._features = features
        self._limits = limits
        self._max_bad_records = max_bad_records
        self._given_tree = tree is not None
        self._tally = ReportBuilder(tree or LabelTree({}))
        self._ids = CompactStringSet()
        self._n_bad_records = 0
        self.bad_records: list[BadRecord] = []

    def take(self, items: Iterable[Item]) -> None:
        """Every item of a file."""
        for item in items:
            if isinstance(item, Record):
                try:
                    self._take_record(item)
                except RecordError as error:
                    self._refuse(error.at(item.line))
            elif isinstance(item, BadRecord):
                self._refuse(item)
            else:
                self._declare(item)
        self._refuse_if_useless()

    def report(self) -> DatasetReport:
        """The counts of what was taken."""
        return self._tally.report(
            n_features=len(self._features), n_bad_records=self._n_bad_records, bad_records=self.bad_records
        )

    def _take_record(self, record: Record) -> None:
        tally = self._tally
        if tally.n_examples and record.kind != tally.kind:
            raise RecordError(
                f"this is an example of kind {record.kind}, the first one is of kind {tally.kind}; "
                f"all examples of a data set are of one kind"
            )
        number = tally.n_examples + 1
        id_ = record.id if record.id is not None else str(number)
        if self._ids.add(id_):
            raise RecordError(f"the id {id_!r} is that of an earlier example", "/id")
        labels = tally.tree.closure(record.labels) if tally.tree.parents else sorted(set(record.labels))
        if record.features is not None:
            self._name_features(sorted(record.features.keys() - self._features.keys()))
        self._sink.append(record, id_, labels)
        tally.add(record, labels)
        self._check_caps()

    def _declare(self, head: Declarations) -> None:
        if head.parents and not self._tally.n_examples:
            if self._given_tree:
                raise BadDataError("the file has a label tree of its own; leave label_tree out")
            self._tally.tree = LabelTree(head.parents)
            self._tally.declare(self._tally.tree.labels)
        self._tally.declare(head.labels)
        self._tally.remarks += head.remarks
        self._name_features(head.features)
        self._check_caps()

    def _name_features(self, names: Iterable[str]) -> None:
        for name in names:
            self._features.setdefault(name, len(self._features))

    def _check_caps(self) -> None:
        tally, limits = self._tally, self._limits
        if tally.n_examples > limits.examples:
            raise _too_many(limits.examples, "examples")
        if len(tally.label_counts) > limits.labels:
            raise _too_many(limits.labels, "labels")
        if len(self._features) > limits.features:
            raise _too_many(limits.features, "features")

    def _refuse(self, record: BadRecord) -> None:
        self._n_bad_records += 1
        if len(self.bad_records) < MAX_REPORTED_RECORDS:
            self.bad_records.append(record)
        if self._n_bad_records >= max(MAX_REPORTED_RECORDS, self._max_bad_records + 1):
            raise self._too_many_bad_records(" or more")

    def _refuse_if_useless(self) -> None:
        if self._n_bad_records > self._max_bad_records:
            raise self._too_many_bad_records()
        if not self._tally.n_examples:
            raise BadDataError("the file holds no examples")
        if not any(self._tally.label_counts.values()):
            raise BadDataError("no example of the file has a label; there is nothing to learn")

    def _too_many_bad_records(self, or_more: str = "") -> BadDataError:
        first = self.bad_records[0]
        fault = f"line {first.line}{f', {first.field}' if first.field else ''}: {first.reason}"
        if self._n_bad_records == 1:
            return BadDataError(f"1 record cannot be used: {fault}")
        return BadDataError(f"{self._n_bad_records:,} records{or_more} cannot be used; the first is {fault}")


def _too_many(most: int, what: str) -> BadDataError:
    return BadDataError(f"the file has more than {most:,} {what}, the most that are allowed")
