"""Group commit: concurrent requests share one transaction for their decisions.

A commit waits for the disk, and costs a round trip to the database. One transaction for each message would
limit the messages per second to the commits per second. A thread therefore writes all decisions that wait as
one INSERT, which is a transaction of its own. It gets the decisions of consecutive iterations of the event
loop at once, or a part of them if they are many; the decisions that arrive during a commit form the next
group. ``write`` returns after the commit.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from app.db.deadlocks import retry_deadlocks
from app.db.failures import DatabaseStateError
from app.db.session import DATABASE_UNAVAILABLE, Database
from app.errors import Conflict, NotReady
from app.metrics import DECISION_GROUPS
from app.routing import decision_rows
from app.routing.decision_rows import DecisionRow
from app.threads import REQUESTS

MAX_GROUP = 128
"""Maximum number of decisions in one transaction."""

MAX_GROUP_CHARS = 4 * 1024 * 1024
"""Maximum size of the decisions in one transaction that has more than one."""

MAX_WAITING = 2000
"""Maximum number of decisions that wait. Beyond it, messages get 503."""

MAX_WAITING_CHARS = 64 * 1024 * 1024
"""Maximum size of all decisions that wait."""

FLUSH_SIZE = 16
"""Number of decisions that the thread gets without waiting for an iteration that brings none. Larger groups
hardly take less time for each decision, and the thread can write while the event loop computes."""

RECORD_ATTEMPTS = 5
"""How often to record a decision. Each attempt but the first follows the deletion of another decision."""

IDLE_SECONDS = 1.0
"""Time after the last group at which the connection returns to the pool."""

Result = TypeVar("Result")


@dataclass(slots=True, eq=False)
class _Waiting:
    """A decision that waits for its commit, and the outcome.

    Attributes:
        row: the decision.
        future: ends with the outcome.
        stored: the decision of another request on the same message; None if there is none.
        error: why the decision was not recorded; None if it was.
    """

    row: DecisionRow
    future: asyncio.Future[dict[str, Any] | None]
    stored: dict[str, Any] | None = None
    error: Exception | None = None


class DecisionWriter:
    """Record decisions in groups.

    Args:
        db: the database.
        max_waiting: maximum number of decisions that wait for their commit.
    """

    def __init__(self, db: Database, max_waiting: int = MAX_WAITING) -> None:
        self._db = db
        self._max_waiting = max_waiting
        self._stopping = False
        # Only the event loop uses these three.
        self._n_waiting = 0
        self._chars_waiting = 0
        self._arrived: list[_Waiting] = []
        self._queue: queue.SimpleQueue[list[_Waiting] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="decision-writer", daemon=True)
        # Only the thread uses these.
        self._waiting: deque[_Waiting] = deque()
        self._connection: Connection | None = None
        self._exit = ExitStack()
        self._ended = False

    def start(self) -> None:
        """Start the thread. ``write`` can then be called in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self) -> None:
        """Refuse further decisions, write those that wait, and stop the thread."""
        self._stopping = True
        self._flush()
        self._queue.put(None)
        await REQUESTS.run(self._thread.join)

    async def write(self, row: DecisionRow) -> dict[str, Any] | None:
        """Record a decision, unless the router has one for the same message. Returns after the commit.

        If the caller is cancelled, the decision is still recorded.

        Returns:
            The stored decision of another request; None if this one was recorded.

        Raises:
            NotReady: too many decisions wait, or the process is stopping.
            Conflict: the other decision was deleted again and again.
            SQLAlchemyError: the transaction failed.
        """
        if self._stopping:
            raise NotReady("this process is stopping; try again", retry_after=1)
        size = len(row.response)
        if self._n_waiting >= self._max_waiting or self._chars_waiting + size > MAX_WAITING_CHARS:
            raise NotReady(
                f"{self._n_waiting:,} decisions wait for the database; try again",
                retry_after=2,
            )
        self._n_waiting += 1
        self._chars_waiting += size
        future: asyncio.Future[dict[str, Any] | None] = self._loop.create_future()
        if not self._arrived:
            self._loop.call_soon(self._flush_when_quiet, 1)
        self._arrived.append(_Waiting(row, future))
        if len(self._arrived) == FLUSH_SIZE:
            self._flush()
        return await future

    def _flush_when_quiet(self, n_before: int) -> None:
        """Flush as soon as an iteration of the event loop brings no further decision.

        The thread and a busy event loop take the interpreter's lock from each other, which costs more than
        the commit. So requests that have arrived come first, and share the commit.
        """
        n_now = len(self._arrived)
        if n_now > n_before:
            self._loop.call_soon(self._flush_when_quiet, n_now)
        else:
            self._flush()

    def _flush(self) -> None:
        if self._arrived:
            arrived, self._arrived = self._arrived, []
            self._queue.put(arrived)

    def _resolve(self, group: Sequence[_Waiting]) -> None:
        """Wake the requests of a group."""
        self._n_waiting -= len(group)
        for item in group:
            self._chars_waiting -= len(item.row.response)
            if item.future.done():  # the request was cancelled
                continue
            if item.error is not None:
                item.future.set_exception(item.error)
            else:
                item.future.set_result(item.stored)

    # The rest runs in the thread.

    def _run(self) -> None:
        while not self._ended or self._waiting:
            self._receive()
            if group := self._next_group():
                self._record(group)
                with suppress(RuntimeError):  # the event loop is closed, so that no request waits
                    self._loop.call_soon_threadsafe(self._resolve, group)
            else:
                self._disconnect()
        self._disconnect()

    def _receive(self) -> None:
        """Take all decisions that have arrived. If there are none, wait for them, but not for long."""
        try:
            while not self._ended:
                if self._waiting:
                    arrived = self._queue.get_nowait()
                else:
                    arrived = self._queue.get(timeout=None if self._connection is None else IDLE_SECONDS)
                if arrived is None:
                    self._ended = True
                else:
                    self._waiting.extend(arrived)
        except queue.Empty:
            pass

    def _next_group(self) -> list[_Waiting]:
        group: list[_Waiting] = []
        chars = 0
        while self._waiting and len(group) < MAX_GROUP:
            chars += len(self._waiting[0].row.response)
            if group and chars > MAX_GROUP_CHARS:
                break
            group.append(self._waiting.popleft())
        return group

    def _record(self, group: list[_Waiting]) -> None:
        """Record a group, and set the outcome of each decision."""
        DECISION_GROUPS.observe(len(group))
        try:
            self._insert_or_find(group)
        except DATABASE_UNAVAILABLE as error:
            _fail(group, error)
            if isinstance(error, DatabaseStateError):
                # A database that is full or read-only can still return earlier decisions.
                with suppress(*DATABASE_UNAVAILABLE):
                    self._find_stored(group)
        except Exception as error:  # noqa: BLE001 - the requests get it
            if len(group) == 1:
                _fail(group, error)
                return
            # One row can be the reason. The others must not fail with it.
            for item in group:
                self._record([item])

    def _insert_or_find(self, group: Sequence[_Waiting]) -> None:
        # Processes that insert the same rows in different orders would wait for each other.
        left = sorted(group, key=lambda item: (item.row.router_id, item.row.message_key))
        for _ in range(RECORD_ATTEMPTS):
            if self._insert([item.row for item in left]) == len(left):
                return
            # A decision that is not found was deleted after the INSERT had found it.
            left = self._find_stored(left)
            if not left:
                return
        for item in left:
            router = item.row.decision.router
            item.error = Conflict(
                f"the decision on this message by router {router} was deleted at the same time; "
                "send the message again",
                code="conflict",
            )

    def _find_stored(self, group: Sequence[_Waiting]) -> list[_Waiting]:
        """Give each item the stored decision on its message. Return those without one."""
        rows = [item.row for item in group]
        found = self._on_connection(lambda connection: decision_rows.find(connection, rows))
        missing = []
        for item in group:
            id_, stored = found.get((item.row.router_id, item.row.message_key), (None, None))
            if id_ is None:
                missing.append(item)
            else:
                item.error = None
                item.stored = stored if id_ != item.row.decision.decision_id else None
        return missing

    @retry_deadlocks
    def _insert(self, rows: Sequence[DecisionRow]) -> int:
        return self._on_connection(lambda connection: decision_rows.insert(connection, rows))

    def _on_connection(self, run: Callable[[Connection], Result]) -> Result:
        """Run a statement that can be repeated.

        A connection can have broken since its last use. Then the statement is repeated on a new one. If it
        was executed before, the INSERT finds its own rows.
        """
        was_kept = self._connection is not None
        try:
            return run(self._connect())
        except DBAPIError as error:
            self._disconnect()
            if not (was_kept and error.connection_invalidated):
                raise
        return run(self._connect())

    def _connect(self) -> Connection:
        self._db.require_undamaged()
        if self._connection is None:
            connection = self._exit.enter_context(self._db.autocommit())
            decision_rows.prepare(connection)
            self._exit.callback(decision_rows.release, connection)
            self._connection = connection
        return self._connection

    def _disconnect(self) -> None:
        self._connection = None
        self._exit.close()


def _fail(group: Sequence[_Waiting], error: Exception) -> None:
    for item in group:
        item.error = error
