"""Decisions are committed in groups. Each is durable before its request continues; a message has one."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import rows
from fault_proxy import proxy
from new_decisions import decision
from sqlalchemy import delete, event, select, text
from sqlalchemy.exc import OperationalError
from waiting import wait_for

from app.api.structs import unvalidated
from app.db import tables
from app.db.failures import DatabaseFullError, DatabaseReadOnlyError
from app.db.session import Database, database_now
from app.errors import Conflict, NotReady
from app.ids import new_id
from app.routing import decision_rows, decision_writer
from app.routing.decision_rows import DecisionRow
from app.routing.decision_writer import DecisionWriter
from app.routing.schemas import Department

ONLY_SQLITE = pytest.mark.parametrize("kind_of_database", ["sqlite"])
ONLY_POSTGRESQL = pytest.mark.parametrize("kind_of_database", ["postgresql"])


new_department = unvalidated(Department)


def row(message_key: str, response: str = '{"a":1}') -> DecisionRow:
    return DecisionRow(decision(), "rtr_1", message_key, response)


def stored(db: Database) -> dict[str, str]:
    """Ids of the recorded decisions by message."""
    with db.read() as session:
        found = session.execute(select(tables.Decision.message_key, tables.Decision.id)).all()
        assert len({key for key, _ in found}) == len(found)
        return dict(found)


@asynccontextmanager
async def running(db: Database, max_waiting: int = 100) -> AsyncIterator[DecisionWriter]:
    writer = DecisionWriter(db, max_waiting)
    writer.start()
    try:
        yield writer
    finally:
        await writer.stop()


class Inserts:
    """The INSERT statements about decisions on a database, and functions to call around each.

    Attributes:
        sizes: number of rows of each statement.
    """

    def __init__(self, db: Database) -> None:
        self.sizes: list[int] = []
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        event.listen(db.engine, "before_cursor_execute", self._before)
        event.listen(db.engine, "after_cursor_execute", self._after)

    def _before(self, _connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "INSERT INTO decisions" in statement:
            n_values = len(parameters)
            self.sizes.append(
                len(json.loads(parameters[0])) if n_values == 1 else n_values // len(decision_rows.COLUMNS)
            )
            self.before()

    def _after(self, _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "INSERT INTO decisions" in statement:
            self.after()


@contextmanager
def held_commits(db: Database) -> Iterator[None]:
    """Hold a lock in the database, so that no decision can be recorded, until the block ends."""
    other = Database(db.engine.url.render_as_string(hide_password=False))
    with other.engine.connect() as connection:
        if db.engine.dialect.name == "postgresql":
            connection.execute(text("LOCK TABLE decisions IN SHARE MODE"))
        else:
            connection.execution_options(covey_write=True).execute(text("SELECT 1"))
        yield
    other.close()


async def until(condition: Callable[[], object], what: str) -> None:
    await asyncio.to_thread(wait_for, lambda: condition() or None, what=what)


async def start_writes(writer: DecisionWriter, *rows: DecisionRow) -> list[asyncio.Task[Any]]:
    """Start to write rows, in order."""
    tasks = [asyncio.create_task(writer.write(row)) for row in rows]
    await asyncio.sleep(0)  # each has added its row to the queue
    return tasks


def test_a_new_message_has_a_new_decision_with_the_time_of_the_database(database: Database) -> None:
    first = row("k1", '{"text":"caf\u00e9"}')

    async def write() -> None:
        async with running(database) as writer:
            assert await writer.write(first) is None

    with database.read() as session:
        before = database_now(session) - timedelta(milliseconds=1)  # SQLite's clock counts milliseconds
    asyncio.run(write())
    with database.read() as session:
        found = session.get_one(tables.Decision, first.decision.decision_id)
        assert before <= found.created_at <= database_now(session)
        assert (found.router_id, found.router, found.message_key) == ("rtr_1", "desk", "k1")
        assert found.response == {"text": "café"}
        assert (found.shadow, found.feedback, found.feedback_at) == (None, None, None)


def test_the_same_message_has_one_decision_in_a_group_and_later(database: Database) -> None:
    first, second, third, other = row("k", '{"n":1}'), row("k", '{"n":2}'), row("k", '{"n":3}'), row("l")

    async def write() -> None:
        async with running(database) as writer:
            with held_commits(database):
                blocked = await start_writes(writer, row("before"))
                group = await start_writes(writer, first, second, other)
            await asyncio.gather(*blocked)
            assert [await task for task in group] == [None, {"n": 1}, None]
            assert await writer.write(third) == {"n": 1}

    asyncio.run(write())
    assert stored(database)["k"] == first.decision.decision_id
    assert stored(database)["l"] == other.decision.decision_id


def test_decisions_of_consecutive_iterations_of_the_event_loop_share_a_commit(database: Database) -> None:
    inserts = Inserts(database)

    async def write() -> None:
        async with running(database) as writer:
            tasks = await start_writes(writer, row("k1"), row("k2"))
            tasks += await start_writes(writer, row("k3"))
            await asyncio.gather(*tasks)

    asyncio.run(write())
    assert inserts.sizes == [3]


def test_no_request_continues_before_the_commit_and_those_that_wait_form_the_next_group(
    database: Database,
) -> None:
    inserts = Inserts(database)

    async def write() -> None:
        async with running(database) as writer:
            with held_commits(database):
                tasks = await start_writes(writer, row("k0"))
                await until(lambda: inserts.sizes == [1], "the first INSERT")
                tasks += await start_writes(writer, *(row(f"k{n}") for n in range(1, 6)))
                if database.engine.dialect.name == "postgresql":
                    await asyncio.to_thread(rows.wait_for_lock_wait, database)
                assert stored(database) == {}
                assert not any(task.done() for task in tasks)
            assert await asyncio.gather(*tasks) == [None] * 6

    asyncio.run(write())
    assert inserts.sizes == [1, 5]
    assert len(stored(database)) == 6


def test_every_column_of_a_new_decision_is_stored(database: Database) -> None:
    kept_until = datetime(2026, 3, 1, 12, 30, 0, 250_000, tzinfo=UTC)
    labels = ("billing", 'Bücher, "neu"')
    departments = [new_department(label=label, destination="x", score=1.0) for label in labels]
    response = json.dumps({"departments": [{"label": label} for label in labels], "text": "\0"})
    parts = {
        "router": "desk",
        "disposition": "review",
        "sampled": True,
        "model": "m",
        "version": 3,
        "set_probability": 0.1 + 0.2,
    }

    def found(id_: str) -> DecisionRow:
        message = {"message_id": "\0" + "1" * 600, "unknown_words": 0.25}
        recorded = decision(message, decision_id=id_, departments=departments, **parts)
        return DecisionRow(recorded, "rtr_1", "k1", response, "messages/1", kept_until)

    async def write() -> None:
        async with running(database) as writer:
            tasks = await start_writes(writer, found("dec_1"), row("k2"), found("dec_again"))
            assert [await task for task in tasks][:2] == [None] * 2
            assert await writer.write(found("dec_later")) == json.loads(response)

    asyncio.run(write())
    expected = {
        **parts,
        "id": "dec_1",
        "router_id": "rtr_1",
        "message_key": "k1",
        "response": json.loads(response),
        "message_id": "1" * 499,
        "unknown_words": 0.25,
        "kept_message": "messages/1",
        "kept_until": kept_until,
    }
    with database.read() as session:
        statement = select(tables.Decision.__table__).order_by(tables.Decision.message_key)
        full, without_values = session.execute(statement).mappings().all()
        assert {name: full[name] for name in (c.name for c in decision_rows.COLUMNS)} == expected
        later = {name for name, value in full.items() if name not in expected and value is not None}
        assert later == {"created_at"}
        optional = ("version", "message_id", "set_probability", "unknown_words", "kept_message", "kept_until")
        assert [without_values[name] for name in optional] == [None] * len(optional)
        of = tables.DecisionLabel
        assert {
            tuple(label) for label in session.execute(select(of.router_id, of.label, of.decision_id))
        } == {("rtr_1", label, "dec_1") for label in labels}


def test_a_group_is_bounded_in_rows_and_in_size(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_writer, "MAX_GROUP", 4)
    monkeypatch.setattr(decision_writer, "MAX_GROUP_CHARS", 1000)
    inserts = Inserts(database)
    large = f'{{"a":"{"x" * 700}"}}'

    async def write() -> None:
        async with running(database) as writer:
            with held_commits(database):
                tasks = await start_writes(writer, row("k"))
                await until(lambda: inserts.sizes == [1], "the first INSERT")
                tasks += await start_writes(writer, *(row(f"s{n}") for n in range(6)))
                tasks += await start_writes(writer, *(row(f"l{n}", large) for n in range(3)))
            assert await asyncio.gather(*tasks) == [None] * 10

    asyncio.run(write())
    assert inserts.sizes == [1, 4, 3, 1, 1]


def test_two_writers_with_the_same_messages_in_opposite_orders_record_one_decision_each(
    database: Database,
) -> None:
    keys = [f"k{n:02}" for n in range(60)]
    other = Database(database.engine.url.render_as_string(hide_password=False))

    async def write() -> list[list[Any]]:
        async with running(database) as one, running(other) as two:
            with held_commits(database):
                tasks = [
                    await start_writes(writer, *(row(key, f'"{key} {name}"') for key in order))
                    for writer, name, order in ((one, "one", keys), (two, "two", keys[::-1]))
                ]
            return [await asyncio.gather(*group) for group in tasks]

    first, second = asyncio.run(write())
    other.close()
    assert len(stored(database)) == 60
    for key, mine, theirs in zip(keys, first, second[::-1], strict=True):
        assert (mine, theirs) in (
            (None, f"{key} one"),
            (f"{key} two", None),
        )


def test_a_row_that_cannot_be_stored_does_not_fail_its_neighbours(database: Database) -> None:
    inserts = Inserts(database)

    async def write() -> None:
        async with running(database) as writer:
            with held_commits(database):
                first = await start_writes(writer, row("k0"))
                await until(lambda: inserts.sizes == [1], "the first INSERT")
                tasks = await start_writes(writer, row("k1"), row("k2", '"\ud800"'), row("k3"))
            await asyncio.gather(*first)
            assert (await tasks[0], await tasks[2]) == (None, None)
            with pytest.raises(UnicodeEncodeError):
                await tasks[1]
            assert await writer.write(row("k4")) is None

    asyncio.run(write())
    assert set(stored(database)) == {"k0", "k1", "k3", "k4"}


def test_a_decision_that_is_deleted_after_the_insert_found_it_is_recorded_again(database: Database) -> None:
    inserts = Inserts(database)

    def delete_once() -> None:
        inserts.after = lambda: None
        with database.write() as tx:
            tx.session.execute(delete(tables.Decision))

    second = row("k")

    async def write() -> None:
        async with running(database) as writer:
            await writer.write(row("k"))
            inserts.after = delete_once
            assert await writer.write(second) is None

    asyncio.run(write())
    assert stored(database) == {"k": second.decision.decision_id}


def test_a_decision_that_is_always_deleted_is_a_conflict(database: Database) -> None:
    inserts = Inserts(database)
    other = Database(database.engine.url.render_as_string(hide_password=False))

    def delete_it() -> None:
        with other.write() as tx:
            tx.session.execute(delete(tables.Decision))

    def record_it() -> None:
        with other.write() as tx:
            values = {"router_id": "rtr_1", "router": "desk", "message_key": "k", "response": {}}
            tx.session.add(tables.Decision(id=new_id("dec"), created_at=tx.now, **values))

    async def write() -> None:
        async with running(database) as writer:
            inserts.before, inserts.after = record_it, delete_it
            with pytest.raises(Conflict, match="router desk was deleted at the same time"):
                await writer.write(row("k"))
            inserts.before = inserts.after = lambda: None
            assert await writer.write(row("k")) is None

    asyncio.run(write())
    other.close()
    assert inserts.sizes == [1] * (decision_writer.RECORD_ATTEMPTS + 1)


def test_a_cancelled_request_neither_loses_its_decision_nor_disturbs_the_group(database: Database) -> None:
    async def write() -> None:
        async with running(database) as writer:
            with held_commits(database):
                tasks = await start_writes(writer, *(row(f"k{n}") for n in range(3)))
                tasks[1].cancel()
            assert (await tasks[0], await tasks[2]) == (None, None)
            with pytest.raises(asyncio.CancelledError):
                await tasks[1]
            assert await writer.write(row("k1")) == {"a": 1}

    asyncio.run(write())
    assert set(stored(database)) == {"k0", "k1", "k2"}


def test_too_many_waiting_decisions_are_refused_until_the_others_are_recorded(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_writer, "MAX_WAITING_CHARS", 1000)

    async def write() -> None:
        async with running(database, max_waiting=3) as writer:
            for attempt in range(2):
                with held_commits(database):
                    tasks = await start_writes(writer, *(row(f"k{attempt} {n}") for n in range(3)))
                    with pytest.raises(NotReady, match="3 decisions wait for the database") as refused:
                        await writer.write(row("one too many"))
                    assert int(refused.value.headers["Retry-After"]) > 0
                assert await asyncio.gather(*tasks) == [None] * 3
            with held_commits(database):
                tasks = await start_writes(writer, row("large", f'"{"x" * 990}"'))
                with pytest.raises(NotReady):
                    await writer.write(row("too large", f'"{"x" * 20}"'))
            await asyncio.gather(*tasks)

    asyncio.run(write())
    assert len(stored(database)) == 7


def test_a_stop_records_what_waits_and_refuses_the_rest(database: Database) -> None:
    async def write() -> None:
        writer = DecisionWriter(database, 100)
        writer.start()
        with held_commits(database):
            tasks = await start_writes(writer, *(row(f"k{n}") for n in range(3)))
            stopping = asyncio.create_task(writer.stop())
            await asyncio.sleep(0)
            with pytest.raises(NotReady, match="stopping"):
                await writer.write(row("late"))
            assert not stopping.done()
        await stopping
        assert await asyncio.gather(*tasks) == [None] * 3

    asyncio.run(write())
    assert set(stored(database)) == {"k0", "k1", "k2"}
    assert "decision-writer" not in {thread.name for thread in threading.enumerate()}


@ONLY_SQLITE
def test_a_full_disk_fails_every_request_of_the_group_until_there_is_space(database: Database) -> None:
    inserts = Inserts(database)
    limit = "max_page_count = 1"  # SQLite raises it to the size of the file
    event.listen(database.engine, "checkout", lambda connection, *_: connection.execute(f"PRAGMA {limit}"))

    async def write() -> None:
        nonlocal limit
        async with running(database) as writer:
            with held_commits(database):
                first = await start_writes(writer, row("k0"))
                await until(lambda: inserts.sizes == [1], "the first INSERT")
                group = await start_writes(writer, *(row(f"k{n}", f'"{"x" * 50_000}"') for n in range(1, 4)))
            assert await first[0] is None
            results = await asyncio.gather(*group, return_exceptions=True)
            assert [type(result) for result in results] == [DatabaseFullError] * 3
            limit = "max_page_count = 1000000"
            assert await writer.write(row("k1")) is None

    asyncio.run(write())
    assert set(stored(database)) == {"k0", "k1"}


def test_a_read_only_database_only_returns_earlier_decisions(database: Database, tmp_path: Path) -> None:
    async def write_first() -> None:
        async with running(database) as writer:
            await writer.write(row("known", '"first"'))

    asyncio.run(write_first())
    database.close()
    if database.engine.dialect.name == "sqlite":
        url = f"sqlite:///file:{tmp_path / 'covey.db'}?mode=ro&uri=true"
    else:
        options = {"options": "-c default_transaction_read_only=on"}
        read_only_url = database.engine.url.update_query_dict(options, append=True)
        url = read_only_url.render_as_string(hide_password=False)
    read_only = Database(url)

    async def write() -> None:
        async with running(read_only) as writer:
            for _ in range(2):
                tasks = await start_writes(writer, row("new"), row("known"), row("newer"))
                first, second, third = await asyncio.gather(*tasks, return_exceptions=True)
                assert isinstance(first, DatabaseReadOnlyError)
                assert second == "first"
                assert isinstance(third, DatabaseReadOnlyError)

    asyncio.run(write())
    read_only.close()
    assert set(stored(database)) == {"known"}


@ONLY_POSTGRESQL
def test_a_connection_that_broke_between_two_groups_is_replaced(database: Database) -> None:
    async def write() -> None:
        async with running(database) as writer:
            for key in ("k1", "k2", "k3"):
                assert await writer.write(row(key)) is None
                with database.write() as tx:
                    other_sessions = (
                        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
                        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                    )
                    tx.session.execute(text(other_sessions)).all()

    asyncio.run(write())
    assert set(stored(database)) == {"k1", "k2", "k3"}


@ONLY_POSTGRESQL
def test_an_outage_fails_the_requests_that_wait_and_later_ones_succeed(database: Database) -> None:
    server = database.engine.url
    target = (
        Path(str(server.query["host"])) / f".s.PGSQL.{server.port or 5432}"
        if "host" in server.query
        else (server.host or "127.0.0.1", server.port or 5432)
    )
    with proxy(target) as fault:
        url = server.difference_update_query(["host"]).set(host="127.0.0.1", port=fault.port)
        db = Database(url.render_as_string(hide_password=False))

        async def write() -> None:
            async with running(db) as writer:
                assert await writer.write(row("k0")) is None
                with held_commits(database):
                    tasks = await start_writes(writer, row("k1"), row("k2"))
                    await asyncio.to_thread(rows.wait_for_lock_wait, database)
                    fault.refuse()
                    for result in await asyncio.gather(*tasks, return_exceptions=True):
                        assert isinstance(result, OperationalError)
                    with pytest.raises(OperationalError):
                        await writer.write(row("k3"))
                fault.heal()
                assert await writer.write(row("k3")) is None
                await writer.write(row("k1"))  # the server may have committed it after the connection broke

        asyncio.run(write())
        db.close()
    assert {"k0", "k1", "k3"} <= set(stored(database))
