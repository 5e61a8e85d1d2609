"""Reads server-sent events (the format of `text/event-stream`)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass


@dataclass(frozen=True)
class ServerSentEvent:
    """An event.

    Attributes:
        id: id of the event; empty if it has none.
        data: its data.
    """

    id: str
    data: str


async def read_events(lines: AsyncIterator[str]) -> AsyncGenerator[ServerSentEvent]:
    """Yield the events of a stream. An event that is incomplete at the end is left out."""
    id_ = ""
    data: list[str] = []
    async for line in lines:
        if not line:
            if data:
                yield ServerSentEvent(id_, "\n".join(data))
            data = []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            id_ = value
        elif name == "data":
            data.append(value)
