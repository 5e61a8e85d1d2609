"""Group commit: concurrent requests share one transaction for their decisions.

A commit waits for the disk, and costs a round trip to the database. One transaction for each message would
limit the messages per second to the commits per second. A thread therefore writes all decisions that wait as
one INSERT, which is a transaction of its own. It gets the decisions of consecutive iterations of the event
loop at once, or a part of them if they are many; the decisions that arrive during a commit form the next
group. ``write`` returns after the commit.

The statement is the only call of a group to the database. Each such call gives up the interpreter's lock, and
beside a busy event loop it takes up to the switch interval (0.5 ms) to get it back. The labels of the
decisions are therefore inserted by the same statement: by its second part on PostgreSQL, and by a trigger on
SQLite.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar

from anyio import to_thread
from sqlalchemy import Connection, select, tuple_
from sqlalchemy.exc import DBAPIError

from app.db.deadlocks import retry_deadlocks
from app.db.failures import DatabaseStateError
from app.db.session import DATABASE_UNAVAILABLE, Database
from app.db.tables import Decision
from app.errors import Conflict, NotReady
from app.metrics import DECISION_GROUPS

MAX_GROUP = 128
"""Maximum number of decisions in one transaction."""

MAX_GROUP_CHARS = 4 * 1024 * 1024
"""Maximum size of the decisions in one transaction that has more than one."""

MAX_WAITING = 2000
"""Maximum number of decisions that wait. Beyond it, messages get 503."""

MAX_WAITING_CHARS = 64 * 1024 * 1024
"""Maximum size of all decisions that wait."""

HAND_OVER_SIZE = 16
"""Number of decisions that the thread gets without waiting for an iteration that brings none. Larger groups
hardly take less time for each decision, and the thread can write while the event loop computes."""

RECORD_ATTEMPTS = 5
"""How often to record a decision. Each attempt but the first follows the deletion of another decision."""

IDLE_SECONDS = 1.0
"""Time after the last group at which the connection returns to the pool."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """A decision to record.

    Attributes:
        id: id of the decision.
        router_id: id of the router.
        router: name of the router.
        message_key: identifies the message; a router has one decision for each key.
        response: the decision, a JSON text.
        disposition: what becomes of the message. This and the next six attributes are parts of the
            response by which decisions are found.
        sampled: whether the message belongs to the random sample.
        model: name of the model that decided.
        version: number of the version that decided; None if none did.
        message_id: the beginning of the Message-ID; None if the message has none.
        set_probability: probability of the predicted label set; None if it is not known.
        labels: the predicted labels, each once.
        kept_message: key of the file with the message; None if the message is not kept.
        kept_until: when the file is deleted; None if the message is not kept.
        unknown_words: share of words that the version does not know; None if it is not known.
    """

    id: str
    router_id: str
    router: str
    message_key: str
    response: str
    disposition: str | None = None
    sampled: bool = False
    model: str | None = None
    version: int | None = None
    message_id: str | None = None
    set_probability: float | None = None
    labels: tuple[str, ...] = ()
    kept_message: str | None = None
    kept_until: datetime | None = None
    unknown_words: float | None = None


@dataclass(slots=True, eq=False)
class _Waiting:
    """A decision that waits for its commit, and what became of it."""

    row: DecisionRow
    future: asyncio.Future[tuple[dict[str, Any] | None, bool]]
    stored: dict[str, Any] | None = None
    error: Exception | None = None


class DecisionWriter:
    """Records decisions in groups.

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
        self._hand_over()
        self._queue.put(None)
        await to_thread.run_sync(self._thread.join)

    async def write(self, row: DecisionRow) -> tuple[dict[str, Any] | None, bool]:
        """Record a decision, unless the router has one for the same message. Returns after the commit.

        If the caller is cancelled, the decision is still recorded.

        Returns:
            The stored decision of another request and False; or None and True if this one was recorded.

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
        future: asyncio.Future[tuple[dict[str, Any] | None, bool]] = self._loop.create_future()
        if not self._arrived:
            self._loop.call_soon(self._hand_over_all, 1)
        self._arrived.append(_Waiting(row, future))
        if len(self._arrived) == HAND_OVER_SIZE:
            self._hand_over()
        return await future

    def _hand_over_all(self, n_before: int) -> None:
        """Hand over as soon as an iteration of the event loop brings no further decision.

        The thread and a busy event loop take the interpreter's lock from each other, which costs more than
        the commit. So requests that have arrived come first, and share the commit.
        """
        n_now = len(self._arrived)
        if n_now > n_before:
            self._loop.call_soon(self._hand_over_all, n_now)
        else:
            self._hand_over()

    def _hand_over(self) -> None:
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
                item.future.set_result((item.stored, item.stored is None))

    # The rest runs in the thread.

    def _run(self) -> None:
        while not self._ended or self._waiting:
            self._receive()
            if group := self._next_group():
                self._record(group)
                with suppress(RuntimeError):  # the event loop is closed, so that nobody waits
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
        """Record a group, and note what became of each decision."""
        DECISION_GROUPS.observe(len(group))
        try:
            self._insert_or_find(group)
        except DATABASE_UNAVAILABLE as error:
            _fail(group, error)
            if isinstance(error, DatabaseStateError):
                # A database that is full or read-only can still return earlier decisions.
                with suppress(*DATABASE_UNAVAILABLE):
                    self._take_stored(group)
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
            left = self._take_stored(left)
            if not left:
                return
        for item in left:
            item.error = Conflict(
                f"the decision on this message by router {item.row.router} was deleted at the same time; "
                "send the message again",
                code="conflict",
            )

    def _take_stored(self, group: Sequence[_Waiting]) -> list[_Waiting]:
        """Give each item the stored decision on its message. Return those without one."""
        found = self._find([item.row for item in group])
        missing = []
        for item in group:
            id_, stored = found.get((item.row.router_id, item.row.message_key), (None, None))
            if id_ is None:
                missing.append(item)
            else:
                item.error = None
                item.stored = stored if id_ != item.row.id else None
        return missing

    @retry_deadlocks
    def _insert(self, rows: Sequence[DecisionRow]) -> int:
        """Insert the rows whose message has no decision. Return the number of inserted rows."""

        def run(connection: Connection) -> int:
            if connection.dialect.name == "sqlite":
                values = tuple([value for row in rows for value in _values(row)])
                return connection.exec_driver_sql(_sqlite_insert(len(rows)), values).rowcount
            records = json.dumps([_record(row) for row in rows], ensure_ascii=False)
            inserted: int = connection.exec_driver_sql(_POSTGRESQL_INSERT, (records,)).scalar_one()
            return inserted

        return self._on_connection(run)

    def _find(self, rows: Sequence[DecisionRow]) -> dict[tuple[str, str], tuple[str, dict[str, Any]]]:
        """Return id and content of the decisions that exist, by router and message."""
        statement = select(Decision.router_id, Decision.message_key, Decision.id, Decision.response).where(
            tuple_(Decision.router_id, Decision.message_key).in_(
                [(row.router_id, row.message_key) for row in rows]
            )
        )
        found = self._on_connection(lambda connection: connection.execute(statement).all())
        return {(router_id, key): (id_, response) for router_id, key, id_, response in found}

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
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql(_CREATE_TRIGGER)
                self._exit.callback(_drop_trigger, connection)
            self._connection = connection
        return self._connection

    def _disconnect(self) -> None:
        self._connection = None
        self._exit.close()


def _fail(group: Sequence[_Waiting], error: Exception) -> None:
    for item in group:
        item.error = error


_COLUMNS = (
    "id, router_id, router, message_key, response, disposition, sampled, model, version, message_id, "
    "set_probability, kept_message, kept_until, unknown_words, created_at"
)
"""Columns of a new decision. The database's clock gives the time of the decision."""


