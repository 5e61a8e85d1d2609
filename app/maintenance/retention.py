"""Retention: deletes what is no longer needed, in small steps that any number of workers can do together.

Each step is one short transaction, with a pause after it, and one pass does a bounded number of steps. So a
writer waits for one step at most, also if years of rows expire at once because a setting was changed. A
worker that dies in between leaves work for the others, but no damage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from app.context import AppContext
from app.maintenance import expired_rows, unused_files

log = structlog.get_logger()


@dataclass(frozen=True)
class RetentionResult:
    """What was deleted.

    Attributes:
        files: number of files.
        rows: number of rows, without the events and curve points of jobs.
    """

    files: int
    rows: int


def apply_retention(ctx: AppContext, stop: Callable[[], bool] = lambda: False) -> RetentionResult:
    """Delete rows that have expired, then files that no row needs.

    Args:
        ctx: the application context.
        stop: checked before each step; if it returns True, the pass ends early.

    Raises:
        OSError: the storage is unavailable. Rows are deleted first, so they do not depend on it.
        SQLAlchemyError: the database is unavailable.
    """
    rows = expired_rows.delete_expired(ctx, stop)
    if any(rows.values()):
        log.info("retention.rows_deleted", **rows)
    result = RetentionResult(unused_files.delete_unused(ctx, stop), sum(rows.values()))
    if result.files:
        log.info("retention.files_deleted", files=result.files)
    return result
