"""The command line: ``covey``."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
import uvicorn
from rich.console import Console

from app import logs
from app.cli import experiment
from app.cli.embedded import ServeError, serve
from app.cli.inspect_files import data_cli, mail_cli
from app.db import schema
from app.db.session import DATABASE_UNAVAILABLE, Database, unavailable_reason
from app.demo.run import DemoError, demo
from app.demo.service import NotStartedError
from app.http.openapi import written
from app.http.server import Server
from app.keys import service as keys
from app.keys.schemas import ApiKeyCreate
from app.keys.service import AuthenticationRequiredError
from app.main import create_app, require_servable
from app.maintenance import backup as backups
from app.settings import Settings
from app.storage import Storage, open_storage
from app.version import __version__

cli = typer.Typer(
    name="covey",
    help="Train multilabel classifiers over HTTP and route e-mail with them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
keys_cli = typer.Typer(help="API keys: who may do what.", no_args_is_help=True)
cli.add_typer(keys_cli, name="keys")
cli.add_typer(data_cli, name="data")
cli.add_typer(mail_cli, name="mail")

stderr = Console(stderr=True)

Data = Annotated[
    Path | None,
    typer.Option("--data", help="Folder of the embedded stack. Default: covey-data.", show_default=False),
]
Host = Annotated[
    str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1.", show_default=False)
]
Port = Annotated[
    int | None,
    typer.Option(help="Port to listen on; 0 picks a free one. Default: 8000.", show_default=False),
]


def settings_with(**options: Any) -> Settings:
    """The settings, options first; children inherit them through the environment."""
    for name, value in options.items():
        if value is not None:
            os.environ[f"COVEY_{name.upper()}"] = str(value)
    return Settings()


def _fail(message: str) -> typer.Exit:
    stderr.print(f"covey: {message}", style="red", highlight=False, soft_wrap=True)
    return typer.Exit(1)


@cli.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        typer.echo(f"covey {__version__}")
        raise typer.Exit


@cli.command("serve")
def serve_command(data: Data = None, host: Host = None, port: Port = None) -> None:
    """Run everything in one command: database, broker, worker and API.

    The first line on standard output, once it is ready, is `Covey is ready at http://…`.
    Ctrl-C, or SIGTERM, stops it in order; jobs go on at the next start.
    """
    settings = settings_with(data_dir=data.resolve() if data else None, host=host, port=port)
    logs.configure(settings)
    try:
        serve(settings, lambda url: typer.echo(f"Covey is ready at {url}"))
    except (ServeError, schema.SchemaError) as error:
        raise _fail(str(error)) from error


@cli.command()
def api(
    host: Host = None,
    port: Port = None,
    fd: Annotated[
        int | None, typer.Option(help="Serve on an inherited listening socket instead.", hidden=True)
    ] = None,
    ready_fd: Annotated[
        int | None, typer.Option(help="Write to this descriptor once it serves.", hidden=True)
    ] = None,
) -> None:
    """Run the HTTP API alone, for production. The database must be migrated."""
    settings = settings_with(host=host, port=port)
    logs.configure(settings)
    db = Database(settings.resolved_database_url())
    try:
        require_servable(settings, db)
    except (schema.SchemaError, AuthenticationRequiredError) as error:
        raise _fail(str(error)) from error
    except DATABASE_UNAVAILABLE as error:
        raise _fail(unavailable_reason(error)) from error
    finally:
        db.close()
    made = create_app(settings)
    config = uvicorn.Config(
        made,
        host=settings.host,
        port=settings.port,
        # Of the two parsers, the one that bounds what it keeps of a head that does not end.
        http="h11",
        h11_max_incomplete_event_size=settings.max_header_bytes,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=20,
    )
    sockets = [socket.socket(fileno=fd)] if fd is not None else None
    server = Server(config, made, drain_seconds=settings.drain_seconds, ready_fd=ready_fd)
    server.run(sockets=sockets)
    if not server.started:
        raise typer.Exit(3)


@cli.command()
def worker() -> None:
    """Run a worker alone, for production. Start as many as you like."""
    # The workers stand above the app and are not imported here.
    os.execv(sys.executable, [sys.executable, "-m", "workers"])  # noqa: S606


@cli.command()
def migrate(
    revision: Annotated[str, typer.Argument(help="Revision to go to.")] = "head", data: Data = None
) -> None:
    """Bring the database's schema to this release. Safe to run from several places at once."""
    settings = settings_with(data_dir=data.resolve() if data else None)
    if not settings.database_url:
        settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    db = Database(settings.resolved_database_url())
    try:
        before = schema.current(db.engine)
        schema.migrate(db.engine, revision)
        typer.echo(f"schema: {before or 'none'} -> {schema.current(db.engine) or 'none'}")
    except schema.SchemaError as error:
        raise _fail(str(error)) from error
    finally:
        db.close()


