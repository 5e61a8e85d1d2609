"""Streams the events of a job as server-sent events: the rows of the list, in order, until the job ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from anyio import to_thread
from fastapi.sse import format_sse_event

from app.db.session import DATABASE_UNAVAILABLE, Database
from app.http.errors import Invalid
from app.http.paging import MAX_LIMIT, Page
from app.jobs.queue import FINISHED
from app.training import service

POLL_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 15.0
"""A comment is sent after this time without an event, so that proxies keep the connection open."""


def parse_event_id(last_event_id: str | None) -> int:
    """Convert a ``Last-Event-ID`` header to the number of an event; 0 if there is no header.

    Raises:
        Invalid: the header is not an event id of this stream.
    """
    if last_event_id is None:
        return 0
    if not last_event_id.isdecimal():
        message = "not an event id of this stream; omit the header to start with the first event"
        raise Invalid(message, errors=[("/header/Last-Event-ID", message)])
    return int(last_event_id)


async def stream_events(
    db: Database, job_id: str, *, after: int, stopped: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Yield the events after a given one as they happen.

    The stream ends with the job. It ends early if the process stops or the database is unavailable; a client
    that reconnects with ``Last-Event-ID`` then receives the remaining events.

    Args:
        db: the database.
        job_id: the job.
        after: number of the last event that the client has received.
        stopped: whether to end the stream now.
    """
    last_sent = time.monotonic()
    while not stopped():
        try:
            # The state is read before the events: if it is final, the events read afterwards are complete.
            job = await to_thread.run_sync(service.get, db, job_id)
            page = await to_thread.run_sync(service.events, db, job_id, Page(MAX_LIMIT, str(after)))
        except DATABASE_UNAVAILABLE:
            return
        for event in page.items:
            after = event.seq
            last_sent = time.monotonic()
            data = event.model_dump_json(exclude_none=True)
            yield format_sse_event(data_str=data, event=event.type, id=str(event.seq))
        if page.next_cursor is not None:
            continue
        if job.state in FINISHED:
            return
        if time.monotonic() - last_sent > KEEP_ALIVE_SECONDS:
            last_sent = time.monotonic()
            yield format_sse_event(comment="keep-alive")
        await asyncio.sleep(POLL_SECONDS)
