"""``covey data inspect`` and ``covey mail inspect``: how the service reads a file."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn
from rich.table import Table

from app.cli.errors import CommandError
from models.data.files.lines import as_utf8
from models.data.ingestion.inspect import inspect
from models.data.ingestion.label_changes import LabelChanges
from models.data.ingestion.report import DatasetReport
from models.data.options import FormatOptionsBase
from models.data.readers.label_tree import read_label_tree
from models.data.readers.registry import FormatOptions
from models.errors import BadDataError, BadRecord, CoveyError
from models.labels import LabelTree
from models.mail import read_message
from models.mail.inspect import describe

_OPTIONS: TypeAdapter[FormatOptionsBase] = TypeAdapter(FormatOptions)
_NAMES: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])
_LABELS: TypeAdapter[list[str]] = TypeAdapter(list[str])
_MAX_LABELS = 30

T = TypeVar("T")


def inspect_data(
    file: Path,
    format_: str | None,
    *,
    options: str | None,
    tree: Path | None,
    merge_similar: bool,
    rename: str | None,
    remove: str | None,
    max_bad_records: int,
) -> None:
    """Print the report of a file of a data set.

    Args:
        file: the file, may be compressed.
        format_: its format; by default, detected from the content.
        options: options of the format as JSON.
        tree: a file of ``child,parent`` lines.
        merge_similar: whether to merge labels that differ only in spelling.
        rename: new names of labels as JSON.
        remove: labels to remove as JSON.
        max_bad_records: number of bad records to accept.

    Raises:
        CommandError: the options are not valid, or the file cannot be read.
    """
    out, err = Console(), Console(stderr=True)
    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns, console=err, transient=True) as bar:
            task = bar.add_task("reading", total=file.stat().st_size)
            report = inspect(
                file,
                format_,
                tree=None if tree is None else _read_tree(tree),
                options=_from_json("--options", _OPTIONS, options),
                max_bad_records=max_bad_records,
                changes=_label_changes(rename, remove, merge_similar),
                progress=lambda done: bar.update(task, completed=done),
            )
    except CoveyError as error:
        records = error.records if isinstance(error, BadDataError) else ()
        raise CommandError("\n".join([str(error), *map(_describe_record, records)])) from error
    _print_report(out, report)


def _label_changes(rename: str | None, remove: str | None, merge_similar: bool) -> LabelChanges | None:
    if rename is None and remove is None and not merge_similar:
        return None
    names = _from_json("--rename-labels", _NAMES, rename)
    return LabelChanges(
        names or {}, frozenset(_from_json("--remove-labels", _LABELS, remove) or ()), merge_similar
    )


def _from_json(option: str, type_: TypeAdapter[T], text: str | None) -> T | None:
    if text is None:
        return None
    try:
        return type_.validate_json(text)
    except ValidationError as error:
        raise CommandError(f"{option}: {error}", exit_code=2) from error


def _describe_record(record: BadRecord) -> str:
    place = f"line {record.line}" + (f", {record.field}" if record.field else "")
    return f"  {place}: {record.reason}"


def _read_tree(path: Path) -> LabelTree:
    with path.open("rb") as stream:
        return read_label_tree(as_utf8(stream))


def _print_report(out: Console, report: DatasetReport) -> None:
    parts = ", ".join(f"{count} {name}" for name, count in report.splits.items() if count)
    out.print(
        f"{report.n_examples} examples of kind {report.kind} ({parts}), {report.n_labels} labels, "
        f"{report.label_cardinality:.2f} labels per example, {report.n_unlabelled} examples without labels",
        highlight=False,
    )
    if report.n_with_unknown:
        out.print(f"{report.n_with_unknown} examples with unknown labels", highlight=False)
    if report.n_weighted:
        out.print(f"{report.n_weighted} examples with a weight other than 1", highlight=False)
    if report.n_features:
        out.print(f"{report.n_features} features", highlight=False)
    table = Table("label", "examples", *(["unknown"] if report.unknown_counts else []), box=None)
    for label, count in report.by_frequency()[:_MAX_LABELS]:
        unknown = [str(report.unknown_counts.get(label, 0))] if report.unknown_counts else []
        table.add_row(label, str(count), *unknown)
    out.print(table, markup=False)
    if report.n_labels > _MAX_LABELS:
        out.print(f"… and {report.n_labels - _MAX_LABELS} more", highlight=False)
    for warning in report.warnings:
        out.print(f"warning: {warning}", style="yellow", highlight=False, markup=False)


def describe_mail(raw: bytes) -> str:
    """Describe which parts of a raw message a learner reads, and the defects of the message."""
    return describe(read_message(raw))
