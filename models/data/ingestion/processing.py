"""Reads a file and passes its examples to a sink, in one pass and in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from models.data.advice import Advice, Suggestion, with_prefix
from models.data.files.input_file import InputFile
from models.data.ingestion.label_changes import LabelChanger, LabelChanges
from models.data.ingestion.report import DatasetReport, ReportBuilder
from models.data.ingestion.string_set import CompactStringSet
from models.data.limits import IngestLimits
from models.data.options import FormatOptionsBase
from models.data.readers.detection import detect_format, other_format_of
from models.data.readers.reading import read_file, with_random_access
from models.data.readers.registry import FORMATS
from models.data.record import Declarations, Item, Items, Record, RecordError, quoted
from models.errors import BadDataError, BadRecord, ParameterError
from models.labels import LabelTree

MAX_REPORTED_RECORDS = 20
"""Maximum number of bad records in a report. After that many, the reader stops unless ``max_bad_records``
allows more."""


class ExampleSink(Protocol):
    """Receives the examples of a file."""

    def append(self, record: Record, id_: str, labels: list[str], /) -> None:
        """Receive one example with its id and its label set, closed under the label tree, in label order.

        The unknown labels of the record are in label order, too, and disjoint from the label set.
        """
        ...


@dataclass(frozen=True)
class ProcessedFile:
    """The result of reading a file.

    Attributes:
        report: the counts and warnings.
        final_names: the final name of each label for which the sink received another spelling.
    """

    report: DatasetReport
    final_names: Mapping[str, str]


def process_file(
    file: InputFile,
    format: str | None,  # noqa: A002 - the name in the HTTP API
    sink: ExampleSink,
    features: dict[str, int],
    tree: LabelTree | None,
    options: FormatOptionsBase | None,
    limits: IngestLimits,
    max_bad_records: int,
    changes: LabelChanges | None,
    transform: Callable[[Items], Items] | None = None,
) -> ProcessedFile:
    """Read and check a file, and pass its examples to a sink.

    Args:
        file: the file.
        format: its format, a key of ``FORMATS``; None detects the format from the content.
        sink: receives the examples.
        features: receives the index of each feature name, in the order in which the names first occur.
        tree: the label tree.
        options: options of the format; None means the defaults.
        limits: limits on the content.
        max_bad_records: number of bad records to skip; one more rejects the file.
        changes: labels to rename, remove or merge; None keeps them as they are.
        transform: changes, adds and omits records before they are checked; None keeps them as they are.

    Raises:
        BadDataError: the file cannot be used.
        ParameterError: the format is unknown, or the options belong to another format.
    """
    with with_random_access(file) as opened:
        name = detect_format(opened, limits) if format is None else format
        if name not in FORMATS:
            raise ParameterError(f"unknown format {name!r}; the formats are {', '.join(FORMATS)}", "/format")
        reader = FORMATS[name]
        options = options or reader.options.model_validate({"format": name})
        if not isinstance(options, reader.options):
            raise ParameterError(
                f"the options belong to another format; submit the options of the format {name}", "/options"
            )
        start = opened.peek_start()
        processor = RecordProcessor(sink, features, tree, limits, max_bad_records, changes)
        try:
            items = read_file(opened, name, options, limits)
            processor.process(items if transform is None else transform(items))
        except BadDataError as error:
            records = [*processor.bad_records, *error.records][:MAX_REPORTED_RECORDS]
            other = other_format_of(start, name) if processor.most_records_are_bad else None
            message = error.message
            if other is not None:
                hint = f"{message}; the content looks like the format {other}"
                message = Advice(hint, Suggestion("options/format", other))
            raise BadDataError(message, records, name) from error
        result = processor.result()
        return replace(result, report=replace(result.report, format=name))


class RecordProcessor:
    """Checks what must hold between records: one kind, unique ids and the limits.

    Args:
        sink: receives the examples.
        features: receives the index of each feature name, in the order in which the names first occur.
        tree: the label tree.
        limits: limits on the content.
        max_bad_records: number of bad records to skip; one more rejects the file.
        changes: labels to rename, remove or merge; None keeps them as they are.

    Attributes:
        bad_records: the first rejected records.
    """

    def __init__(
        self,
        sink: ExampleSink,
        features: dict[str, int],
        tree: LabelTree | None,
        limits: IngestLimits,
        max_bad_records: int,
        changes: LabelChanges | None,
    ) -> None:
        self._sink = sink
        self._features = features
        self._limits = limits
        self._max_bad_records = max_bad_records
        self._caller_has_tree = tree is not None
        self._builder = ReportBuilder(tree or LabelTree({}))
        self._changer = None if changes is None else LabelChanger(changes)
        if self._changer is not None and tree is not None:
            self._changer.use_tree(tree.labels)
        self._ids = CompactStringSet()
        self._n_bad_records = 0
        self.bad_records: list[BadRecord] = []

    def process(self, items: Iterable[Item]) -> None:
        """Process every item of a file.

        Raises:
            BadDataError: the file exceeds a limit, has too many bad records, or has no examples.
        """
        for item in items:
            if isinstance(item, Record):
                try:
                    self._accept(item)
                except RecordError as error:
                    if item.file:
                        error.reason = with_prefix(f"{item.file}: ", error.reason)
                    self._reject(error.at_line(item.line))
            elif isinstance(item, BadRecord):
                self._reject(item)
            else:
                self._declare(item)
        self._check_whole_file()

    @property
    def most_records_are_bad(self) -> bool:
        """Whether no more records were accepted than rejected."""
        return self._builder.n_examples <= self._n_bad_records

    def result(self) -> ProcessedFile:
        """Return the counts and warnings of the accepted records, and the names of their labels."""
        builder, changer = self._builder, self._changer
        final_names = {} if changer is None else changer.final_names()
        if changer is not None:
            builder.rename(final_names)
            builder.warnings += changer.warnings()
        report = builder.report(
            n_features=len(self._features), n_bad_records=self._n_bad_records, bad_records=self.bad_records
        )
        return ProcessedFile(report, final_names)

    def _accept(self, record: Record) -> None:
        builder = self._builder
        if builder.n_examples and record.kind != builder.kind:
            raise RecordError(
                f"the example is of kind {record.kind}, but the first example is of kind {builder.kind}; "
                "all examples of a data set must be of the same kind"
            )
        if record.text is not None and len(record.text) > self._limits.text_chars:
            raise RecordError(
                f"the text has {len(record.text):,} characters; the limit is {self._limits.text_chars:,}; "
                "split the document",
                "/text",
            )
        number = builder.n_examples + 1
        id_ = record.id if record.id is not None else str(number)
        if self._ids.add(id_):
            raise RecordError(f"an earlier example has the same id {id_!r}; ids must be unique", "/id")
        if self._changer is not None:
            _change_labels(record, self._changer)
        labels = builder.tree.closure(record.labels) if builder.tree.parents else sorted(set(record.labels))
        if record.unknown:
            record.unknown = _unknown_labels(record, labels, builder.tree)
        if record.features is not None:
            # The difference of the two sets of keys would take time for every feature of the data set.
            self._add_features(sorted(name for name in record.features if name not in self._features))
        self._sink.append(record, id_, labels)
        builder.add(record, labels)
        self._check_limits()

    def _declare(self, declarations: Declarations) -> None:
        if declarations.parents and not self._builder.n_examples:
            if self._caller_has_tree:
                raise BadDataError("the file contains a label tree; omit label_tree")
            self._builder.tree = _label_tree(declarations.parents, self._limits)
            self._builder.declare(self._builder.tree.labels)
            if self._changer is not None:
                self._changer.use_tree(self._builder.tree.labels)
        labels = declarations.labels
        self._builder.declare(labels if self._changer is None else self._changer.apply(labels, count=False))
        self._builder.warnings += declarations.warnings
        self._add_features(declarations.features)
        self._check_limits()

    def _add_features(self, names: Iterable[str]) -> None:
        for name in names:
            self._features.setdefault(name, len(self._features))

    def _check_limits(self) -> None:
        builder, limits = self._builder, self._limits
        if builder.n_examples > limits.examples:
            raise _limit_exceeded(limits.examples, "examples")
        n_labels = len(builder.label_counts) if self._changer is None else len(self._changer.counts)
        if max(n_labels, len(builder.label_counts)) > limits.labels:
            raise _limit_exceeded(limits.labels, "labels")
        if len(self._features) > limits.features:
            raise _limit_exceeded(limits.features, "features")

    def _reject(self, record: BadRecord) -> None:
        self._n_bad_records += 1
        if len(self.bad_records) < MAX_REPORTED_RECORDS:
            self.bad_records.append(record)
        if self._n_bad_records >= max(MAX_REPORTED_RECORDS, self._max_bad_records + 1):
            raise self._too_many_bad_records("at least ")

    def _check_whole_file(self) -> None:
        if self._n_bad_records > self._max_bad_records:
            raise self._too_many_bad_records()
        if not self._builder.n_examples:
            raise BadDataError("the file contains no examples; a data set needs at least one")

    def _too_many_bad_records(self, at_least: str = "") -> BadDataError:
        first = self.bad_records[0]
        fault = f"line {first.line}{f', {first.field}' if first.field else ''}: {first.reason}"
        if self._n_bad_records == 1:
            message = f"1 record cannot be used: {fault}"
        else:
            message = f"{at_least}{self._n_bad_records:,} records cannot be used; the first: {fault}"
        if not (at_least or self.most_records_are_bad):
            message = Advice(message, Suggestion("max_bad_records", self._n_bad_records))
        return BadDataError(message)


def _change_labels(record: Record, changer: LabelChanger) -> None:
    """Rename, remove and merge the labels of a record.

    A label that applies in one spelling and is unknown in another one applies. In the same spelling, this is
    a contradiction, which remains.
    """
    is_contradictory = not set(record.labels).isdisjoint(record.unknown)
    record.labels = changer.apply(record.labels)
    if record.unknown:
        unknown = changer.apply(record.unknown, count=False)
        record.unknown = [name for name in unknown if is_contradictory or name not in record.labels]


def _unknown_labels(record: Record, labels: list[str], tree: LabelTree) -> list[str]:
    """Return the unknown labels of a record, closed under the label tree, in label order.

    If an unknown label applies, so do its ancestors. They are thus unknown too, except those that apply
    because of another label.

    Args:
        record: the record.
        labels: its label set, closed under the label tree.
        tree: the label tree.

    Raises:
        RecordError: a label of the record is also unknown.
    """
    contradictory = set(record.labels).intersection(record.unknown)
    if contradictory:
        raise RecordError(
            f"the label {quoted(min(contradictory))} applies and is also unknown; remove it from the labels "
            "or from the unknown labels"
        )
    unknown = tree.closure(record.unknown) if tree.parents else sorted(set(record.unknown))
    return sorted(set(unknown).difference(labels))


def _label_tree(parents: Mapping[str, str], limits: IngestLimits) -> LabelTree:
    """Return the label tree that a file declares."""
    try:
        tree = LabelTree(parents)
        tree.check_depth(limits.tree_depth)
    except ParameterError as error:
        raise BadDataError(str(error)) from error
    return tree


def _limit_exceeded(limit: int, what: str) -> BadDataError:
    return BadDataError(f"there are more than {limit:,} {what}, which is the limit; submit fewer {what}")
