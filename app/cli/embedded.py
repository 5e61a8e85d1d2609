"""``covey serve``: broker, worker and API as child processes of one command, for daily use on one machine.

This process holds the data folder's lock and the listening socket. It starts the others, starts them again
when they die, and stops them: the API, which finishes its requests, and the worker, which hands its jobs
back, then the broker. On SIGHUP it puts a new API and a new worker in the place of the old ones, which stop
when the new ones are ready; no request and no job is lost by it.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import structlog

from app.cli.errors import CommandError
from app.db import schema
from app.db.session import Database
from app.jobs.broker import broker_command, socket_path
from app.keys.service import AuthenticationRequiredError, require_keys
from app.parent_death import end_with_parent
from app.settings import Settings

log = structlog.get_logger()

STOP_SECONDS = 30.0
"""How long a child may take to stop before it is ended."""

START_SECONDS = 60.0
"""How long a new child may take to get ready before the old one is kept instead."""

TEND_SECONDS = 0.2
"""How often the children are looked at."""

SETTLED_SECONDS = 10.0
"""A child that lived this long is started again at once; one that dies sooner waits longer each time."""


class ServeError(CommandError):
    """The embedded stack cannot be started, and why."""


@dataclass
class Child:
    """A process that is kept running.

    Attributes:
        name: for the logs.
        command: what to run.
        files: descriptors it inherits.
    """

    name: str
    command: list[str]
    files: tuple[int, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    wait: float = 0.0
    due: float = field(default_factory=time.monotonic)

    def tend(self) -> None:
        """Start the process if it is not running and its time has come."""
        now = time.monotonic()
        if self.process is not None and (status := self.process.poll()) is not None:
            self.wait = 0.0 if now - self.started > SETTLED_SECONDS else min(max(0.5, 2 * self.wait), 10.0)
            self.due = now + self.wait
            self.process = None
            log.warning("child.died", child=self.name, status=status, again_in=self.wait)
        if self.process is None and now >= self.due:
            self.process = subprocess.Popen(
                self.command,
                pass_fds=self.files,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno(),
                # A terminal's Ctrl-C reaches only this process, which stops the others in order.
                start_new_session=True,
                # If this process is killed, the others stop as if they had been told to.
                preexec_fn=end_with_parent(),  # noqa: PLW1509 - this process has one thread
            )
            self.started = now
            log.info("child.started", child=self.name, pid=self.process.pid)

    def ask_to_stop(self) -> None:
        """Ask the process to stop."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def stop(self) -> None:
        """Ask the process to stop, and end it if it does not."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            log.warning("child.ended_by_force", child=self.name)
            self.process.kill()
            self.process.wait()
        log.info("child.stopped", child=self.name, status=self.process.returncode)


def serve(settings: Settings, ready: Callable[[str], None]) -> None:
    """Run the embedded stack until a signal ends it.

    Args:
        settings: of the service; children read the same from the environment.
        ready: called once with the service's URL.

    Raises:
        ServeError: another one runs on this data folder, or the address cannot be used.
    """
    with _lock(settings.data_dir), _signals() as asked:
        _prepare_database(settings)
        with _listen(settings) as listener:
            url = _url(listener)
            broker = Child("broker", broker_command(settings.data_dir))
            worker = Child("worker", [sys.executable, "-m", "workers"])
            api = Child(
                "api",
                [sys.executable, "-m", "app", "api", "--fd", str(listener.fileno())],
                files=(listener.fileno(),),
            )
            children = [worker, api] if settings.broker_url else [broker, worker, api]
            try:
                announced = False
                while not asked.to_stop:
                    for child in children:
                        child.tend()
                        if child is broker and not announced:
                            _wait_for_broker(settings, asked)
                    if asked.to_renew:
                        asked.to_renew = False
                        for old in (api, worker):
                            _renew(children, old, asked)
                    if not announced and _is_ready(url):
                        announced = True
                        ready(url)
                    time.sleep(TEND_SECONDS)
            finally:
                for child in children:
                    if child is not broker:
                        child.ask_to_stop()
                for child in reversed(children):
                    child.stop()
                _truncate_wal(settings)


@contextmanager
def _lock(data_dir: Path) -> Iterator[None]:
    """The data folder is one stack's at a time."""
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
class _Asked:
    """What signals have asked for."""

    to_stop: bool = False
    to_renew: bool = False


@contextmanager
def _signals() -> Iterator[_Asked]:
    asked = _Asked()

    def stop(_number: int, _frame: object) -> None:
        asked.to_stop = True

    def renew(_number: int, _frame: object) -> None:
        asked.to_renew = True

    handlers = {signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGHUP: renew}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _renew(children: list[Child], child: Child, asked: _Asked) -> None:
    """Put a new process in the place of a child's; the old one stops once the new one is ready.

    If the new one does not get ready, everything stays as it is.
    """
    reading, writing = os.pipe()
    new = Child(
        f"new {child.name}", [*child.command, "--ready-fd", str(writing)], files=(*child.files, writing)
    )
    new.tend()
    os.close(writing)
    deadline = time.monotonic() + START_SECONDS
    said = b""
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while not asked.to_stop and time.monotonic() < deadline:
            for other in children:
                other.tend()
            if select.select([pipe], [], [], TEND_SECONDS)[0]:
                said = pipe.read(1)
                break
    if not said:
        log.error("child.not_renewed", child=child.name)
        new.stop()
        return
    old, child.process, child.started, child.wait = child.process, new.process, new.started, 0.0
    log.info("child.renewed", child=child.name, pid=new.process.pid if new.process else None)
    Child(f"old {child.name}", child.command, process=old).stop()


def _prepare_database(settings: Settings) -> None:
    db = Database(settings.resolved_database_url())
    try:
        schema.migrate(db.engine)
        require_keys(settings, db)
    except (schema.SchemaError, AuthenticationRequiredError) as error:
        raise ServeError(str(error)) from error
    finally:
        db.close()


def _truncate_wal(settings: Settings) -> None:
    """A process that was ended by force leaves the journal behind, with words that were deleted since."""
    db = Database(settings.resolved_database_url())
    try:
        db.truncate_wal()
    finally:
        db.close()


@contextmanager
def _listen(settings: Settings) -> Iterator[socket.socket]:
    """The listening socket; it outlives an API process that dies, so that clients only wait a little."""
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


def _wait_for_broker(settings: Settings, asked: _Asked) -> None:
    """So that the worker's first look finds it; later it may come and go."""
    path = socket_path(settings.data_dir)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and not asked.to_stop:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(str(path))
            except OSError:
                time.sleep(0.02)
            else:
                return


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready", timeout=2.0, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False
