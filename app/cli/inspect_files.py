"""``covey data inspect`` and ``covey mail inspect``: what the service would make of a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn
from rich.table import Table

from models.data.ingestion.inspect import inspect
from models.data.ingestion.report import DatasetReport
from models.data.readers.label_tree import read_label_tree
from models.data.readers.options import FormatOptions
from models.data.readers.registry import OptionsUnion
from models.errors import BadDataError, CoveyError
from models.labels import LabelTree
from models.mail import read_message
from models.mail.inspect import describe

data_cli = typer.Typer(help="Data sets in files.", no_args_is_help=True)
mail_cli = typer.Typer(help="Messages in files.", no_args_is_help=True)

_OPTIONS: TypeAdapter[FormatOptions] = TypeAdapter(OptionsUnion)
_LABELS_SHOWN = 30


@data_cli.command("inspect")
def inspect_data(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The file, compressed or not.")],
    format_: Annotated[
        str | None, typer.Option("--format", help="Its format; told from the content without.")
    ] = None,
    options: Annotated[
        str | None, typer.Option(help="Options of the format as JSON, as in the HTTP API.")
    ] = None,
    tree: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="A file of child,parent lines.")
    ] = None,
    max_bad_records: Annotated[int, typer.Option(min=0, help="Go on without so many bad records.")] = 0,
) -> None:
    """Print the report that the service would make of a file, or the records that cannot be used."""
    out, err = Console(), Console(stderr=True)
    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns, console=err, transient=True) as bar:
            task = bar.add_task("reading", total=file.stat().st_size)
            report = inspect(
                file,
                format_,
                tree=None if tree is None else _tree(tree),
                options=None if options is None else _OPTIONS.validate_json(options),
                max_bad_records=max_bad_records,
                progress=lambda done: bar.update(task, completed=done),
            )
    except ValidationError as error:
        err.print(f"--options: {error}", style="red", highlight=False, markup=False)
        raise typer.Exit(2) from error
    except CoveyError as error:
        err.print(str(error), style="red", highlight=False, markup=False)
        for record in error.records if isinstance(error, BadDataError) else ():
            place = f"line {record.line}" + (f", {record.field}" if record.field else "")
            err.print(f"  {place}: {record.reason}", highlight=False, markup=False)
        raise typer.Exit(1) from error
    _show(out, report)


def _tree(path: Path) -> LabelTree:
    with path.open("rb") as stream:
        return read_label_tree(stream)


def _show(out: Console, report: DatasetReport) -> None:
    parts = ", ".join(f"{count} {name}" for name, count in report.splits.items() if count)
    out.print(
        f"{report.n_examples} examples of kind {report.kind} ({parts}), {report.n_labels} labels, "
        f"{report.label_cardinality:.2f} an example, {report.n_unlabelled} without any",
        highlight=False,
    )
    if report.n_features:
        out.print(f"{report.n_features} features", highlight=False)
    table = Table("label", "examples", box=None)
    for label, count in report.by_frequency()[:_LABELS_SHOWN]:
        table.add_row(label, str(count))
    out.print(table, markup=False)
    if report.n_labels > _LABELS_SHOWN:
        out.print(f"… and {report.n_labels - _LABELS_SHOWN} more", highlight=False)
    for warning in report.warnings:
        out.print(f"warning: {warning}", style="yellow", highlight=False, markup=False)


@mail_cli.command("inspect")
def inspect_mail(
    file: Annotated[
        Path, typer.Argument(allow_dash=True, help="A raw message (.eml); - for standard input.")
    ],
) -> None:
    """Show what the learner will see of a message, and what could not be read in it."""
    raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    typer.echo(describe(read_message(raw)))
