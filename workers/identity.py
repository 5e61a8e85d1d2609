"""The id of this worker, created once before its processes are forked."""

from __future__ import annotations

from app.ids import new_id

_WORKER_ID = new_id("wrk")


def worker_id() -> str:
    """Return the id under which this worker claims jobs; all its processes share it."""
    return _WORKER_ID
