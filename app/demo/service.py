"""A temporary service: ``covey serve`` in a temporary folder for the duration of a ``with`` block."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.server.parent_death import end_with_parent

READY_PREFIX = "Covey is ready at "


class NotStartedError(RuntimeError):
    """The service ended before it was ready; the message is the end of its log."""


@contextmanager
def temporary_service(port: int = 0) -> Iterator[str]:
    """Start a service, yield its URL, and stop the service when the block ends.

    Args:
        port: port to listen on; 0 selects a free port.

    Raises:
        NotStartedError: the service did not become ready.
    """
    with tempfile.TemporaryDirectory(prefix="covey-demo-") as folder:
        log = Path(folder) / "covey.log"
        with log.open("wb") as log_file:
            process = subprocess.Popen(
                [sys.executable, "-m", "app", "serve", "--data", f"{folder}/data", "--port", str(port)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log_file,
                text=True,
                # Ctrl-C in a terminal must only reach this process, which then stops the service.
                start_new_session=True,
                preexec_fn=end_with_parent(),  # noqa: PLW1509 - calls nothing that takes a lock
            )
        assert process.stdout is not None, "stdout is a pipe"  # noqa: S101
        try:
            line = process.stdout.readline()
            if not line.startswith(READY_PREFIX):
                raise NotStartedError(log.read_text(errors="replace")[-4000:])
            yield line.removeprefix(READY_PREFIX).strip()
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()
