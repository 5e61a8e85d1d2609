"""Stream the events of jobs as server-sent events, in order, until the job ends.

A stream can also have the progress of its job. These messages have no id, because only the latest one counts.

One poller serves all streams of a process, whatever their number: each tick is one statement about all jobs
that have streams, one about the progress of jobs whose streams have it, and one more for each job that has
new events. A stream that waits holds neither a thread nor a database connection. Each job keeps its latest
messages for all its streams. A client that is too slow, or that starts earlier, reads the older events from
the database.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import Response
from fastapi.sse import EventSourceResponse, format_sse_event
from starlette.types import Receive, Scope, Send

from app.db.session import DATABASE_UNAVAILABLE, Database
from app.errors import Invalid, TooMany
from app.jobs import events
from app.jobs.schemas import JobEvent
from app.settings import Settings
from app.threads import EVENT_STREAMS, REQUESTS

log = structlog.get_logger()

MIN_POLL_SECONDS = 0.25
"""Time between ticks after new events."""

MAX_POLL_SECONDS = 1.0
"""Time between ticks without new events for a while."""

KEEP_ALIVE_SECONDS = 15.0
"""A comment is sent after this time without an event, so that proxies keep the connection open."""

RETRY_SECONDS = 15.0
"""Value of ``Retry-After``. The end of a stream cannot be predicted."""

KEYS_WITH_ALL_STREAMS = 10
"""Number of API keys that together can have all event streams of a process."""

KEPT_MESSAGES = 500
"""Number of messages that a job keeps for its streams."""


_END = events.JobChange([], ended=True)


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


@dataclass
class _Feed:
    """The events of one job that has streams.

    Attributes:
        first: the kept messages are all those after the event with this number.
        last: number of the last event that was read.
        messages: the latest events, each with its number.
        streams: number of streams.
        progress_streams: number of those that have the progress of the job.
        progress: the latest progress; None if it is unknown.
        ended: whether no event will follow: the job has ended, or the poller has stopped.
        changed: set, and replaced, when there are new events or the feed has ended.
    """

    first: int
    last: int
    messages: deque[tuple[int, bytes]] = field(default_factory=deque)
    streams: int = 0
    progress_streams: int = 0
    progress: Mapping[str, Any] | None = None
    ended: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def append(self, event: JobEvent) -> None:
        """Add an event."""
        if len(self.messages) == KEPT_MESSAGES:
            self.first = self.messages.popleft()[0]
        self.messages.append((event.seq, to_message(event)))
        self.last = event.seq

    def notify(self) -> None:
        """Wake all streams that wait."""
        self.changed.set()
        self.changed = asyncio.Event()


class EventStreams:
    """All event streams of one process.

    Args:
        db: the database.
        settings: the limits on the number of streams.
        stopped: whether the process is stopping, so that all streams end.
    """

    def __init__(self, db: Database, settings: Settings, stopped: Callable[[], bool]) -> None:
        self._db = db
        self._per_process = settings.max_event_streams
        self._per_key = max(1, settings.max_event_streams // KEYS_WITH_ALL_STREAMS)
        self._stopped = stopped
        self._lock = threading.Lock()  # requests are admitted in threads
        self._open: Counter[str] = Counter()
        self._feeds: dict[str, _Feed] = {}
        self._new_feed = asyncio.Event()
        self._poller: asyncio.Task[None] | None = None

    def open(self, caller: str, job_id: str, *, after: int, progress: bool = False) -> Response:
        """Return the response with the events of a job after a given one.

        The stream ends with the job. A browser then connects again, until it gets a response without content
        because no event follows. The stream ends early if the process stops or the database is unavailable; a
        client that reconnects with ``Last-Event-ID`` then receives the remaining events.

        Args:
            caller: id of the API key, for the limit.
            job_id: an existing job.
            after: number of the last event that the client has received.
            progress: whether the stream also has the progress of the job.

        Raises:
            TooMany: the key or the process has as many streams as it may have.
        """
        if after and events.changes(self._db, {job_id: after}).get(job_id) == _END:
            return Response(status_code=HTTPStatus.NO_CONTENT)
        with self._lock:
            if self._open.total() >= self._per_process:
                raise self._too_many(f"this service may have {self._per_process} event streams")
            if self._open[caller] >= self._per_key:
                raise self._too_many(f"an API key may have {self._per_key} event streams")
            self._open[caller] += 1
        return _EventStreamResponse(
            self.stream(job_id, after, progress=progress), lambda: self._release(caller)
        )

    async def stream(self, job_id: str, after: int, *, progress: bool = False) -> AsyncGenerator[bytes]:
        """Yield the events of a job after a given one, and its progress, as server-sent events."""
        feed = self._subscribe(job_id, after)
        feed.progress_streams += progress
        shown: Mapping[str, Any] | None = None
        try:
            while True:
                ended, changed = feed.ended, feed.changed
                while after < feed.first:
                    try:
                        older = await REQUESTS.run(events.events_after, self._db, job_id, after)
                    except DATABASE_UNAVAILABLE:
                        return
                    if not older:  # deleted with the job
                        return
                    for event in older:
                        yield to_message(event)
                        after = event.seq
                for number, message in list(feed.messages):
                    if number > after:
                        yield message
                        after = number
                if after < feed.first:  # messages were dropped while the client was receiving others
                    continue
                if ended or self._stopped():
                    return
                if progress and feed.progress is not shown:
                    shown = feed.progress
                    yield format_sse_event(data_str=json.dumps(shown), event="progress")
                    continue  # something may have happened while the client was receiving this
                try:
                    async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                        await changed.wait()
                except TimeoutError:
                    yield format_sse_event(comment="keep-alive")
        finally:
            feed.streams -= 1
            feed.progress_streams -= progress
            if not feed.streams and self._feeds.get(job_id) is feed:
                del self._feeds[job_id]

    async def close(self) -> None:
        """End the poller and all streams."""
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)

    def _subscribe(self, job_id: str, after: int) -> _Feed:
        feed = self._feeds.get(job_id)
        if feed is None:
            feed = self._feeds[job_id] = _Feed(first=after, last=after)
            self._new_feed.set()
        feed.streams += 1
        if self._poller is None:
            self._poller = asyncio.create_task(self._poll())
        return feed

    def _release(self, caller: str) -> None:
        with self._lock:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]

    @staticmethod
    def _too_many(limit: str) -> TooMany:
        return TooMany(
            f"{limit} at the same time in one process; close one, or list the events without a stream",
            code="too_many_streams",
            retry_after=RETRY_SECONDS,
        )

    async def _poll(self) -> None:
        """Read new events for all streams, until no stream is left or the process stops."""
        seconds = MIN_POLL_SECONDS
        try:
            while self._feeds and not self._stopped():
                has_changed = await self._tick()
                seconds = MIN_POLL_SECONDS if has_changed else min(1.5 * seconds, MAX_POLL_SECONDS)
                await self._pause(seconds)
        except DATABASE_UNAVAILABLE as error:
            log.warning("event_streams.ended", reason=type(error).__name__)
        finally:
            self._poller = None
            for feed in self._feeds.values():
                feed.ended = True
                feed.notify()
            self._feeds.clear()

    async def _pause(self, seconds: float) -> None:
        """Wait for a time, or until another job has a stream."""
        try:
            async with asyncio.timeout(seconds):
                await self._new_feed.wait()
        except TimeoutError:
            pass
        self._new_feed.clear()

    async def _tick(self) -> bool:
        """Read new events once. Return whether there were any."""
        watched = {job_id: feed.last for job_id, feed in self._feeds.items()}
        changes = await EVENT_STREAMS.run(events.changes, self._db, watched)
        for job_id, change in changes.items():
            feed = self._feeds.get(job_id)
            if feed is None:
                continue
            for event in change.events:
                if event.seq > feed.last:  # a new feed of the same job may have begun elsewhere
                    feed.append(event)
            if change.ended:
                feed.ended = True
                del self._feeds[job_id]
            feed.notify()
        return await self._read_progress() or bool(changes)

    async def _read_progress(self) -> bool:
        """Read the progress of jobs that have streams of it. Return whether there was any."""
        watched = [job_id for job_id, feed in self._feeds.items() if feed.progress_streams]
        if not watched:
            return False
        found = await EVENT_STREAMS.run(events.progress_of, self._db, watched)
        has_changed = False
        for job_id, progress in found.items():
            feed = self._feeds.get(job_id)
            if feed is not None and progress != feed.progress:
                feed.progress = progress
                feed.notify()
                has_changed = True
        return has_changed


class _EventStreamResponse(EventSourceResponse):
    """Release the stream's place when the response has ended, also if the client was never reached."""

    def __init__(self, stream: AsyncGenerator[bytes], release: Callable[[], None]) -> None:
        super().__init__(stream, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._stream = stream
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()
            await self._stream.aclose()


def to_message(event: JobEvent) -> bytes:
    """Return an event as a server-sent event."""
    data = event.model_dump_json(exclude_none=True)
    return format_sse_event(data_str=data, event=event.type, id=str(event.seq))
