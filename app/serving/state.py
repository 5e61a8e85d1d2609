"""Keep a snapshot of keys, versions and routers in memory, so that requests need no database to read them.

Every change increments a revision in the database (``app.db.revisions``). A task on the event loop compares
the revisions a few times a second, and reads what has changed, in a thread. A request waits for it only if
the snapshot may be older than what the client knows:

- This process has committed a change since the last check.
- This process has sent a response that may show a change of another process, such as a finished job.

If the database is unavailable, requests continue with the snapshot for a time that a setting limits.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import TypeAlias

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.db import tables
from app.db.session import Database, unavailable_reason
from app.errors import NotFound, NotReady
from app.serving.queries import read_snapshot
from app.serving.snapshot import Numbers, ServedRouter, ServedVersion, Snapshot
from app.settings import Settings
from app.threads import REQUESTS

__all__ = ["Catalog", "ServedRouter", "ServedVersion", "Snapshot"]

log = structlog.get_logger()

FindVersion: TypeAlias = Callable[[Session, str, int | str, str], tables.ModelVersion]

POLL_SECONDS = 0.25
"""Maximum time after which a process looks for changes of keys, aliases and routers that another process has
made."""

CHECK_SECONDS = 5.0
"""Time after which a check that does not end has failed. A request waits at most twice as long."""

MISS_SECONDS = 0.05
"""Minimum time between two checks for requests that name something unknown, such as a wrong key."""

MAX_NUMBERS = 1000
"""Maximum number of versions that the snapshot contains because requests have named their numbers."""

MAX_STUCK = 3
"""Number of checks that may not have ended. Each holds a connection."""


class Catalog:
    """The snapshot of one API process. All methods but ``expire`` belong to the event loop.

    Args:
        db: the database.
        settings: how long to continue without the database, and whether other machines
            can reach the service.
        find_version: reads a version by its number or alias, for a request that names one which the snapshot
            does not have; raises the error for one that does not exist. Its last argument is the JSON
            pointer of the reference.
        before_snapshot: called with the old and a new snapshot before requests use the new one. It must
            neither take long nor raise an exception. The old snapshot is None at the start.
    """

    def __init__(
        self,
        db: Database,
        settings: Settings,
        find_version: FindVersion,
        before_snapshot: Callable[[Snapshot | None, Snapshot], Awaitable[None]] | None = None,
    ) -> None:
        self._db = db
        self._find_version = find_version
        self._before_snapshot = before_snapshot
        self._offline_seconds = settings.offline_seconds
        self._requires_keys = not settings.listens_on_loopback or bool(settings.oidc_issuer)
        self._snapshot: Snapshot | None = None
        self._expires_at = float("-inf")
        # The snapshot is current if no token was created since the beginning of the check that verified it.
        self._wanted = object()
        self._verified: object | None = None
        self._available = True
        self._logged = False
        self._checked_at = self._missed_at = float("-inf")
        self._miss: asyncio.Task[None] | None = None
        self._numbers: Numbers = frozenset()
        self._waiting: list[asyncio.Future[None]] = []
        self._wake = asyncio.Event()
        self._reader = _Reader()
        self._stuck: list[asyncio.Future[Snapshot]] = []
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the first snapshot and start to look for changes.

        Raises:
            SQLAlchemyError: the database is unavailable.
        """
        self._loop = asyncio.get_running_loop()
        self._db.catalog_changed = self._note_commit
        started, token = time.monotonic(), self._wanted
        snapshot = await REQUESTS.run(read_snapshot, self._db)
        if self._before_snapshot is not None:
            await self._before_snapshot(None, snapshot)
        self._accept(snapshot, started, token, frozenset())
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop to look for changes."""
        self._db.catalog_changed = lambda: None
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._miss is not None:
            self._miss.cancel()
        self._release(self._waiting)
        self._reader.stop()

    @property
    def current(self) -> Snapshot | None:
        """The snapshot, or None if a request must call ``fresh``."""
        if self._verified is self._wanted and time.monotonic() < self._expires_at:
            return self._snapshot
        return None

    async def fresh(self) -> Snapshot:
        """Return the snapshot after looking for changes.

        If the database is unavailable, the snapshot can be older.

        Raises:
            NotReady: the database has been unavailable for too long.
        """
        if (snapshot := self.current) is not None:
            return snapshot
        await self._check()
        return self._usable()

    async def after_miss(self) -> Snapshot:
        """Return the snapshot after looking for changes, for a request that names something unknown.

        Requests share the checks, and there are only a few per second, so a flood of wrong keys does not
        become a flood of queries.

        Raises:
            NotReady: the database is unavailable, so it is not known whether it exists.
        """
        if self._miss is None:
            self._miss = asyncio.create_task(self._check_after_pause())
        await asyncio.shield(self._miss)
        if not self._available:
            raise NotReady(
                "this process does not know what the request refers to, and the database is unavailable; "
                "try again",
                code="database_unavailable",
                retry_after=2,
            )
        return self._usable()

    async def resolve(self, model: str, ref: int | str, *, pointer: str = "/version") -> ServedVersion:
        """Return the version with a number, or the version that an alias names.

        Args:
            model: name of the model.
            ref: number of a version, or name of an alias.
            pointer: JSON pointer of the reference in the request, for the error.

        Raises:
            NotFound: there is no such model, version or alias.
            NotReady: the database is unavailable, and this process does not know the version.
        """
        found = (self.current or await self.fresh()).version(model, ref)
        if found is None and isinstance(ref, int):
            if len(self._numbers) >= MAX_NUMBERS:
                self._numbers = frozenset()  # the next request for each of them is a miss
            self._numbers |= {(model, ref)}
        found = found or (await self.after_miss()).version(model, ref)
        return found or await self._missing(model, ref, pointer)

    async def find_router(self, name: str) -> tuple[Snapshot, ServedRouter]:
        """Return the router with a name, and the snapshot that contains it.

        Raises:
            NotFound: there is no such router.
            NotReady: the database is unavailable, and this process does not know the router.
        """
        snapshot = self.current or await self.fresh()
        router = snapshot.router(name)
        if router is None:
            snapshot = await self.after_miss()
            router = snapshot.router(name)
        if router is None:
            raise NotFound(f"there is no router {name}")
        return snapshot, router

    async def _missing(self, model: str, ref: int | str, pointer: str) -> ServedVersion:
        """Raise the error for a version that does not exist; return the version if it has just appeared."""

        def read() -> ServedVersion:
            with self._db.read() as session:
                row = self._find_version(session, model, ref, pointer)
                return ServedVersion(row.model, row.version, row.artifact_key)

        return await REQUESTS.run(read)

    def expire(self) -> None:
        """Let the next request look for changes first. Any thread may call this."""
        self._wanted = object()

    def _note_commit(self) -> None:
        self.expire()
        # The database has just responded, so it is worth waiting for it.
        self._available = True
        with suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(self._wake.set)

    def _usable(self) -> Snapshot:
        if self._snapshot is None or time.monotonic() >= self._expires_at:
            raise NotReady(
                "the database has been unavailable for so long that this process cannot know which API keys "
                "are still valid; try again",
                code="database_unavailable",
                retry_after=5,
            )
        return self._snapshot

    async def _check_after_pause(self) -> None:
        await asyncio.sleep(max(self._checked_at, self._missed_at) + MISS_SECONDS - time.monotonic())
        self._missed_at = time.monotonic()
        self._miss = None  # later requests need another check, which begins later
        await self._check()

    async def _check(self) -> None:
        """Wait for a check that begins now or later. Do not wait if the last one has failed."""
        if not self._available:
            return
        waiter = self._loop.create_future()
        self._waiting.append(waiter)
        self._wake.set()
        await waiter

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._wake.wait()
            self._wake.clear()
            waiting, self._waiting = self._waiting, []
            await self._refresh()
            self._release(waiting)
            if not self._available:
                self._release(self._waiting)

    @staticmethod
    def _release(waiting: list[asyncio.Future[None]]) -> None:
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)
        waiting.clear()

    async def _refresh(self) -> None:
        """Compare the revisions once, and read what has changed. No error may end the task."""
        token, self._checked_at = self._wanted, time.monotonic()
        previous, numbers = self._snapshot, self._numbers
        try:
            snapshot = await self._read(previous, numbers)
            if self._before_snapshot is not None and snapshot is not previous:
                await self._before_snapshot(previous, snapshot)
        except SQLAlchemyError as error:
            self._fail(unavailable_reason(error))
        except Exception as error:  # noqa: BLE001 - logged
            self._fail(str(error) or type(error).__name__)
        else:
            self._accept(snapshot, self._checked_at, token, numbers)

    async def _read(self, previous: Snapshot | None, numbers: Numbers) -> Snapshot:
        """Read a snapshot in a thread.

        Raises:
            SQLAlchemyError: the database is unavailable.
            TimeoutError: the database does not respond.
        """
        self._stuck = [reading for reading in self._stuck if not reading.done()]
        if len(self._stuck) >= MAX_STUCK:
            raise TimeoutError("the database does not respond")
        reading = self._reader.call(lambda: read_snapshot(self._db, previous, numbers))
        await asyncio.wait((reading,), timeout=CHECK_SECONDS)
        if reading.done():
            return reading.result()
        # The connection may hang for ever, although new ones would work.
        self._stuck.append(reading)
        self._reader.stop()
        self._reader = _Reader()
        raise TimeoutError("the database does not respond")

    def _accept(self, snapshot: Snapshot, started: float, token: object, numbers: Numbers) -> None:
        # Once a process has required keys, it does so until it stops.
        self._requires_keys = self._requires_keys or snapshot.requires_keys
        if self._requires_keys and not snapshot.requires_keys:
            snapshot = replace(snapshot, requires_keys=True)
        self._snapshot = snapshot
        # Forget the numbers that do not exist, and keep those that were named during the check.
        self._numbers = (self._numbers - numbers) | (numbers & snapshot.numbers.keys())
        self._expires_at = started + self._offline_seconds
        self._verified = token
        self._available = True
        if self._logged:
            self._logged = False
            log.info("catalog.refreshed")

    def _fail(self, reason: str) -> None:
        self._available = False
        # A name that the database cannot compare must not make every check fail.
        self._numbers &= self._snapshot.numbers.keys() if self._snapshot is not None else frozenset()
        if not self._logged:
            self._logged = True
            log.warning("catalog.not_refreshed", reason=reason)


class _Reader:
    """A thread that makes calls one after the other. A caller can give up a call that does not return."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[
            tuple[Callable[[], Snapshot], asyncio.Future[Snapshot], asyncio.AbstractEventLoop] | None
        ] = SimpleQueue()
        threading.Thread(target=self._run, name="catalog-reader", daemon=True).start()

    def call(self, function: Callable[[], Snapshot]) -> asyncio.Future[Snapshot]:
        """Call a function in the thread."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Snapshot] = loop.create_future()
        self._calls.put((function, future, loop))
        return future

    def stop(self) -> None:
        """End the thread after its current call."""
        self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            function, future, loop = call
            try:
                result = function()
            except BaseException as error:  # noqa: BLE001 - the task gets it
                settle = partial(_settle, future, None, error)
            else:
                settle = partial(_settle, future, result, None)
            with suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(settle)


def _settle(future: asyncio.Future[Snapshot], snapshot: Snapshot | None, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
        future.exception()  # an abandoned call is not an error that was not handled
    elif snapshot is not None:
        future.set_result(snapshot)
