"""The stream of server-sent events of a job: framing, resumption, keep-alive comments, and its end."""

from __future__ import annotations

import asyncio
import json

import pytest
import rows

from app.db.session import Database
from app.http.errors import Invalid
from app.jobs import queue
from app.training import event_stream
from app.training.event_stream import parse_event_id, stream_events


async def _collect(database: Database, job_id: str, after: int, n_polls: int | None) -> list[str]:
    polls = 0

    def stopped() -> bool:
        nonlocal polls
        polls += 1
        return n_polls is not None and polls > n_polls

    return [part.decode() async for part in stream_events(database, job_id, after=after, stopped=stopped)]


def collect(database: Database, job_id: str, *, after: int = 0, n_polls: int | None = None) -> list[str]:
    """Reads a stream to its end; with ``n_polls``, the process stops after so many polls."""
    return asyncio.run(_collect(database, job_id, after, n_polls))


@pytest.fixture
def queued_job(database: Database, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(event_stream, "POLL_SECONDS", 0.0)
    return rows.queued(database)


@pytest.fixture
def finished_job(database: Database, queued_job: str) -> str:
    claim = rows.claimed(database, queued_job)
    with database.write() as tx:
        queue.finish(tx, claim, "succeeded")
    return queued_job


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


def test_a_stream_ends_when_the_process_stops(database: Database, queued_job: str) -> None:
    assert len(collect(database, queued_job, n_polls=3)) == 1


def test_a_stream_without_events_has_comments(
    database: Database, queued_job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "KEEP_ALIVE_SECONDS", 0.0)
    assert collect(database, queued_job, after=1, n_polls=2) == [": keep-alive\n\n"] * 2


@pytest.mark.parametrize("header", ["x", "-1", "1.5", ""])
def test_an_id_of_another_stream_is_rejected(header: str) -> None:
    with pytest.raises(Invalid):
        parse_event_id(header)


def test_without_a_header_the_stream_starts_with_the_first_event() -> None:
    assert parse_event_id(None) == 0
    assert parse_event_id("17") == 17
