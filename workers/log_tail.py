"""The last log lines of a job process, to find out why it died.

Only Covey's structured events are kept, without messages of exceptions, which might quote mail; and the
traceback that the interpreter writes on a fatal signal, which names places in the code and nothing else.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import sys
import tempfile
from typing import IO

LINES = 20
"""Number of log lines to keep."""

FAULT_LINES = 10
"""Number of lines to keep of the interpreter's fatal traceback."""

_BYTES = 16 * 1024


class LogTail:
    """Two unnamed files that the job process writes and the slot reads."""

    def __init__(self) -> None:
        self._lines = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the object
        self._fault = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the object

    def record(self) -> None:
        """In the job process: record what is logged from now on."""
        logging.getLogger().addHandler(_TailHandler(self._lines))
        faulthandler.enable(self._fault)

    def lines(self) -> list[str]:
        """Return the last lines, oldest first, followed by the fatal traceback, if there is one."""
        fault = [line for line in _read(self._fault) if not line.startswith("Extension modules")]
        return [*_read(self._lines)[-LINES:], *fault[:FAULT_LINES]]

    def close(self) -> None:
        """Close and delete the files."""
        self._lines.close()
        self._fault.close()


class _TailHandler(logging.Handler):
    """Write structlog events as JSON lines; ignore what libraries log."""

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
