"""Streams large request bodies to storage as they arrive, without holding them in memory."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from functools import partial

from anyio import CancelScope, to_thread

from app.http.errors import TooLarge
from app.storage import Storage


async def receive(storage: Storage, key: str, chunks: AsyncIterator[bytes], *, limit: int, what: str) -> None:
    """Write a body to storage. The file appears under its key only if the whole body arrived.

    Args:
        storage: destination of the body.
        key: storage key of the file.
        chunks: the body.
        limit: largest size in bytes.
        what: name of the content in the error.

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
        # The incomplete file must go even if the client disconnects and this task is cancelled.
        with CancelScope(shield=True):
            suppressed = await to_thread.run_sync(partial(creation.__exit__, *sys.exc_info()))
        assert not suppressed  # noqa: S101 - storage suppresses no exception
        raise
    await to_thread.run_sync(creation.__exit__, None, None, None)
