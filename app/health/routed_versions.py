"""Check in a background thread whether the versions that routers use exist, and select departments."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from datetime import datetime

import structlog

from app.background import UNAVAILABLE, PeriodicTask
from app.context import AppContext
from app.db import tables
from app.metrics import ROUTER_PROBLEMS
from app.routing import service as routing
from app.routing.policies import NOTHING, create_rule
from app.routing.schemas import RouterPut
from app.serving.loaded_models import LoadedModels
from app.storage import MissingFileError

log = structlog.get_logger()

MAX_KNOWN = 10_000
"""Number of pairs of a router and a version whose thresholds are remembered."""

CHECK_SECONDS = 10.0
"""Time between two checks, which need a request to the storage for each version."""


class RoutedVersions:
    """Find the routers whose mail all goes to the fallback.

    Their version cannot be loaded, or no score exceeds a threshold, because no label reaches its target.

    Args:
        ctx: the application context.
        loaded: knows which artifacts are damaged although they exist, and has the versions in memory.
    """

    def __init__(self, ctx: AppContext, loaded: LoadedModels) -> None:
        self._ctx = ctx
        self._loaded = loaded
        self._lock = threading.Lock()
        self._task = PeriodicTask("routed-versions", self._check, every=None)
        self._is_checking = False
        self._finished_at = float("-inf")
        self._problems: list[str] = []
        self._selects: OrderedDict[tuple[str, datetime, str], bool] = OrderedDict()

    def problems(self) -> list[str]:
        """Return what the last check has found. Start the next check if it is due, and do not wait for it."""
        with self._lock:
            if not self._is_checking and time.monotonic() - self._finished_at >= CHECK_SECONDS:
                self._is_checking = True
                self._task.wake()
        return self._problems

    def close(self) -> None:
        """End the thread, without waiting for a check that has begun."""
        self._task.stop(0.0)

    def _check(self) -> None:
        try:
            problems = self._find_problems()
        except UNAVAILABLE:
            problems = []  # readiness reports by itself that the database or the storage is unavailable
        finally:
            self._finished_at = time.monotonic()
            self._is_checking = False
        for problem in problems:
            if problem not in self._problems:
                log.error("router.unable", reason=problem)
        self._problems = problems
        ROUTER_PROBLEMS.set(len(problems))

    def _find_problems(self) -> list[str]:
        used = routing.used_versions(self._ctx.db)
        problems = [self._lost(router, version) or self._idle(router, version) for router, version in used]
        return [problem for problem in problems if problem is not None]

    def _lost(self, router: tables.Router, version: tables.ModelVersion) -> str | None:
        damaged = self._loaded.damaged()
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
                return None
        return (
            f"the messages of router {router.name} go to the fallback, because the artifact of version "
            f"{version.version} of {version.model} {reason}; restore it from a backup, or use another version"
        )

    def _idle(self, router: tables.Router, version: tables.ModelVersion) -> str | None:
        """Return a problem if no score exceeds a threshold. Only a version in memory tells that."""
        loaded, key = self._loaded.peek(version), (router.id, router.updated_at, version.artifact_key)
        if key not in self._selects and loaded is not None:
            config = RouterPut.model_validate(router.config)
            self._selects[key] = not create_rule(loaded.pipeline, config).rule.predicts_nothing
            while len(self._selects) > MAX_KNOWN:
                self._selects.popitem(last=False)
        if self._selects.get(key, True):
            return None
        return f"router {router.name} with version {version.version} of {version.model}: {NOTHING}"
