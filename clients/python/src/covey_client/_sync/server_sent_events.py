# Generated from _async/server_sent_events.py by unasync.py. Change that file instead.
"""Reads server-sent events (the format of `text/event-stream`)."""

from __future__ import annotations

from collections.abc import Generator, Iterator
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


def read_events(lines: Iterator[str]) -> Generator[ServerSentEvent]:
    """Yield the events of a stream. An event that is incomplete at the end is left out."""
    id_ = ""
    data: list[str] = []
    for line in lines:
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
