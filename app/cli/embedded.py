"""``covey serve``: broker, worker and API as child processes of one command, for daily use on one machine.

The supervisor holds the lock of the data folder and the listening socket. It starts the children and restarts
them if they die. On SIGTERM, it stops the API, which finishes its requests, and the worker, which releases
its jobs, then the broker. On SIGHUP, it replaces first the API, then the worker: the old process stops when
the new one is ready, so no request and no job is lost.
"""

from __future__ import annotations

import fcntl
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import structlog

from app.cli.child_process import POLL_SECONDS, ChildProcess, replace
from app.cli.errors import CommandError
from app.cli.open_database import open_database
from app.cli.open_files import raise_limit
from app.db import schema
from app.jobs.broker import broker_command
from app.keys.service import AuthenticationRequiredError, require_keys
from app.maintenance.storage_setup import prepare_storage
from app.settings import Settings
from app.storage import open_storage

log = structlog.get_logger()


class ServeError(CommandError):
    """The embedded stack cannot start; the message states the reason and the remedy."""


def serve(settings: Settings, on_ready: Callable[[str], None]) -> None:
    """Run the embedded stack until SIGTERM or SIGINT.

    Args:
        settings: settings of the service; the children read the same settings from the environment.
        on_ready: called once with the URL of the service when it is ready.

    Raises:
        ServeError: another service uses the data folder, the address cannot be used, or the service needs
            API keys.
        CommandError: the database is damaged or unavailable, or cannot be migrated.
    """
    raise_limit()
    with _lock(settings.data_dir), _signal_flags() as flags:
        _prepare_database_and_storage(settings)
        with _listen(settings) as listener:
            url = _url(listener)
            broker = ChildProcess("broker", broker_command(settings.data_dir))
            worker = ChildProcess("worker", [sys.executable, "-m", "workers"])
            api = ChildProcess(
                "api",
                [sys.executable, "-m", "app", "api", "--fd", str(listener.fileno())],
                inherited_fds=(listener.fileno(),),
            )
            children = [worker, api] if settings.broker_url else [broker, worker, api]

            def supervise() -> bool:
                """Restart dead children; return false if the service must stop."""
                if flags.stop_requested:
                    return False
                for child in children:
                    child.restart_if_dead()
                return True

            try:
                ready = False
                while supervise():
                    if flags.replace_requested:
                        flags.replace_requested = False
                        for child in (api, worker):
                            replace(child, supervise)
                    if not ready and _is_ready(url):
                        ready = True
                        on_ready(url)
                    time.sleep(POLL_SECONDS)
            finally:
                for child in children:
                    if child is not broker:
                        child.terminate()
                for child in reversed(children):
                    child.stop()
                _truncate_wal(settings)


@contextmanager
def _lock(data_dir: Path) -> Iterator[None]:
    """Hold the lock of the data folder, so that only one service uses it."""
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (data_dir / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ServeError(
                f"another `covey serve` runs on {data_dir}; stop it, or choose another folder with --data"
            ) from error
        yield


@dataclass
class SignalFlags:
    """Requests that have arrived as signals."""

    stop_requested: bool = False
    replace_requested: bool = False


@contextmanager
def _signal_flags() -> Iterator[SignalFlags]:
    """Set flags on SIGTERM, SIGINT and SIGHUP; restore the previous handlers afterwards."""
    flags = SignalFlags()

    def request_stop(_number: int, _frame: object) -> None:
        flags.stop_requested = True

    def request_replacement(_number: int, _frame: object) -> None:
        flags.replace_requested = True

    handlers = {
        signal.SIGTERM: request_stop,
        signal.SIGINT: request_stop,
        signal.SIGHUP: request_replacement,
    }
    previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield flags
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _prepare_database_and_storage(settings: Settings) -> None:
    with open_database(settings) as db:
        schema.migrate(db.engine)
        try:
            require_keys(settings, db)
        except AuthenticationRequiredError as error:
            raise ServeError(str(error)) from error
        # Without its storage, the service starts nevertheless, and readiness gives the reason.
        prepare_storage(db, open_storage(settings))


def _truncate_wal(settings: Settings) -> None:
    """Empty the write-ahead log, which has deleted texts if a process was killed."""
    try:
        with open_database(settings) as db:
            db.truncate_wal()
    except CommandError as error:
        log.warning("database.wal_not_truncated", reason=str(error))


@contextmanager
def _listen(settings: Settings) -> Iterator[socket.socket]:
    """Open the listening socket. It stays open if an API process dies, so that clients only wait a little."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as error:
            raise ServeError(
                f"cannot listen on {settings.host}:{settings.port}: {error.strerror}; choose another --port"
            ) from error
        listener.listen(512)
        yield listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104 - shown, not listened on
    return f"http://[{host}]:{port}" if ":" in host and "[" not in host else f"http://{host}:{port}"


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready", timeout=2.0, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False
