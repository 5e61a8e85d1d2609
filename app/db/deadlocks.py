"""Repeat a transaction that the database has ended because it conflicted with another one.

All transactions lock rows in the order that docs/background/architecture.md states, so deadlocks are rare:
they need statements that lock many rows in an order of the database's choice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import structlog
from sqlalchemy.exc import OperationalError

log = structlog.get_logger()

ATTEMPTS = 4
"""How often a transaction is tried before its error is raised."""

SERIALIZATION_FAILURE, DEADLOCK_DETECTED = "40001", "40P01"
"""Codes (SQLSTATE) of PostgreSQL for a transaction that it rolled back in favour of another one."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def retry_deadlocks(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a function that is one transaction: repeat it if the database rolls the transaction back.

    The other transaction has continued at that moment, so the repetition waits for no timer.
    """

    @wraps(function)
    def repeat(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        for attempt in range(1, ATTEMPTS):
            try:
                return function(*args, **kwargs)
            except OperationalError as error:
                if not is_deadlock(error):
                    raise
                log.warning("database.transaction_repeated", attempt=attempt)
        return function(*args, **kwargs)

    return repeat


def is_deadlock(error: OperationalError) -> bool:
    """Return whether the database rolled a transaction back in favour of another one."""
    return getattr(error.orig, "sqlstate", None) in (SERIALIZATION_FAILURE, DEADLOCK_DETECTED)
