"""Captures the log lines of a module, whatever was logged before.

A logger keeps the configuration that was in place when it was first used. Another test may have configured
logs since, so that ``structlog.testing.capture_logs`` alone would see nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from unittest import mock

import structlog
from structlog.testing import capture_logs
from structlog.typing import EventDict


@contextmanager
def captured_logs(module: ModuleType) -> Iterator[list[EventDict]]:
    """Collect what a module writes to its ``log``."""
    with capture_logs() as lines, mock.patch.object(module, "log", structlog.get_logger()):
        yield lines
