"""``covey api``: one process of the HTTP API, for production."""

from __future__ import annotations

import socket
import sys
from functools import partial
from pathlib import Path
from typing import cast

import uvicorn

from app import logs
from app.cli.errors import CommandError
from app.cli.listening import NOT_STARTED
from app.cli.open_database import open_database
from app.cli.open_files import backlog, max_connections, raise_limit
from app.keys.service import AuthenticationRequiredError
from app.main import create_app, require_servable
from app.server.api_processes import COUNTS
from app.server.fork import end_process
from app.server.process_name import name_process
from app.server.protocol import ConnectionLimits, HttpProtocol
from app.server.server import Server
from app.server.shared_listener import ConnectionCounts, SharedListener
from app.settings import Settings

SWITCH_SECONDS = 0.0005
"""Time for which a thread that computes, such as a large prediction, keeps the interpreter while the event
loop waits for it. With Python's 5 ms, each step of a small request would wait that long for each thread."""


def serve_api(
    settings: Settings,
    *,
    fd: int | None = None,
    ready_fd: int | None = None,
    shared_dir: Path | None = None,
    number: int = 0,
) -> None:
    """Serve the API until a signal stops the process.

    Args:
        settings: settings of the service.
        fd: descriptor of an inherited listening socket; by default, the server binds host and port.
        ready_fd: descriptor to write one byte to as soon as the server accepts requests.
        shared_dir: folder that the processes of the service share; None if there is only this process.
        number: number of this process among them.

    Raises:
        CommandError: the database is damaged, unavailable or not migrated, or the service needs API keys.
    """
    name_process("api")
    logs.configure(settings)
    sys.setswitchinterval(SWITCH_SECONDS)
    with open_database(settings) as db:
        try:
            require_servable(settings, db)
        except AuthenticationRequiredError as error:
            raise CommandError(str(error)) from error
    app = create_app(settings)
    open_files = raise_limit()
    limits = ConnectionLimits(settings, max_connections(settings.max_connections, open_files))
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        # uvicorn calls it like the class.
        http=cast("type[HttpProtocol]", partial(HttpProtocol, limits=limits)),
        loop="uvloop",  # fails if it is not installed, instead of using the slower one of Python
        backlog=backlog(open_files),
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # the application reads them
        server_header=False,
        timeout_graceful_shutdown=20,
    )
    sockets = [socket.socket(fileno=fd)] if fd is not None else None
    shared = None
    if sockets is not None and shared_dir is not None:
        shared = SharedListener(sockets.pop(), ConnectionCounts(shared_dir / COUNTS), number)
    server = Server(config, app, drain_seconds=settings.drain_seconds, ready_fd=ready_fd, shared=shared)
    try:
        server.run(sockets=sockets)
    except (Exception, SystemExit) as error:  # noqa: BLE001
        # It may listen already. Threads that still run must not keep the process, and with it the port.
        end_process(error)
    if not server.started:
        end_process(SystemExit(NOT_STARTED))  # uvicorn has logged the reason