def _values(row: DecisionRow) -> tuple[Any, ...]:
    """Return the values for SQLite, without the time."""
    until = row.kept_until
    return (
        row.id,
        row.router_id,
        row.router,
        row.message_key,
        row.response,
        row.disposition,
        row.sampled,
        row.model,
        row.version,
        row.message_id,
        row.set_probability,
        row.kept_message,
        None if until is None else until.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f"),
        row.unknown_words,
    )


N_VALUES = 14
"""Number of these values."""


@lru_cache(maxsize=2 * MAX_GROUP)
def _sqlite_insert(n_rows: int) -> str:
    row = f"({'?, ' * N_VALUES}strftime('%Y-%m-%d %H:%M:%f000', 'now'))"
    values = ", ".join([row] * n_rows)
    return f"INSERT INTO decisions ({_COLUMNS}) VALUES {values} ON CONFLICT DO NOTHING"  # noqa: S608 - constants


_CREATE_TRIGGER = """
CREATE TEMP TRIGGER insert_decision_labels AFTER INSERT ON main.decisions BEGIN
    INSERT OR IGNORE INTO decision_labels (router_id, label, decision_id)
    SELECT NEW.router_id, json_extract(value, '$.label'), NEW.id
    FROM json_each(NEW.response, '$.departments');
END
"""
"""Inserts the labels of each decision that the connection inserts; see SQLite's CREATE TRIGGER."""


def _drop_trigger(connection: Connection) -> None:
    """Drop the trigger, because the connection returns to the pool and can then serve a restore."""
    with suppress(DBAPIError):  # the connection is closed
        connection.exec_driver_sql("DROP TRIGGER temp.insert_decision_labels")


def _record(row: DecisionRow) -> dict[str, Any]:
    """Return the values for PostgreSQL, without the time."""
    record: dict[str, Any] = {name: getattr(row, name) for name in _RECORD_FIELDS}
    if row.kept_until is not None:
        record["kept_until"] = row.kept_until.isoformat()
    return record


_RECORD_FIELDS = tuple(field.name for field in fields(DecisionRow))
_POSTGRESQL_INSERT = f"""
WITH given AS (
    SELECT * FROM json_to_recordset(%s::json) AS record (
        id text, router_id text, router text, message_key text, response text, disposition text,
        sampled boolean, model text, version integer, message_id text, set_probability double precision,
        labels json, kept_message text, kept_until timestamptz, unknown_words double precision
    )
), new AS (
    INSERT INTO decisions ({_COLUMNS})
    SELECT id, router_id, router, message_key, response::json, disposition, sampled, model, version,
        message_id, set_probability, kept_message, kept_until, unknown_words, clock_timestamp()
    FROM given
    ON CONFLICT DO NOTHING
    RETURNING id, router_id
), new_labels AS (
    INSERT INTO decision_labels (router_id, label, decision_id)
    SELECT router_id, label, new.id
    FROM new JOIN given USING (id, router_id), json_array_elements_text(given.labels) AS label
)
SELECT count(*) FROM new
"""  # noqa: S608 - constants
"""Inserts decisions with their labels, and returns the number of decisions. Its text is the same for groups
of all sizes, and its only parameter is a text: the driver would take longer for many parameters."""
