"""A server for tests with buckets and the S3 protocol, on a port of this machine."""

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

from app.server.parent_death import end_with_parent

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Environment variables of a client."""


class BucketServer:
    """A running server.

    Args:
        url: its address.
        process: its process.
    """

    def __init__(self, url: str, process: subprocess.Popen[bytes]) -> None:
        self.url = url
        self.process = process
        self._numbers = itertools.count(1)

    def create(self) -> str:
        """Create a bucket, and return its URL in the form of the setting ``COVEY_STORAGE_URL``."""
        name = f"covey-test-{next(self._numbers)}"
        httpx.put(f"{self.url}/{name}", trust_env=False, timeout=LIMIT_SECONDS).raise_for_status()
        return f"s3://{name}/some/prefix?endpoint={self.url}&region=us-east-1"

    def count_unfinished_uploads(self, url: str) -> int:
        """Return the number of unfinished multipart uploads of a bucket."""
        name = url.removeprefix("s3://").split("/")[0]
        return httpx.get(f"{self.url}/{name}?uploads", trust_env=False, timeout=LIMIT_SECONDS).text.count(
            "<UploadId>"
        )

    def pause(self) -> None:
        """Stop the server's process, so that it does not respond."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the server's process after ``pause``."""
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def server(log: Path) -> Iterator[BucketServer]:
    """Run a server while the block lasts, with its output in a log file."""
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
        address = re.search(r"Running on (http://127\.0\.0\.1:\d+)", log.read_text())
        return address[1] if address else None

    try:
        yield BucketServer(wait_for(listening, what="the bucket server"), process)
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(LIMIT_SECONDS)
