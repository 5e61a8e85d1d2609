"""Streams of server-sent events of jobs: framing, resumption, their end, their cost and their limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rows
from in_process_api import api
from sqlalchemy import delete, event

from app.db import tables
from app.db.session import Database
from app.errors import Invalid, TooMany
from app.jobs import queue
from app.settings import Settings
from app.training import event_streams
from app.training.event_streams import EventStreams, parse_event_id


def open_streams(database: Database, **settings: Any) -> EventStreams:
    return EventStreams(database, Settings(**settings), lambda: False)


def collect(database: Database, job_id: str, *, after: int = 0) -> list[str]:
    """Read a stream to its end."""

    async def read() -> list[str]:
        return [part.decode() async for part in open_streams(database).stream(job_id, after)]

    return asyncio.run(read())


def append(database: Database, job_id: str, n: int = 1) -> None:
    with database.write() as tx:
        for _ in range(n):
            queue.append_event(tx, job_id, "phase")


def finish(database: Database, job_id: str) -> None:
    finish_claimed(database, rows.claimed(database, job_id))


def finish_claimed(database: Database, claim: queue.Claim) -> None:
    with database.write() as tx:
        queue.finish(tx, claim, "succeeded")


@pytest.fixture
def queued_job(database: Database) -> str:
    return rows.queued(database)


@pytest.fixture
def finished_job(database: Database, queued_job: str) -> str:
    finish(database, queued_job)
    return queued_job


@pytest.fixture
def statements(database: Database) -> Iterator[list[str]]:
    """The statements that the database executes."""
    executed: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith("BEGIN"):
            executed.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    yield executed
    event.remove(database.engine, "before_cursor_execute", note)


class Ticks:
    """Lets the poller continue only if the test requests it."""

    def __init__(self) -> None:
        self._allowed = asyncio.Semaphore(0)
        self._paused = asyncio.Semaphore(0)

    async def pause(self, _seconds: float) -> None:
        """Replace the pause of the poller."""
        self._paused.release()
        await self._allowed.acquire()

    async def first(self) -> None:
        """Wait for the end of the first tick."""
        await self._paused.acquire()

    async def next(self) -> None:
        """Let the poller tick once more, and wait for the end of the tick."""
        self._allowed.release()
        await self._paused.acquire()


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    ticks = Ticks()
    monkeypatch.setattr(EventStreams, "_pause", ticks.pause)
    return ticks


def test_every_event_is_one_message_and_the_stream_ends_with_the_job(
    database: Database, finished_job: str
) -> None:
    messages = collect(database, finished_job)
    assert all(message.endswith("\n\n") for message in messages)
    fields = [dict(line.split(": ", 1) for line in message.strip().split("\n")) for message in messages]
    assert [(message["id"], message["event"]) for message in fields] == [
        ("1", "queued"), ("2", "started"), ("3", "succeeded")
    ]  # fmt: skip
    assert [json.loads(message["data"])["seq"] for message in fields] == [1, 2, 3]


def test_a_stream_continues_after_the_last_event_id(database: Database, finished_job: str) -> None:
    assert collect(database, finished_job, after=2) == collect(database, finished_job)[2:]
    assert collect(database, finished_job, after=10**17) == []


def test_an_event_source_that_has_the_last_event_of_a_job_gets_no_content(
    database: Database, queued_job: str
) -> None:
    streams = open_streams(database)
    for after in (0, 1, 10**17):
        assert streams.open("key", queued_job, after=after).status_code == 200  # more events can follow
    finish(database, queued_job)
    assert streams.open("key", queued_job, after=2).status_code == 200
    for after in (3, 10**17):
        assert streams.open("key", queued_job, after=after).status_code == 204


def test_a_stream_has_more_events_than_one_page_or_than_are_kept(
    database: Database, queued_job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_streams, "KEPT_MESSAGES", 3)
    append(database, queued_job, 600)
    finish(database, queued_job)
    numbers = [int(message.split("id: ")[1].split("\n")[0]) for message in collect(database, queued_job)]
    assert numbers == list(range(1, 604))


def test_streams_that_begin_at_different_events_receive_all_that_follow(
    database: Database, queued_job: str, ticks: Ticks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_streams, "KEPT_MESSAGES", 2)
    append(database, queued_job, 4)

    async def run() -> None:
        streams = open_streams(database)

        async def read(after: int) -> list[str]:
            return [part.decode() async for part in streams.stream(queued_job, after)]

        late = asyncio.create_task(read(5))
        await ticks.first()
        early = asyncio.create_task(read(0))
        while len(streams._feeds[queued_job].messages) < 1 and not early.done():
            append(database, queued_job)
            await ticks.next()
        finish(database, queued_job)
        task = asyncio.create_task(ticks.next())
        received = await early
        assert received[5:] == await late
        assert [f"id: {number}\n" in received[number - 1] for number in range(1, 9)] == [True] * 8
        assert len(received) == 8
        task.cancel()
        await streams.close()

    asyncio.run(run())


def test_streams_end_when_the_process_stops(database: Database, queued_job: str) -> None:
    stopped = False

    def is_stopped() -> bool:
        return stopped

    async def run() -> list[bytes]:
        nonlocal stopped
        received = []
        streams = EventStreams(database, Settings(), is_stopped)
        async for message in streams.stream(queued_job, 0):
            received.append(message)
            stopped = True
        return received

    assert len(asyncio.run(run())) == 1


def test_a_stream_with_progress_has_the_latest_one_without_an_id(
    database: Database, queued_job: str, ticks: Ticks
) -> None:
    async def run() -> None:
        streams = open_streams(database)
        claim = rows.claimed(database, queued_job)
        stream, bare = streams.stream(queued_job, 2, progress=True), streams.stream(queued_job, 2)
        others = asyncio.create_task(anext(bare))
        for completed in (1, 2):
            progress = {"phase": "training", "completed": completed, "unit": "rounds"}
            queue.report_progress(database, claim, progress, curve={})
            message = asyncio.create_task(anext(stream))
            while not message.done():
                await ticks.next()
            assert message.result() == f"event: progress\ndata: {json.dumps(progress)}\n\n".encode()
        assert not others.done(), "other streams have only events"
        finish_claimed(database, claim)
        last_tick = asyncio.create_task(ticks.next())
        assert b"event: succeeded" in await others
        assert b"event: succeeded" in await anext(stream)
        assert [part async for part in stream] == []
        last_tick.cancel()
        await bare.aclose()
        await streams.close()

    asyncio.run(run())


def test_a_stream_without_events_has_comments(
    database: Database, queued_job: str, ticks: Ticks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_streams, "KEEP_ALIVE_SECONDS", 0.01)

    async def run() -> None:
        streams = open_streams(database)
        stream = streams.stream(queued_job, 1)
        assert [await anext(stream), await anext(stream)] == [b": keep-alive\n\n"] * 2
        await stream.aclose()
        await streams.close()

    asyncio.run(run())


def test_a_stream_ends_if_its_job_is_deleted(database: Database, queued_job: str, ticks: Ticks) -> None:
    async def run() -> None:
        stream = open_streams(database).stream(queued_job, 1)
        reading = asyncio.create_task(anext(stream, None))
        await ticks.first()
        with database.write() as tx:
            tx.session.execute(delete(tables.Job))
        task = asyncio.create_task(ticks.next())
        assert await reading is None
        task.cancel()

    asyncio.run(run())


def test_streams_end_if_the_database_is_unavailable(
    database: Database, queued_job: str, ticks: Ticks
) -> None:
    async def run() -> None:
        streams = open_streams(database)
        reading = [asyncio.create_task(anext(streams.stream(queued_job, 1), None)) for _ in range(3)]
        await ticks.first()
        with database.write() as tx:
            tx.session.connection().exec_driver_sql("ALTER TABLE job_events RENAME TO unavailable")
        try:
            ticks._allowed.release()
            assert await asyncio.gather(*reading) == [None] * 3
        finally:
            with database.write() as tx:
                tx.session.connection().exec_driver_sql("ALTER TABLE unavailable RENAME TO job_events")

    asyncio.run(run())


@pytest.mark.parametrize("n", [1, 200])
def test_the_number_of_statements_does_not_depend_on_the_number_of_streams(
    database: Database, queued_job: str, statements: list[str], ticks: Ticks, n: int
) -> None:
    n_ticks = 10

    async def run() -> None:
        streams = open_streams(database, max_event_streams=n * event_streams.KEYS_WITH_ALL_STREAMS)
        received: list[bytes] = []

        async def read() -> None:
            async for message in streams.stream(queued_job, 0):
                received.append(message)  # noqa: PERF401 - the test looks at it before the end

        reading = [asyncio.create_task(read()) for _ in range(n)]
        await ticks.first()
        while len(received) < n:
            await asyncio.sleep(0)
        # One statement finds the first event, and one reads it for all streams.
        assert len(statements) == 2
        statements.clear()
        for _ in range(n_ticks):
            await ticks.next()
        assert len(statements) == n_ticks
        finish(database, queued_job)
        statements.clear()
        task = asyncio.create_task(ticks.next())
        await asyncio.gather(*reading)
        assert len(received) == 3 * n
        assert len(statements) == 2
        task.cancel()
        await streams.close()

    asyncio.run(run())


def test_streams_of_several_jobs_share_the_statements(
    database: Database, statements: list[str], ticks: Ticks
) -> None:
    jobs = [rows.queued(database) for _ in range(20)]

    async def run() -> None:
        streams = open_streams(database)
        reading = [asyncio.create_task(anext(streams.stream(job, 1))) for job in jobs]
        await ticks.first()
        statements.clear()
        await ticks.next()
        assert len(statements) == 1
        for task in reading:
            task.cancel()
        await streams.close()

    asyncio.run(run())


async def send_nothing(_message: Any) -> None:
    """Accept a message of a response."""


def test_more_streams_than_allowed_are_rejected_until_one_ends(database: Database, finished_job: str) -> None:
    async def run() -> None:
        streams = open_streams(database, max_event_streams=20)
        first = streams.open("key_1", finished_job, after=0)
        streams.open("key_1", finished_job, after=0)
        with pytest.raises(TooMany, match="an API key may have 2 event streams") as raised:
            streams.open("key_1", finished_job, after=0)
        assert raised.value.code == "too_many_streams"
        assert int(raised.value.headers["Retry-After"]) > 0
        for key in range(2, 11):
            for _ in range(2):
                streams.open(f"key_{key}", finished_job, after=0)
        with pytest.raises(TooMany, match="this service may have 20 event streams"):
            streams.open("key_11", finished_job, after=0)
        await first({"type": "http", "asgi": {"spec_version": "2.4"}}, None, send_nothing)  # type: ignore[arg-type]
        streams.open("key_1", finished_job, after=0)
        await streams.close()

    asyncio.run(run())


def test_a_client_that_disconnects_releases_its_place(database: Database, queued_job: str) -> None:
    async def fail(_message: Any) -> None:
        raise OSError

    async def run() -> None:
        streams = open_streams(database, max_event_streams=1)
        response = streams.open("key_1", queued_job, after=0)
        with pytest.raises(Exception):  # noqa: B017, PT011 - the error of the server does not matter
            await response({"type": "http", "asgi": {"spec_version": "2.4"}}, None, fail)  # type: ignore[arg-type]
        streams.open("key_1", queued_job, after=0)
        assert not streams._feeds
        await streams.close()

    asyncio.run(run())


@pytest.mark.parametrize("header", ["x", "-1", "1.5", ""])
def test_an_id_of_another_stream_is_rejected(header: str) -> None:
    with pytest.raises(Invalid):
        parse_event_id(header)


def test_without_a_header_the_stream_starts_with_the_first_event() -> None:
    assert parse_event_id(None) == 0
    assert parse_event_id("17") == 17


def test_a_client_that_also_accepts_json_gets_a_page(
    tmp_path: Path, migrated_sqlite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with api(tmp_path, migrated_sqlite, monkeypatch) as service:
        path = f"/v1/training-jobs/{service.train(service.dataset())['id']}/events"
        for accept in ("application/json, text/event-stream, application/problem+json", "*/*"):
            page = service.call("GET", path, 200, headers={"Accept": accept})
            assert page["items"][-1]["type"] == "succeeded"
