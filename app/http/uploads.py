"""Large bodies: raw bytes, written to storage as they arrive, never held in memory."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from functools import partial

from anyio import CancelScope, to_thread

from app.http.errors import TooLarge
from app.storage import Storage


async def receive(storage: Storage, key: str, chunks: AsyncIterator[bytes], *, limit: int, what: str) -> None:
    """Write a body to storage; nothing appears under the key unless all of it arrived.

    Args:
        storage: where to.
        key: under which key.
        chunks: the body.
        limit: its largest size in bytes.
        what: what it is, for the error.

    Raises:
        TooLarge: the body is longer than the limit.
    """
    creation = storage.create(key)
    file = await to_thread.run_sync(creation.__enter__)
    try:
        received = 0
        async for chunk in chunks:
            received += len(chunk)
            if received > limit:
                raise TooLarge(f"the {what} is larger than the limit of {limit:,} bytes")
            await to_thread.run_sync(file.write, chunk)
    except BaseException:
        # Also when the client hangs up: the half-written file must go, even though this task is cancelled.
        with CancelScope(shield=True):
            suppressed = await to_thread.run_sync(partial(creation.__exit__, *sys.exc_info()))
        assert not suppressed  # noqa: S101 - storage never swallows
        raise
    await to_thread.run_sync(creation.__exit__, None, None, None)
