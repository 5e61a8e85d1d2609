"""Refuse slow calls of a thread that has a database session open.

A call to the storage, the broker or another service can take any length of time. Inside a transaction it
would keep locks and a connection for that time, and requests that have nothing to do with it would wait.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _OpenSessions(threading.local):
    count = 0


_open = _OpenSessions()


class SessionOpenError(RuntimeError):
    """A bug in Covey: this thread calls another service while it has a database session open."""


@contextmanager
def counted() -> Iterator[None]:
    """Count a session of this thread as open until the block ends."""
    _open.count += 1
    try:
        yield
    finally:
        _open.count -= 1


def refuse_if_any(call: str) -> None:
    """Check that this thread has no session open.

    Args:
        call: what the thread is about to do, for the error.

    Raises:
        SessionOpenError: the thread has a session open.
    """
    if _open.count:
        raise SessionOpenError(f"{call} while a database session is open; call it before or after")
