"""``covey api``: the HTTP API in one process, for production."""

from __future__ import annotations

import socket

import uvicorn

from app import logs
from app.cli.errors import CommandError
from app.db.schema import SchemaError
from app.db.session import DATABASE_UNAVAILABLE, Database, unavailable_reason
from app.http.server import Server
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
        CommandError: the database is unavailable or not migrated, or the service needs API keys.
    """
    logs.configure(settings)
    db = Database(settings.resolved_database_url())
    try:
        require_servable(settings, db)
    except (SchemaError, AuthenticationRequiredError) as error:
        raise CommandError(str(error)) from error
    except DATABASE_UNAVAILABLE as error:
        raise CommandError(unavailable_reason(error)) from error
    finally:
        db.close()
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        # h11 limits the size of a request head that does not end; httptools does not.
        http="h11",
        h11_max_incomplete_event_size=settings.max_header_bytes,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=20,
    )
    sockets = [socket.socket(fileno=fd)] if fd is not None else None
    server = Server(config, app, drain_seconds=settings.drain_seconds, ready_fd=ready_fd)
    server.run(sockets=sockets)
    if not server.started:
        raise CommandError(f"cannot listen on {settings.host}:{settings.port}", NOT_STARTED)