BackupFile = Annotated[Path, typer.Argument(help="The backup, one file; .tar.zst by custom.")]


@cli.command()
def backup(file: BackupFile, data: Data = None) -> None:
    """Write everything, database and storage, to one new file. The service may run on meanwhile.

    The file holds the data sets, models and decisions, and digests of the API keys: keep it safe.
    """
    settings = settings_with(data_dir=data.resolve() if data else None)
    _back_up_or_restore(settings, lambda db, storage: backups.back_up(db, storage, file), "backed up")


@cli.command()
def restore(file: BackupFile, data: Data = None) -> None:
    """Fill an empty database and an empty storage from a backup. Start the service afterwards.

    They need not be of the kind that the backup was made from.
    """
    settings = settings_with(data_dir=data.resolve() if data else None)
    if not settings.database_url:
        settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    _back_up_or_restore(settings, lambda db, storage: backups.restore(db, storage, file), "restored")


def _back_up_or_restore(
    settings: Settings, do: Callable[[Database, Storage], backups.Summary], done: str
) -> None:
    logs.configure(settings)
    db = Database(settings.resolved_database_url())
    try:
        made = do(db, open_storage(settings))
    except (backups.BackupError, schema.SchemaError, OSError, ValueError) as error:
        raise _fail(str(error)) from error
    finally:
        db.close()
    typer.echo(f"{done}: {made.rows:,} rows, {made.files:,} files of {made.bytes:,} bytes")


@cli.command("demo")
def demo_command(
    once: Annotated[bool, typer.Option("--once", help="Stop when everything has been shown.")] = False,
) -> None:
    """Show the main job on a service of its own: labelled mail in, a trained model, routed messages out."""
    try:
        demo(Console(), once=once)
    except (DemoError, NotStartedError) as error:
        raise _fail(str(error)) from error


@cli.command("experiment")
def experiment_command(
    file: Annotated[
        Path, typer.Argument(help="YAML with the fields of an experiment, dataset_id among them.")
    ],
    url: Annotated[str, typer.Option(help="The service to run it on.")] = "http://127.0.0.1:8000",
    key: Annotated[
        str | None, typer.Option(envvar="COVEY_API_KEY", help="An API key, where the service needs one.")
    ] = None,
    report: Annotated[
        list[Path] | None,
        typer.Option(
            help="Write the report to a file: .html, .md, .csv or .json; several times for several."
        ),
    ] = None,
) -> None:
    """Run an experiment that a file describes, show it as it goes, and write its report."""
    try:
        experiment.run(Console(), file, url, key, report or [])
    except experiment.ExperimentError as error:
        raise _fail(str(error)) from error


@keys_cli.command("create")
def create_key(
    name: Annotated[str, typer.Option(help="What the key is for.")],
    scope: Annotated[
        list[str], typer.Option(help="read, predict, train or admin; give several times for several.")
    ],
    data: Data = None,
) -> None:
    """Create an API key and print its secret, once.

    From the first key on, every request needs one.
    """
    settings = settings_with(data_dir=data.resolve() if data else None)
    db = Database(settings.resolved_database_url())
    try:
        schema.require_head(db.engine)
        made = keys.create(db, ApiKeyCreate.model_validate({"name": name, "scopes": scope}))
    except (schema.SchemaError, ValueError) as error:
        raise _fail(str(error)) from error
    finally:
        db.close()
    stderr.print(
        f"key {made.id} with scopes {', '.join(made.scopes)}; its secret is shown only now:", soft_wrap=True
    )
    typer.echo(made.secret)


@cli.command()
def openapi() -> None:
    """Print the OpenAPI document of the HTTP API."""
    typer.echo(written(create_app(Settings())), nl=False)


def main() -> None:
    """Run the command line."""
    cli()
