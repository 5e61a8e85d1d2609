"""``covey serve``: broker, worker and API as child processes of one command, for daily use on one machine.

The supervisor holds the lock of the data folder and the listening socket. It starts the children and restarts
them if they die. On SIGTERM, it stops the API, which finishes its requests, and the worker, which releases
its jobs, then the broker. On SIGHUP, it replaces first the processes of the API one by one, then the worker:
the old process stops when the new one is ready, so no request and no job is lost.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import httpx
import structlog

from app.cli.errors import CommandError
from app.cli.import_once import import_once
from app.cli.listening import listen, url_of
from app.cli.open_database import open_database
from app.db import schema
from app.jobs.broker import broker_command
from app.keys.service import AuthenticationRequiredError, require_keys
from app.maintenance.storage_setup import prepare_storage
from app.server.api_processes import ApiProcesses
from app.server.child_process import ChildProcess
from app.server.program import Program
from app.server.supervisor import supervise
from app.settings import Settings
from app.storage import open_storage

log = structlog.get_logger()


class ServeError(CommandError):
    """The embedded stack cannot start; the message states the reason and what to do."""


def serve(settings: Settings, on_ready: Callable[[str], None]) -> None:
    """Run the embedded stack until SIGTERM or SIGINT.

    Args:
        settings: settings of the service; the children read the same settings from the environment.
        on_ready: called once with the URL of the service when it is ready.

    Raises:
        ServeError: another service uses the data folder, or the service needs API keys.
        CommandError: the address cannot be used, or the database is damaged or unavailable, or cannot be
            migrated.
    """
    with _lock(settings.data_dir) as lock:
        _prepare_database_and_storage(settings)
        with listen(settings) as listener, ApiProcesses(settings, listener, (lock,)) as api:
            url = url_of(listener)
            worker = ChildProcess("worker", Program.python("workers", closed=(lock, listener)))
            children = [worker, *api.children]
            if not settings.broker_url:
                command = broker_command(settings.data_dir)
                children.insert(0, ChildProcess("broker", Program(tuple(command))))
            ready = False

            def report_ready() -> None:
                nonlocal ready
                if not ready and api.all_accept() and _is_ready(url):
                    ready = True
                    on_ready(url)

            import_once(api.shared_dir)
            try:
                supervise(children, [*api.children, worker], report_ready)
            finally:
                _truncate_wal(settings)


@contextmanager
def _lock(data_dir: Path) -> Iterator[TextIO]:
    """Hold the lock of the data folder, so that only one service uses it.

    Yields:
        The locked file. While a process has it open, the folder is locked.
    """
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (data_dir / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ServeError(
                f"another `covey serve` runs on {data_dir}; stop it, or choose another folder with --data"
            ) from error
        yield file


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


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready", timeout=2.0, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False
