"""Waits for work: by the stream of events of a training job, or by asking again and again."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, nullcontext, suppress

import httpx

from covey_client._async.server_sent_events import read_events
from covey_client._parsing import parse
from covey_client._retry import AT_ONCE, RETRY, STREAM, is_temporary
from covey_client._runtime import AsyncRuntime
from covey_client._work import Work, check, has_ended, path_of, progress_of
from covey_client.errors import CoveyError, WaitTimeout
from covey_client.generated.models import TrainingJob
from covey_client.progress import Progress, Report

STREAM_SECONDS = 45.0
"""A stream of events that is silent for this time is broken; the service sends something every 15 seconds."""

LONGEST_OUTAGE_SECONDS = 300.0
"""How long a wait continues while the service is not available."""

FIRST_POLL_SECONDS = 0.2
LONGEST_POLL_SECONDS = 2.0
REFRESH_SECONDS = 1.0
"""Time between two states of a bar."""

LAST_REQUEST_SECONDS = 5.0
"""How long a request can take after the end of a wait."""


class Waiter:
    """Waits until work has ended.

    Each request is sent once: if it fails, the next one comes soon anyway, and the wait ends in time.

    Args:
        http: sends requests.
        runtime: waits.
        timeout: see ``AsyncCovey``.
    """

    def __init__(self, http: httpx.AsyncClient, runtime: AsyncRuntime, timeout: float) -> None:
        self._http = http
        self._runtime = runtime
        self._timeout = timeout

    async def wait(self, work: Work, report: Report, timeout: float | None, *, refresh: bool) -> Work:
        """Wait until the work has ended, and return it.

        Args:
            work: what to wait for.
            report: receives each state.
            timeout: how long to wait, in seconds; None for ever.
            refresh: whether to ask for the state while the stream of events is silent.

        Raises:
            CoveyError: see ``AsyncCovey.wait``.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            if isinstance(work, TrainingJob):
                await self._watch(work, report, deadline, refresh=refresh)
            current = await self._poll(work, report, deadline)
        except WaitTimeout:
            raise
        except CoveyError as error:
            error.add_note(f"The error occurred while waiting for {work.id}.")
            raise
        check(current)
        return current

    async def _watch(
        self, job: TrainingJob, report: Report, deadline: float | None, *, refresh: bool
    ) -> None:
        async def show() -> None:
            with suppress(CoveyError):  # only for show; the wait itself finds out
                report(progress_of(await self._get(job, deadline)))

        try:
            current = await self._get(job, deadline)
        except CoveyError as error:
            if not is_temporary(error):
                raise
            return
        report(progress_of(current))
        if not has_ended(current):
            async with self._runtime.repeating(REFRESH_SECONDS, show) if refresh else nullcontext():
                await self._follow(job, report, deadline)

    async def _follow(self, job: TrainingJob, report: Report, deadline: float | None) -> None:
        """Read the events of a job until it ends, or until there is no stream or little time left."""
        last_id = ""
        while _has_time(deadline):
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last_id} if last_id else {})}
            request = self._http.build_request(
                "GET",
                f"{path_of(job)}/events",
                headers=headers,
                timeout=httpx.Timeout(self._timeout, read=STREAM_SECONDS),
            )
            request.extensions = {**request.extensions, STREAM: True, RETRY: AT_ONCE}
            try:
                response = await self._http.send(request, stream=True)
            except CoveyError:
                return
            before = last_id
            try:
                if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
                    return
                lines = _while_time(response.aiter_lines(), deadline)
                async with aclosing(read_events(lines)) as events:
                    async for event in events:
                        last_id = event.id or last_id
                        if _report_event(event.data, report):
                            return
            except (httpx.HTTPError, httpx.StreamError):
                pass  # a broken connection, or a service that restarts: continue after the last event
            finally:
                await response.aclose()
            if last_id == before:  # a stream that brings nothing new, such as that of a proxy
                return

    async def _poll(self, work: Work, report: Report, deadline: float | None) -> Work:
        seconds = FIRST_POLL_SECONDS
        available_at = time.monotonic()
        while True:
            pause = seconds
            try:
                current = await self._get(work, deadline)
                available_at = time.monotonic()
                report(progress_of(current))
                if has_ended(current):
                    return current
            except CoveyError as error:
                if not is_temporary(error) or time.monotonic() - available_at > LONGEST_OUTAGE_SECONDS:
                    raise
                pause = max(seconds, getattr(error, "retry_after", None) or 0.0)
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise WaitTimeout(work)
                pause = min(pause, left)
            await self._runtime.sleep(pause)
            seconds = min(1.5 * seconds, LONGEST_POLL_SECONDS)

    async def _get(self, work: Work, deadline: float | None) -> Work:
        left = self._timeout if deadline is None else deadline - time.monotonic()
        request = self._http.build_request(
            "GET", path_of(work), timeout=min(self._timeout, max(left, LAST_REQUEST_SECONDS))
        )
        request.extensions = {**request.extensions, RETRY: AT_ONCE}
        return parse(type(work), await self._http.send(request), httpx.codes.OK)


def _report_event(data: str, report: Report) -> bool:
    """Report the phase of a job's event. Return whether the job has ended."""
    try:
        event = json.loads(data)
        type_, detail = event["type"], event["detail"]
        if type_ == "phase":
            progress = Progress(detail["phase"], detail["completed"], detail.get("total"), detail["unit"])
    except (ValueError, KeyError, TypeError):
        return False
    if type_ == "phase":
        report(progress)
    return type_ in ("succeeded", "failed", "cancelled")


def _has_time(deadline: float | None) -> bool:
    """Whether the next keep-alive of a stream arrives well before the deadline."""
    return deadline is None or deadline - time.monotonic() > STREAM_SECONDS / 2


async def _while_time(lines: AsyncIterator[str], deadline: float | None) -> AsyncGenerator[str]:
    async for line in lines:
        if not _has_time(deadline):
            return
        yield line
