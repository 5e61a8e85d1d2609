"""Checks in a background thread whether the storage contains the versions that routers use."""

from __future__ import annotations

import threading
import time

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.context import AppContext
from app.routing import service as routing
from app.serving.loaded_models import LoadedModels
from app.storage import MissingFileError

log = structlog.get_logger()

CHECK_SECONDS = 10.0
"""Time between two checks, which need a request to the storage for each version."""


class RoutedVersions:
    """Finds the routers whose mail goes to the fallback because their version cannot be loaded.

    Args:
        ctx: the application context.
        loaded: knows which artifacts are damaged although they exist.
    """

    def __init__(self, ctx: AppContext, loaded: LoadedModels) -> None:
        self._ctx = ctx
        self._loaded = loaded
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._finished_at = float("-inf")
        self._problems: list[str] = []

    def problems(self) -> list[str]:
        """Return what the last check has found. Start the next check if it is due, and do not wait for it."""
        with self._lock:
            running = self._thread is not None and self._thread.is_alive()
            if not running and time.monotonic() - self._finished_at >= CHECK_SECONDS:
                self._thread = threading.Thread(target=self._run, name="routed-versions", daemon=True)
                self._thread.start()
        return self._problems

    def _run(self) -> None:
        try:
            problems = self._check()
        except (SQLAlchemyError, OSError):
            problems = []  # readiness reports by itself that the database or the storage is unavailable
        for problem in problems:
            if problem not in self._problems:
                log.error("version.unavailable", reason=problem)
        self._problems = problems
        self._finished_at = time.monotonic()

    def _check(self) -> list[str]:
        damaged = self._loaded.damaged()
        problems = []
        for router, version in routing.used_versions(self._ctx.db):
            try:
                size = self._ctx.storage.size(version.artifact_key)
            except MissingFileError:
                reason = "is missing"
            else:
                if size != version.artifact_bytes:
                    reason = f"has {size} of {version.artifact_bytes} bytes"
                elif version.artifact_key in damaged:
                    reason = f"is damaged ({damaged[version.artifact_key]})"
                else:
                    continue
            problems.append(
                f"the messages of router {router} go to the fallback, because the artifact of version "
                f"{version.version} of {version.model} {reason}; restore it from a backup, or use another "
                "version"
            )
        return problems
