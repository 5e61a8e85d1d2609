"""Which worker this is: an id made once, before the pool's processes are forked."""

from __future__ import annotations

from app.ids import new_id

_WORKER_ID = new_id("wrk")


def worker_id() -> str:
    """The id under which this worker claims jobs; the same in all of its processes."""
    return _WORKER_ID
