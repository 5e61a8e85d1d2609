"""The commands for mail servers: ``covey route`` and others that bring messages to the service."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Literal, NoReturn

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
    cli.command()(smtp)
    cli.command()(imap)


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


def check_url(url: str) -> None:
    """Refuse a URL that cannot be that of the service.

    Raises:
        CommandError: it is no URL of HTTP.
    """
    if not url.startswith(("http://", "https://")):
        raise CommandError(f"the URL {url!r} does not begin with http:// or https://")


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


def smtp(
    router: Router,
    next_hop: Annotated[
        str,
        typer.Option(
            help="The mail server that gets the messages: HOST:PORT or the path of a Unix socket, after "
            "`lmtp:` for LMTP."
        ),
    ],
    listen: Annotated[
        str, typer.Option(help="Address to listen on: HOST:PORT or the path of a Unix socket.")
    ] = "127.0.0.1:10025",
    lmtp: Annotated[bool, typer.Option("--lmtp", help="Receive messages by LMTP instead of SMTP.")] = False,
    allow_client: Annotated[
        list[str] | None,
        typer.Option(
            help="Network of mail servers that may connect, such as 10.1.2.0/24; this machine always may. "
            "You can repeat this option."
        ),
    ] = None,
    when_unavailable: Annotated[
        Literal["retry", "pass"],
        typer.Option(
            help="What to do with a message that cannot be routed: ask the mail server to send it again, or "
            "hand it on without a decision."
        ),
    ] = "retry",
    url: Url = LOCAL_URL,
    key: Key = None,
    key_file: KeyFile = None,
    timeout: Annotated[
        float, typer.Option(min=1.0, max=300.0, help="Maximum time to wait for the service, in seconds.")
    ] = 60.0,
    max_bytes: Annotated[int, typer.Option(min=1024, help="Maximum size of a message.")] = 33_554_432,
    max_messages: Annotated[
        int, typer.Option(min=1, help="Maximum number of messages in memory at the same time.")
    ] = 10,
) -> None:
    """Run a content filter for mail servers: it routes messages, adds header fields, and hands them on.

    A message is accepted only after the next hop has accepted it. The first line on standard output is `Covey
    filters mail at …`; it appears as soon as the filter accepts connections. SIGTERM stops the filter after
    the messages in progress.
    """
    from httpx import InvalidURL

    from app import logs
    from app.inbound.smtp.next_hop import Address
    from app.inbound.smtp.server import FilterOptions, ListenError, serve
    from app.settings import Settings

    logs.configure(Settings())
    try:
        check_url(url)
        options = FilterOptions(
            replace(Address.parse(listen), lmtp=lmtp),
            Address.parse(next_hop),
            [ip_network(client) for client in allow_client or ()],
            when_unavailable,
            max_bytes,
            max_messages,
        )
        serve(
            options,
            url,
            router,
            read_key(key, key_file),
            timeout,
            lambda address: typer.echo(f"Covey filters mail at {address}"),
        )
    except (
        ListenError,
        CommandError,
        InvalidURL,
        ValueError,
    ) as error:  # of an address or network: ValueError
        typer.echo(f"covey: {error}", err=True)
        raise typer.Exit(1) from error


PASSWORD_VARIABLE = "COVEY_IMAP_PASSWORD"  # noqa: S105 - the name of the variable


def imap(
    router: Router,
    host: Annotated[str, typer.Option(help="Name of the IMAP server.")],
    user: Annotated[str, typer.Option(help="Name of the user.")],
    state: Annotated[
        Path, typer.Option(help="File that remembers which messages were handled; one for each mailbox.")
    ],
    password_file: Annotated[
        Path | None,
        typer.Option(help=f"File that contains the password. Default: the variable {PASSWORD_VARIABLE}."),
    ] = None,
    mailbox: Annotated[str, typer.Option(help="The mailbox to watch.")] = "INBOX",
    action: Annotated[
        Literal["move", "copy", "flag"],
        typer.Option(help="Move or copy messages to folders, or add keywords to them."),
    ] = "move",
    folder_for: Annotated[
        list[str] | None,
        typer.Option(help="Folder of a label: LABEL=FOLDER. You can repeat this option."),
    ] = None,
    folder: Annotated[
        str | None,
        typer.Option(
            help="Folder of all other labels; {label} and {destination} stand for those of the department."
        ),
    ] = None,
    review_folder: Annotated[
        str | None, typer.Option(help="Folder of messages that need a review. Default: they stay.")
    ] = None,
    fallback_folder: Annotated[
        str | None,
        typer.Option(
            help="Folder of messages without a department, or that cannot be read. Default: they stay."
        ),
    ] = None,
    create: Annotated[bool, typer.Option("--create", help="Create folders that do not exist.")] = False,
    keyword: Annotated[
        str, typer.Option(help="Keyword of a label with --action flag; {label} stands for the label.")
    ] = "{label}",
    existing: Annotated[
        bool,
        typer.Option("--existing", help="At the first start, also route messages that are there already."),
    ] = False,
    security: Annotated[
        Literal["tls", "starttls", "none"],
        typer.Option(help="How the connection is encrypted; `none` is for this machine only."),
    ] = "tls",
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow `--security none` to other machines.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(help="Port. Default: 993 for `tls`, otherwise 143.", show_default=False)
    ] = None,
    ca_file: Annotated[
        Path | None, typer.Option(help="Certificates (PEM) that may sign the certificate of the server.")
    ] = None,
    poll_seconds: Annotated[
        float,
        typer.Option(min=1.0, help="How often to look for messages if the server does not report them."),
    ] = 60.0,
    url: Url = LOCAL_URL,
    key: Key = None,
    key_file: KeyFile = None,
    timeout: Annotated[
        float, typer.Option(min=1.0, help="Maximum time to wait for the service, in seconds.")
    ] = 60.0,
) -> None:
    """Watch a mailbox, route its new messages, and move, copy or flag them by department.

    A message that cannot be routed stays in the mailbox and is tried again. The first line on standard output
    is `Covey watches …`; it appears as soon as the mailbox is open. You can stop the command at any time.
    """
    from app import logs
    from app.inbound.imap.mailbox import PORTS, RefusedError, Server
    from app.inbound.imap.rules import Rules
    from app.inbound.imap.state import StateError
    from app.inbound.imap.watcher import WatchOptions, watch
    from app.inbound.service_client import RouterClient
    from app.settings import Settings

    settings = Settings()
    logs.configure(settings)
    try:
        check_url(url)
        rules = Rules(action, _folders_by_label(folder_for), folder, review_folder, fallback_folder, keyword)
        if action == "flag" and (folder or rules.named_folders()):
            raise CommandError("--action flag uses no folders; use --keyword")
        if action != "flag" and not (folder or rules.named_folders()):
            raise CommandError(f"--action {action} needs --folder or --folder-for")
        if security == "none" and not insecure and not _is_loopback(host):
            raise CommandError(
                f"without TLS, everybody between this machine and {host} can read the password; use "
                "--security tls or starttls, or --insecure"
            )
        server = Server(host, port or PORTS[security], security, user, _read_password(password_file), ca_file)
        with RouterClient(url, router, read_key(key, key_file), timeout) as client:
            watch(
                server,
                mailbox,
                client,
                state,
                WatchOptions(rules, create, existing, poll_seconds),
                lambda account: typer.echo(f"Covey watches {account}"),
                settings.max_message_bytes,
            )
    except (RefusedError, StateError, CommandError) as error:
        typer.echo(f"covey: {error}", err=True)
        raise typer.Exit(1) from error


def _folders_by_label(assignments: list[str] | None) -> dict[str, str]:
    folders = {}
    for assignment in assignments or ():
        # Folders rarely contain the sign, labels may.
        label, _, folder = assignment.rpartition("=")
        if not label or not folder:
            raise CommandError(f"--folder-for must be LABEL=FOLDER, not {assignment}")
        folders[label] = folder
    return folders


def _read_password(file: Path | None) -> str:
    if file is None:
        password = os.environ.get(PASSWORD_VARIABLE)
        if not password:
            raise CommandError(f"set {PASSWORD_VARIABLE}, or use --password-file")
        return password
    try:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"the password cannot be read: {error}") from error


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
