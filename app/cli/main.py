"""The command line: ``covey``.

Each command imports its module when it runs: ``covey serve`` and ``covey --help`` need none of the libraries
that the API or a training loads, and so start in a fraction of the time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import structlog
import typer
from rich.console import Console

from app import logs
from app.cli import mail_commands
from app.cli.errors import CommandError
from app.cli.read_settings import settings_with
from app.cli.service_options import KeyFile, Url
from app.inbound.service_client import LOCAL_URL, read_key
from app.settings import Settings, unknown_variables
from app.version import __version__

cli = typer.Typer(
    name="covey",
    help="Train multilabel classifiers over HTTP and route e-mail with them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
keys_cli = typer.Typer(help="Manage API keys.", no_args_is_help=True)
data_cli = typer.Typer(help="Work with files of data sets.", no_args_is_help=True)
mail_cli = typer.Typer(help="Work with files of messages.", no_args_is_help=True)
cli.add_typer(keys_cli, name="keys")
cli.add_typer(data_cli, name="data")
cli.add_typer(mail_cli, name="mail")

Data = Annotated[
    Path | None,
    typer.Option(
        "--data", help="Data folder of the embedded stack. Default: covey-data.", show_default=False
    ),
]
Host = Annotated[
    str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1.", show_default=False)
]
Port = Annotated[
    int | None,
    typer.Option(help="Port to listen on; 0 selects a free port. Default: 8000.", show_default=False),
]
Processes = Annotated[
    int | None, typer.Option(help="Number of API processes. Default: 1.", min=1, show_default=False)
]
KeyIdArgument = Annotated[str, typer.Argument(help="Id of the key, as `covey keys list` shows it.")]
BackupFile = Annotated[Path, typer.Argument(help="The backup file, by convention *.tar.zst.")]


def _settings_in(data: Path | None) -> Settings:
    return settings_with(data_dir=data.resolve() if data else None)


def _warn_of_unknown_variables(settings: Settings) -> None:
    """Log the variables that have no effect, although they are set as settings."""
    logs.configure(settings)
    if variables := unknown_variables(os.environ):
        structlog.get_logger().warning("settings.unknown", variables=variables)


@contextmanager
def _reported_errors() -> Iterator[None]:
    """Print the reason if the command fails, and exit with its status."""
    try:
        yield
    except CommandError as error:
        Console(stderr=True).print(f"covey: {error}", style="red", highlight=False, soft_wrap=True)
        raise typer.Exit(error.exit_code) from error


@cli.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"covey {__version__}")
        raise typer.Exit


@cli.command("serve")
def serve_command(
    data: Data = None, host: Host = None, port: Port = None, processes: Processes = None
) -> None:
    """Run everything in one command: database, broker, worker and API.

    The first line on standard output is `Covey is ready at http://…`; it appears as soon as the service
    accepts requests. Ctrl-C or SIGTERM stops the service in order; unfinished jobs continue at the next
    start.
    """
    from app.cli.embedded import serve

    settings = settings_with(
        data_dir=data.resolve() if data else None, host=host, port=port, processes=processes
    )
    _warn_of_unknown_variables(settings)
    with _reported_errors():
        serve(settings, lambda url: typer.echo(f"Covey is ready at {url}\nThe console is at {url}/console"))


@cli.command()
def api(
    host: Host = None,
    port: Port = None,
    processes: Processes = None,
    fd: Annotated[
        int | None, typer.Option(help="Serve on an inherited listening socket instead.", hidden=True)
    ] = None,
    ready_fd: Annotated[
        int | None, typer.Option(help="Write to this descriptor when the API is ready.", hidden=True)
    ] = None,
    shared_dir: Annotated[
        Path | None, typer.Option(help="Folder that the API processes share.", hidden=True)
    ] = None,
    number: Annotated[int, typer.Option(help="Number of this process among them.", hidden=True)] = 0,
) -> None:
    """Run only the HTTP API, for production. The database must be migrated."""
    settings = settings_with(host=host, port=port, processes=processes)
    if fd is None:  # otherwise the parent process has logged them
        _warn_of_unknown_variables(settings)
    with _reported_errors():
        if settings.processes > 1 and fd is None:
            from app.cli.serve_processes import serve_processes

            serve_processes(settings)
            return
        if shared_dir is not None:
            from app.server.shared_metrics import share_metrics

            share_metrics(shared_dir, number)
        from app.cli.serve_api import serve_api

        serve_api(settings, fd=fd, ready_fd=ready_fd, shared_dir=shared_dir, number=number)


@cli.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def worker(context: typer.Context) -> None:
    """Run only a worker, for production. You can start any number of workers.

    Further arguments are those of `celery worker`, for example `-Q training -c 4`.
    """
    _warn_of_unknown_variables(settings_with())
    # The app must not import the workers, which are above it.
    os.execv(sys.executable, [sys.executable, "-m", "workers", *context.args])  # noqa: S606


@cli.command()
def migrate(
    revision: Annotated[str, typer.Argument(help="Target revision.")] = "head", data: Data = None
) -> None:
    """Migrate the database to the schema of this release. Concurrent runs are safe."""
    from app.cli import database

    with _reported_errors():
        typer.echo(database.migrate(_settings_in(data), revision))


@cli.command()
def backup(file: BackupFile, data: Data = None) -> None:
    """Write the whole database and storage to one new file. The service can keep running.

    The file contains data sets, models, decisions and digests of API keys. Keep it safe.
    """
    from app.cli import database

    with _reported_errors():
        typer.echo(database.back_up(_settings_in(data), file))


@cli.command()
def restore(file: BackupFile, data: Data = None) -> None:
    """Fill an empty database and an empty storage from a backup. Start the service afterwards.

    Their kinds can differ from those of the backup: SQLite or PostgreSQL, a folder or a bucket.
    """
    from app.cli import database

    with _reported_errors():
        typer.echo(database.restore(_settings_in(data), file))


@cli.command("demo")
def demo_command(
    once: Annotated[bool, typer.Option("--once", help="Stop after the last step.")] = False,
) -> None:
    """Show the main job on a temporary service: upload labelled mail, train a model, route messages."""
    from app.demo.run import DemoError, demo
    from app.demo.service import NotStartedError

    with _reported_errors():
        try:
            demo(Console(), once=once)
        except (DemoError, NotStartedError) as error:
            raise CommandError(str(error)) from error


@cli.command("experiment")
def experiment_command(
    file: Annotated[Path, typer.Argument(help="YAML file with the fields of an experiment.")],
    url: Url = LOCAL_URL,
    key_file: KeyFile = None,
    report: Annotated[
        list[Path] | None,
        typer.Option(
            help="Write the report to a .html, .md, .csv or .json file. You can repeat this option."
        ),
    ] = None,
) -> None:
    """Run the experiment that a file describes, show its progress, and write its report."""
    from app.cli import experiment

    with _reported_errors():
        try:
            key = read_key(key_file)
        except ValueError as error:
            raise CommandError(str(error)) from error
        experiment.run(Console(), file, url, key, report or [])


@keys_cli.command("create")
def create_key(
    name: Annotated[str, typer.Option(help="Purpose of the key.")],
    scope: Annotated[
        list[str], typer.Option(help="read, predict, review, train or admin. You can repeat this option.")
    ],
    data: Data = None,
) -> None:
    """Create an API key and print its secret, which cannot be shown again.

    From then on, every request requires a key, even if all keys expire or are deleted.
    """
    from app.cli import database

    with _reported_errors():
        key = database.create_key(_settings_in(data), name, scope)
        Console(stderr=True).print(
            f"key {key.id} with scopes {', '.join(key.scopes)}; the secret is shown only now:", soft_wrap=True
        )
        typer.echo(key.secret)


@keys_cli.command("list")
def list_keys(data: Data = None) -> None:
    """List the API keys without their secrets, newest first."""
    from app.cli import database

    with _reported_errors():
        for key in database.list_keys(_settings_in(data)):
            typer.echo(database.describe_key(key))


@keys_cli.command("rotate")
def rotate_key(
    key_id: KeyIdArgument,
    grace_seconds: Annotated[
        int, typer.Option(min=0, max=30 * 86_400, help="Time for which the old secret keeps working.")
    ] = 86_400,
    data: Data = None,
) -> None:
    """Give an API key a new secret and print it. It cannot be shown again."""
    from app.cli import database

    with _reported_errors():
        key = database.rotate_key(_settings_in(data), key_id, grace_seconds)
        Console(stderr=True).print(
            f"key {key.id} ({key.name}); the new secret is shown only now:", soft_wrap=True
        )
        typer.echo(key.secret)


@keys_cli.command("delete")
def delete_key(key_id: KeyIdArgument, data: Data = None) -> None:
    """Delete an API key. Requests with it are rejected from then on."""
    from app.cli import database

    with _reported_errors():
        database.delete_key(_settings_in(data), key_id)


@keys_cli.command("allow-anonymous")
def allow_anonymous(data: Data = None) -> None:
    """Accept requests without a key on a loopback address again, until the next key is created.

    Existing keys stay valid. Restart the API afterwards.
    """
    from app.cli import database

    with _reported_errors():
        typer.echo(database.allow_anonymous(_settings_in(data)))


@data_cli.command("inspect")
def inspect_data(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="The file; it can be compressed.")
    ],
    format_: Annotated[
        str | None, typer.Option("--format", help="Format of the file. Default: detected from the content.")
    ] = None,
    options: Annotated[
        str | None, typer.Option(help="Options of the format as JSON, as in the HTTP API.")
    ] = None,
    tree: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Label tree: a file with child,parent lines."),
    ] = None,
    merge_labels: Annotated[
        Literal["similar"] | None, typer.Option(help="Merge labels that differ only in spelling.")
    ] = None,
    rename_labels: Annotated[
        str | None, typer.Option(help="New names of labels as JSON, as in the HTTP API.")
    ] = None,
    remove_labels: Annotated[
        str | None, typer.Option(help="List of labels to remove as JSON, as in the HTTP API.")
    ] = None,
    max_bad_records: Annotated[int, typer.Option(min=0, help="Maximum number of bad records to skip.")] = 0,
) -> None:
    """Print the report that the service would generate for a file, or the records that it cannot read."""
    from app.cli import inspect_files

    with _reported_errors():
        inspect_files.inspect_data(
            file,
            format_,
            options=options,
            tree=tree,
            merge_similar=merge_labels == "similar",
            rename=rename_labels,
            remove=remove_labels,
            max_bad_records=max_bad_records,
        )


@mail_cli.command("inspect")
def inspect_mail(
    file: Annotated[
        Path, typer.Argument(allow_dash=True, help="A raw message (.eml); - reads standard input.")
    ],
) -> None:
    """Show which parts of a message a learner reads, and the defects of the message."""
    from app.cli import inspect_files

    typer.echo(
        inspect_files.describe_mail(sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes())
    )


mail_commands.add_to(cli)


@cli.command()
def openapi() -> None:
    """Print the OpenAPI document of the HTTP API."""
    from app.api.openapi import to_json
    from app.main import create_app

    typer.echo(to_json(create_app(settings_with())), nl=False)


def main() -> None:
    """Run the command line."""
    cli()
