"""The listening socket of a command that starts API processes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from app.cli.errors import CommandError
from app.cli.open_files import backlog, raise_limit
from app.settings import Settings

NOT_STARTED = 3
"""Exit status if the address cannot be used, for example because it is in use."""


@contextmanager
def listen(settings: Settings) -> Iterator[socket.socket]:
    """Open the listening socket. It stays open if an API process dies, so that clients only wait a little.

    The limit of open files is raised first; child processes inherit it.

    Raises:
        CommandError: the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as error:
            raise CommandError(
                f"cannot listen on {settings.host}:{settings.port}: {error.strerror}; choose another --port",
                NOT_STARTED,
            ) from error
        listener.listen(backlog(raise_limit()))
        yield listener


def url_of(listener: socket.socket) -> str:
    """Return the URL under which this machine reaches a listening socket."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104 - shown, not listened on
    return f"http://[{host}]:{port}" if ":" in host and "[" not in host else f"http://{host}:{port}"
