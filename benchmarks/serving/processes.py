"""Starts the servers that the benchmark compares, each as a process on a free port of loopback."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from app.server.parent_death import end_with_parent
from benchmarks.serving.wrk import LoadError

ROOT = Path(__file__).parents[2]

START_SECONDS = 300.0
STOP_SECONDS = 30.0


@dataclass(frozen=True)
class Target:
    """A server and the requests that it gets.

    Attributes:
        url: URL of the requests.
        headers: header fields of all requests, with the media type.
        bodies: file with the bodies.
    """

    url: str
    bodies: Path
    headers: Mapping[str, str] = field(default_factory=dict)

    def at(self, server: str) -> Target:
        """Return the same requests to another server of the same service."""
        return replace(self, url=server + urlsplit(self.url).path)


@contextmanager
def server(
    command: Sequence[str | Path],
    ready_url: str,
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path = ROOT,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server while the block lasts.

    Args:
        command: the program and its arguments.
        ready_url: URL that responds with 200 as soon as the server is ready.
        log: file for the output of the server.
        environment: variables to add to those of this process.
        folder: working directory.

    Raises:
        LoadError: the server ends, or is not ready in time.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=end_with_parent(),  # noqa: PLW1509 - calls nothing that takes a lock
        )
    try:
        _wait(process, ready_url, log)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            if httpx.get(url, timeout=5, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise LoadError(f"{url} is not ready: {log.read_text(errors='replace')[-4000:]}")
