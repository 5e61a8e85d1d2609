"""Stream large request bodies to files as they arrive, without holding them in memory."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, TypeVar

from anyio import CancelScope

from app.errors import TooLarge
from app.storage import Storage
from app.threads import STORAGE

Opened = TypeVar("Opened")


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
    async with InStorageThread(storage.create(key)) as file:
        await _write(file, chunks, limit=limit, what=what)


async def receive_file(path: Path, chunks: AsyncIterator[bytes], *, limit: int, what: str) -> str:
    """Write a body to a local file.

    Args:
        path: the file.
        chunks: the body.
        limit: largest size in bytes.
        what: name of the content in the error.

    Returns:
        SHA-256 digest of the body, hexadecimal.

    Raises:
        TooLarge: the body is longer than the limit.
    """
    file = await STORAGE.run(path.open, "wb")
    async with InStorageThread(file):
        return await _write(file, chunks, limit=limit, what=what)


class InStorageThread(AbstractAsyncContextManager[Opened]):
    """Enter and leave a context manager in a storage thread.

    Args:
        manager: the context manager.
    """

    def __init__(self, manager: AbstractContextManager[Opened]) -> None:
        self._manager = manager

    async def __aenter__(self) -> Opened:
        return await STORAGE.run(self._manager.__enter__)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        leave = partial(self._manager.__exit__, kind, error, trace)
        # An incomplete file must go even if the client disconnects and this task is cancelled.
        with CancelScope(shield=True):
            suppressed = await STORAGE.run_patiently(leave)
        assert not suppressed  # noqa: S101 - files and storage suppress no exception


async def _write(file: BinaryIO, chunks: AsyncIterator[bytes], *, limit: int, what: str) -> str:
    """Write a body to an open file; return its SHA-256 digest."""
    digest = hashlib.sha256()
    received = 0
    async for chunk in chunks:
        received += len(chunk)
        if received > limit:
            raise TooLarge(f"the {what} is larger than the limit of {limit:,} bytes")
        digest.update(chunk)
        await STORAGE.run_patiently(file.write, chunk)
    return digest.hexdigest()
