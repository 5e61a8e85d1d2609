"""Retry a write until the database is available."""

from __future__ import annotations

from collections.abc import Callable
from time import sleep
from typing import TypeVar

import structlog

from app.db.session import DATABASE_UNAVAILABLE, Database, Transaction

log = structlog.get_logger()

FIRST_DELAY_SECONDS = 0.1
MAX_DELAY_SECONDS = 2.0

Result = TypeVar("Result")


def write_with_retry(
    db: Database, work: Callable[[Transaction], Result], *, give_up: Callable[[], bool] = lambda: False
) -> Result:
    """Run a write in one transaction, and repeat it while the database is unavailable.

    There is no time limit. As long as no other worker has claimed the job, the claim is still valid when
    the database is back; if another worker has claimed it, the fencing token in ``work`` detects that. The
    same token makes it safe to repeat a commit whose confirmation was lost.

    Args:
        db: the database.
        work: what to write; it may run several times.
        give_up: checked before each delay; if it returns True, the error is raised instead.

    Raises:
        OperationalError: the database is unavailable and ``give_up`` returned True. The other errors of
            ``DATABASE_UNAVAILABLE`` are raised likewise.
    """
    delay = FIRST_DELAY_SECONDS
    while True:
        try:
            with db.write() as tx:
                return work(tx)
        except DATABASE_UNAVAILABLE as error:
            if give_up():
                raise
            log.warning("database.unavailable", reason=type(error).__name__, retry_in=delay)
        sleep(delay)
        delay = min(2 * delay, MAX_DELAY_SECONDS)
