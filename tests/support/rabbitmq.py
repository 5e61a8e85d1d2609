"""RabbitMQ for tests: a node of its own, with its own folders, on free ports of this machine.

The node and its port mapper (epmd) listen on loopback addresses only.
Both end with the process that started them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import production
from waiting import LIMIT_SECONDS, wait_for

from app.server.parent_death import end_with_parent

SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"
"""The program of Debian's package. The script of the same name in ``/usr/sbin`` runs a system service."""


class UnavailableError(RuntimeError):
    """There is no RabbitMQ for the tests; the message states the reason."""


def _programs() -> tuple[str, str]:
    """Return the paths of the server and of the port mapper."""
    server = SERVER if os.access(SERVER, os.X_OK) else None
    mapper = shutil.which("epmd")
    if server is None or mapper is None:
        raise UnavailableError("RabbitMQ is not installed (on Debian: the package rabbitmq-server)")
    return server, mapper


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run a server while the block lasts; yields its URL.

    Args:
        folder: an empty folder for its data and logs.

    Raises:
        UnavailableError: if RabbitMQ is not installed or does not start.
    """
    program, mapper_program = _programs()
    port, distribution_port, mapper_port = (production.free_port() for _ in range(3))
    (folder / "plugins").write_text("[].\n")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),  # the cookie of the node
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(mapper_port),
        "RABBITMQ_NODENAME": f"covey-test-{secrets.token_hex(4)}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(distribution_port),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} -noinput",
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "logs"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "no-environment"),
        "RABBITMQ_CONFIG_FILE": str(folder / "no-configuration"),
        # The shell script is replaced by the virtual machine, which then receives the signals.
        "RABBITMQ_ALLOW_INPUT": "1",
    }
    log_path = folder / "log"
    with log_path.open("wb") as log:
        mapper, node = (
            subprocess.Popen(
                command,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=end_with_parent(signal.SIGKILL),  # noqa: PLW1509 - calls nothing that takes a lock
            )
            for command in ([mapper_program, "-address", "127.0.0.1"], [program])
        )

    def listening() -> bool | None:
        if node.poll() is not None:
            raise UnavailableError(f"RabbitMQ does not start: {log_path.read_text(errors='replace')[-2000:]}")
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return None

    try:
        wait_for(listening, what="RabbitMQ")
        yield f"amqp://guest:guest@127.0.0.1:{port}//"
    finally:
        for process in (node, mapper):
            process.terminate()
            process.wait(LIMIT_SECONDS)
