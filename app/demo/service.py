"""A service of one's own: ``covey serve`` in a temporary folder, for as long as a block lasts."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.parent_death import end_with_parent

READY = "Covey is ready at "


class NotStartedError(RuntimeError):
    """The service ended before it was ready; carries the end of its log."""


@contextmanager
def own_service(port: int = 0) -> Iterator[str]:
    """Start a service, give its URL, and stop it.

    Raises:
        NotStartedError: it did not become ready.
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
                # Ctrl-C is this process's to answer; the service is told to stop afterwards.
                start_new_session=True,
                preexec_fn=end_with_parent(),  # noqa: PLW1509 - calls nothing that takes a lock
            )
        assert process.stdout is not None, "it is a pipe"  # noqa: S101
        try:
            line = process.stdout.readline()
            if not line.startswith(READY):
                raise NotStartedError(log.read_text(errors="replace")[-4000:])
            yield line.removeprefix(READY).strip()
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()
