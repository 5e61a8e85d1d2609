"""The commands for mail servers: ``covey route`` and others that bring messages to the service."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from app.cli.errors import CommandError

Router = Annotated[str, typer.Option("--router", help="Name of the router.")]
Url = Annotated[str, typer.Option(envvar="COVEY_URL", help="URL of the service.")]
Key = Annotated[
    str | None,
    typer.Option(
        "--key", envvar="COVEY_API_KEY", help="API key with the scope predict, if the service requires one."
    ),
]
KeyFile = Annotated[Path | None, typer.Option(help="File that contains the API key.")]
LOCAL_URL = "http://127.0.0.1:8000"


def add_to(cli: typer.Typer) -> None:
    """Add the commands to the command line."""
    cli.command()(route)


class _Finished(BaseException):
    """``covey route`` has routed a message and ends with a status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def run_for_mail_server(cli: typer.Typer) -> NoReturn:
    """Run ``covey route``, so that every failure ends with EX_TEMPFAIL, also a wrong option or a defect.

    After any other status, a mail server returns the message to its sender, and its receiver never gets it.
    """
    try:
        cli()
    except _Finished as finished:
        sys.exit(finished.status)
    except SystemExit as error:
        if not error.code:  # --help
            raise
    except Exception as error:  # noqa: BLE001 - reported; the mail server keeps the message
        typer.echo(f"covey: not routed, send the message again: {type(error).__name__}: {error}", err=True)
    sys.exit(os.EX_TEMPFAIL)


def read_key(key: str | None, file: Path | None) -> str | None:
    """Return the API key of the options, or None if there is none.

    Raises:
        CommandError: the file cannot be read.
    """
    if file is None:
        return key
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"the API key cannot be read: {error}") from error


def route(
    router: Router,
    url: Url = LOCAL_URL,
    key: Key = None,
    key_file: KeyFile = None,
    add_headers: Annotated[
        bool, typer.Option("--add-headers", help="Write the message with the header fields of the decision.")
    ] = False,
    headers: Annotated[
        bool, typer.Option("--headers", help="Write only the header fields of the decision.")
    ] = False,
    timeout: Annotated[float, typer.Option(min=1.0, help="Maximum time to wait, in seconds.")] = 60.0,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="Command after `--` that gets the output as its input. The word %destinations stands for "
            "the destinations of the message."
        ),
    ] = None,
) -> None:
    """Route the message on standard input, and write the decision as JSON.

    If there is no decision, whatever the reason, the exit status is 75 (EX_TEMPFAIL) and nothing is written:
    a mail server then keeps the message and tries again. With a command, the exit status is that of the
    command.
    """
    from app.inbound import pipe
    from app.inbound.service_client import NotRoutedError, RouterClient

    try:
        if add_headers and headers:
            raise CommandError("use --add-headers or --headers, not both")
        output: pipe.Output = "message" if add_headers else "headers" if headers else "json"
        with RouterClient(url, router, read_key(key, key_file), timeout) as client:
            status = pipe.route(client, sys.stdin.buffer, sys.stdout.buffer, output, command or [])
    except (NotRoutedError, CommandError) as error:
        typer.echo(f"covey: not routed, send the message again: {error}", err=True)
        raise typer.Exit(os.EX_TEMPFAIL) from error
    raise _Finished(status)
