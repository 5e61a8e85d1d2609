"""The last things that a job's process logged, for whoever has to find out why it died.

Only structured lines of our own are kept, without messages of exceptions, in which a mail's text might
stand; and what the interpreter says when it is struck down: the places in the code, and nothing else.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import sys
import tempfile
from typing import IO

LINES = 20
"""How many of the last lines are kept."""

FAULT_LINES = 10
"""How many lines of what the interpreter said: what happened, and the innermost places in the code."""

_BYTES = 16 * 1024


class LogTail:
    """Two files without a name, written by the job's process and read by the one that started it."""

    def __init__(self) -> None:
        self._lines = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the object
        self._fault = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the object

    def keep(self) -> None:
        """In the job's process: keep what is logged from now on."""
        logging.getLogger().addHandler(_TailHandler(self._lines))
        faulthandler.enable(self._fault)

    def lines(self) -> list[str]:
        """The last lines, oldest first; then what the interpreter said of its end, if anything."""
        fault = [line for line in _read(self._fault) if not line.startswith("Extension modules")]
        return [*_read(self._lines)[-LINES:], *fault[:FAULT_LINES]]

    def close(self) -> None:
        """Forget them."""
        self._lines.close()
        self._fault.close()


class _TailHandler(logging.Handler):
    """Writes structlog's events as JSON lines; what libraries log by themselves is not kept."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file

    def emit(self, record: logging.LogRecord) -> None:
        if not isinstance(record.msg, dict):
            return
        kept = {name: value for name, value in record.msg.items() if name not in ("exc_info", "exception")}
        if record.msg.get("exc_info") and (kind := sys.exc_info()[0]) is not None:
            kept["exception"] = kind.__name__
        self._file.write(json.dumps(kept, default=str).encode() + b"\n")
        self._file.flush()


def _read(file: IO[bytes]) -> list[str]:
    size = file.seek(0, 2)
    file.seek(max(0, size - _BYTES))
    return [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
