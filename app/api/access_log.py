"""The access log: one line for each request, or for some of them.

Writing a line takes longer than a prediction. By default a line is therefore written for every request only
while requests are rare.
"""

from __future__ import annotations

import time

import structlog

from app.settings import Settings

log = structlog.get_logger()

LINES_PER_SECOND = 10
"""Lines of successful requests of one operation that are written in a second, if lines are sampled."""


class _Window:
    """The lines of one operation in the current second."""

    __slots__ = ("second", "skipped", "written")

    def __init__(self) -> None:
        self.second = self.written = self.skipped = 0


class AccessLog:
    """Write a line for a request that has ended.

    Args:
        settings: decide which requests are logged.
    """

    def __init__(self, settings: Settings) -> None:
        self._kind = settings.access_log
        self._windows: dict[str, _Window] = {}

    def write(self, method: str, path: str, operation: str, status: int, seconds: float) -> None:
        """Write a line, or skip it.

        Args:
            method: method of the request.
            path: path of the request.
            operation: id of the operation; ``none`` if no operation has the path.
            status: status of the response; 0 if none was sent.
            seconds: time from the request to the end of the response.
        """
        skipped: int | None = None
        if 200 <= status < 400 and self._kind != "all":
            if self._kind == "errors":
                return
            window = self._windows.get(operation)
            if window is None:
                window = self._windows[operation] = _Window()
            if (now := int(time.monotonic())) != window.second:
                window.second, window.written = now, 0
            elif window.written >= LINES_PER_SECOND:
                window.skipped += 1
                return
            window.written += 1
            skipped, window.skipped = window.skipped or None, 0
        # Health checks are frequent and would hide the other requests.
        write = log.debug if path.startswith("/health/") else log.info
        fields = {} if skipped is None else {"skipped": skipped}
        write(
            "request",
            method=method,
            operation=operation,
            status=status,
            milliseconds=round(seconds * 1000, 1),
            **fields,
        )
