"""Runs the catalog of an API process in the event loop of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from waiting import LIMIT_SECONDS

from app.db.session import Database
from app.registry.queries import resolve
from app.serving.state import Catalog, Snapshot
from app.settings import Settings


@asynccontextmanager
async def running_catalog(db: Database, settings: Settings | None = None) -> AsyncIterator[Catalog]:
    """Run a catalog until the block ends."""
    catalog = Catalog(db, settings or Settings(), resolve)
    await catalog.start()
    try:
        yield catalog
    finally:
        await catalog.stop()


async def snapshot_with(catalog: Catalog, condition: Callable[[Snapshot], object]) -> Snapshot:
    """Wait until a snapshot fulfils a condition, as requests do that need no fresh one."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while (snapshot := catalog.current) is None or not condition(snapshot):
            await asyncio.sleep(0.01)
    return snapshot
