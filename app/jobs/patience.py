"""Writing what must not be lost because the database is away for a moment."""

from __future__ import annotations

from collections.abc import Callable
from time import sleep
from typing import TypeVar

import structlog

from app.db.session import DATABASE_AWAY, Database, Transaction

log = structlog.get_logger()

FIRST_WAIT_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 2.0

Written = TypeVar("Written")


def persist(
    db: Database, work: Callable[[Transaction], Written], *, give_up: Callable[[], bool] = lambda: False
) -> Written:
    """Do the work in one transaction, again and again while the database is away.

    There is no limit in time: as long as nobody else has taken the job, the right to write still holds
    when the database is back, and when somebody has, the fence in ``work`` says so. The same fence makes
    it safe to repeat a commit whose answer was lost on the way.

    Args:
        db: the database.
        work: what to write; may be called several times.
        give_up: looked at before each wait.

    Raises:
        OperationalError: the database is away, and ``give_up`` said yes; likewise the other errors of
            ``DATABASE_AWAY``.
    """
    wait = FIRST_WAIT_SECONDS
    while True:
        try:
            with db.write() as tx:
                return work(tx)
        except DATABASE_AWAY as error:
            if give_up():
                raise
            log.warning("database.away", reason=type(error).__name__, again_in=wait)
        sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT_SECONDS)
