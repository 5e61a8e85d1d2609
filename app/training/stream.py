"""A job's events as server-sent events: the same rows as the list, in their order, until the job ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from anyio import to_thread

from app.db.session import DATABASE_UNAVAILABLE, Database
from app.http.errors import Invalid
from app.http.paging import LARGEST_LIMIT, Page
from app.jobs.queue import FINISHED
from app.training import service

POLL_SECONDS = 0.5
SILENCE_SECONDS = 15.0
"""A comment is sent after so much silence, so that proxies keep the connection."""


def position(last_event_id: str | None) -> int:
    """Where a client that reconnects stopped; 0 for a new one.

    Raises:
        Invalid: not an id that this stream gave.
    """
    if last_event_id is None:
        return 0
    if not last_event_id.isdecimal():
        message = "not an event id of this stream; leave it out to begin at the beginning"
        raise Invalid(message, errors=[("/header/Last-Event-ID", message)])
    return int(last_event_id)


async def events(db: Database, job_id: str, after: int, until: Callable[[], bool]) -> AsyncIterator[str]:
    """The events after a position, as they happen; ends early where its reader has to come back for more.

    Args:
        db: where they are.
        job_id: whose.
        after: the position.
        until: whether to end now.
    """
    said = time.monotonic()
    while not until():
        try:
            # The state is read before the events: once it is final, the events that follow are all there are.
            job = await to_thread.run_sync(service.get, db, job_id)
            page = await to_thread.run_sync(service.events, db, job_id, Page(LARGEST_LIMIT, str(after)))
        except DATABASE_UNAVAILABLE:
            return
        for event in page.items:
            after = event.seq
            said = time.monotonic()
            data = event.model_dump_json(exclude_none=True)
            yield f"id: {event.seq}\nevent: {event.type}\ndata: {data}\n\n"
        if page.next_cursor is not None:
            continue
        if job.state in FINISHED:
            return
        if time.monotonic() - said > SILENCE_SECONDS:
            said = time.monotonic()
            yield ": still here\n\n"
        await asyncio.sleep(POLL_SECONDS)
