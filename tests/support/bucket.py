"""A server with buckets for tests, that speaks the S3 protocol on a port of this machine."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from waiting import LIMIT_SECONDS, wait_for

from app.parent_death import end_with_parent

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""What a client's environment must say."""


class BucketServer:
    """A running server.

    Args:
        url: where it listens.
        process: the server.
    """

    def __init__(self, url: str, process: subprocess.Popen[bytes]) -> None:
        self.url = url
        self.process = process
        self._numbers = itertools.count(1)

    def make(self) -> str:
        """Make a bucket; gives its URL as the service's settings take it."""
        name = f"covey-test-{next(self._numbers)}"
        httpx.put(f"{self.url}/{name}", trust_env=False, timeout=LIMIT_SECONDS).raise_for_status()
        return f"s3://{name}/some/prefix?endpoint={self.url}&region=us-east-1"

    def unfinished(self, url: str) -> int:
        """How many uploads in parts were begun in a bucket and not ended."""
        name = url.removeprefix("s3://").split("/")[0]
        return httpx.get(f"{self.url}/{name}?uploads", trust_env=False, timeout=LIMIT_SECONDS).text.count(
            "<UploadId>"
        )

    def pause(self) -> None:
        """Let it answer nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again."""
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def server(log: Path) -> Iterator[BucketServer]:
    """A server for as long as the block lasts; what it says is in the log."""
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
            env={**os.environ, **CREDENTIALS},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            preexec_fn=end_with_parent(signal.SIGKILL),  # noqa: PLW1509 - calls nothing that takes a lock
        )

    def listening() -> str | None:
        if process.poll() is not None:
            raise RuntimeError(f"the bucket server does not start: {log.read_text()}")
        found = re.search(r"Running on (http://127\.0\.0\.1:\d+)", log.read_text())
        return found[1] if found else None

    try:
        yield BucketServer(wait_for(listening, what="the bucket server"), process)
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(LIMIT_SECONDS)
