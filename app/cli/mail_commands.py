"""The commands for mail servers: ``covey route`` and others that bring messages to the service."""

from __future__ import annotations

import os
from dataclasses import replace
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Literal

import typer

from app.cli import entry
from app.cli.errors import CommandError
from app.cli.read_settings import settings_with
from app.cli.service_options import KeyFile, Url
from app.inbound import pipe
from app.inbound.service_client import LOCAL_URL, check_url, read_key

Router = Annotated[str, typer.Option("--router", help="Name of the router.")]
ReviewTo = Annotated[
    str | None,
    typer.Option(
        help="Destination in the header fields of messages that need a review, instead of those of the "
        "predicted departments."
    ),
]


Metrics = Annotated[
    str | None,
    typer.Option(
        help="Address for metrics (/metrics) and the health check (/health): HOST:PORT. Default: none."
    ),
]


def add_to(cli: typer.Typer) -> None:
    """Add the commands to the command line."""
    anything = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    cli.command(help=pipe.DESCRIPTION, context_settings=anything)(route)
    cli.command()(smtp)
    cli.command()(imap)


def route(context: typer.Context) -> None:  # noqa: D103 - its help is that of the module
    entry.route(context.args)


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
    key_file: KeyFile = None,
    timeout: Annotated[
        float, typer.Option(min=1.0, max=300.0, help="Maximum time to wait for the service, in seconds.")
    ] = 60.0,
    review_to: ReviewTo = None,
    metrics: Metrics = None,
    max_bytes: Annotated[int, typer.Option(min=1024, help="Maximum size of a message.")] = 33_554_432,
    max_messages: Annotated[
        int,
        typer.Option(
            min=1,
            help="Maximum number of messages that are routed at the same time, and of long messages in "
            "memory.",
        ),
    ] = 10,
) -> None:
    """Run a content filter for mail servers: it routes messages, adds header fields, and hands them on.

    A message is accepted only after the next hop has accepted it. The first line on standard output is `Covey
    filters mail at …`; it appears as soon as the filter accepts connections. SIGTERM stops the filter after
    the messages in progress.
    """
    from app import logs
    from app.inbound.monitor import Monitor
    from app.inbound.smtp.next_hop import Address
    from app.inbound.smtp.server import FilterOptions, ListenError, serve

    logs.configure(settings_with())
    try:
        check_url(url)
        options = FilterOptions(
            replace(Address.parse(listen), lmtp=lmtp),
            Address.parse(next_hop),
            [ip_network(client) for client in allow_client or ()],
            when_unavailable,
            max_bytes,
            max_messages,
            review_to,
        )
        monitor = Monitor()
        with monitor.serve(metrics):
            serve(
                options,
                url,
                router,
                read_key(key_file),
                timeout,
                monitor,
                lambda address: typer.echo(f"Covey filters mail at {address}"),
            )
    except (
        ListenError,
        CommandError,
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
    metrics: Metrics = None,
    url: Url = LOCAL_URL,
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
    from app.inbound.monitor import Monitor
    from app.inbound.service_client import RouterClient

    settings = settings_with()
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
                f"without TLS, every machine between this one and {host} can read the password; use "
                "--security tls or starttls, or --insecure"
            )
        server = Server(host, port or PORTS[security], security, user, _read_password(password_file), ca_file)
        monitor = Monitor()
        client = RouterClient(url, router, read_key(key_file), timeout)
        with monitor.serve(metrics):
            watch(
                server,
                mailbox,
                client,
                state,
                WatchOptions(rules, create, existing, poll_seconds, monitor=monitor),
                lambda account: typer.echo(f"Covey watches {account}"),
                settings.max_message_bytes,
            )
    except (
        RefusedError,
        StateError,
        CommandError,
        ValueError,
    ) as error:  # of an address or a key: ValueError
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
