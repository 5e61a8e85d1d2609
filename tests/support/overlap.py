"""Runs two operations on PostgreSQL so that the second starts in the middle of the first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import rows
from sqlalchemy import event
from waiting import LIMIT_SECONDS, wait_for

from app.db.session import Database
from app.errors import ServiceError

COMMIT = "COMMIT"

Operation = Callable[[Database], Any]


def overlap(url: str, first: Operation, second: Operation, *, hold: str = COMMIT) -> tuple[Any, Any]:
    """Hold the first operation, start the second, and continue when the second waits or has ended.

    Args:
        url: URL of a PostgreSQL database.
        first: the operation that is held.
        second: the operation that starts in between.
        hold: beginning of the statement before which the first operation is held, or ``COMMIT``.

    Returns:
        the result of each operation; the code of the error if the API would report one.
    """
    one, two, observer = Database(url), Database(url), Database(url)
    held, released = threading.Event(), threading.Event()

    def wait() -> None:
        if not held.is_set():
            held.set()
            assert released.wait(LIMIT_SECONDS)

    if hold == COMMIT:
        event.listen(one.engine, "commit", lambda _: wait())
    else:

        def before(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
            if statement.startswith(hold):
                wait()

        event.listen(one.engine, "before_cursor_execute", before)
    try:
        with ThreadPoolExecutor(2) as pool:
            try:
                first_result = pool.submit(_outcome, first, one)
                wait_for(lambda: held.is_set() or first_result.done() or None, what="the first operation")
                assert held.is_set(), f"the first operation ended: {first_result.result()}"
                second_result = pool.submit(_outcome, second, two)
                wait_for(
                    lambda: second_result.done() or rows.lock_waits(observer) or None,
                    what="the second operation to end or to wait for the first",
                )
            finally:
                released.set()
            return first_result.result(), second_result.result()
    finally:
        for db in (one, two, observer):
            db.close()


def _outcome(operation: Operation, db: Database) -> Any:
    try:
        return operation(db)
    except ServiceError as error:
        return error.code
