"""``covey api``: the HTTP API in one process, for production."""

from __future__ import annotations

import socket

from app import logs
from app.cli.errors import CommandError
from app.cli.open_database import open_database
from app.http.open_files import raise_limit
from app.http.server import create_server
from app.keys.service import AuthenticationRequiredError
from app.main import create_app, require_servable
from app.settings import Settings

NOT_STARTED = 3
"""Exit status if the server cannot start, for example because the address is in use."""


def serve_api(settings: Settings, *, fd: int | None = None, ready_fd: int | None = None) -> None:
    """Serve the API until a signal stops the process.

    Args:
        settings: settings of the service.
        fd: descriptor of an inherited listening socket; by default, the server binds host and port.
        ready_fd: descriptor to write one byte to as soon as the server accepts requests.

    Raises:
        CommandError: the database is damaged, unavailable or not migrated, or the service needs API keys.
    """
    logs.configure(settings)
    with open_database(settings) as db:
        try:
            require_servable(settings, db)
        except AuthenticationRequiredError as error:
            raise CommandError(str(error)) from error
    server = create_server(create_app(settings), settings, open_files=raise_limit(), ready_fd=ready_fd)
    sockets = [socket.socket(fileno=fd)] if fd is not None else None
    server.run(sockets=sockets)
    if not server.started:
        raise CommandError(f"cannot listen on {settings.host}:{settings.port}", NOT_STARTED)
