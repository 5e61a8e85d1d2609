"""Add the decision of a router to a message that a mail server sends, and find loops.

A message is in a loop if it carries the id of the decision that the service has recorded for this very
message: it was routed before, and something has brought it back, such as a department that forwards its mail
to the address that is routed. It is handed on without departments, so that it stays where mail goes that is
not routed. A sender cannot know the id, and so cannot prevent the routing of a message.

Bounces and messages of programs are routed like all others. The filter itself never answers a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal, Protocol, Self

from app.inbound.mail_headers import covey_fields, decision_fields, header_length, header_with
from app.inbound.monitor import Monitor
from app.inbound.routed_message import RoutedMessage
from app.inbound.service_client import NotRoutedError
from app.inbound.smtp.next_hop import line_chunks

MAX_HOPS = 100
"""A message with as many fields ``Received`` is in a loop (RFC 5321, 6.3)."""

WhenUnavailable = Literal["retry", "pass"]
"""The treatment of a message that cannot be routed: its client sends it again later, or it is handed on."""

MAX_DECISIONS = 100
"""How many fields ``X-Covey-Decision`` are read. A filter leaves one in each message."""

MAX_FIELD_BYTES = 4096
"""How much of a field is read."""

_RECEIVED = re.compile(rb"\nreceived[ \t]*+:", re.IGNORECASE)
_DECISION_ID = re.compile(rb"x-covey-decision[ \t]*+:.*?\bid=([\w-]++)", re.IGNORECASE | re.DOTALL)
_MESSAGE_ID = re.compile(rb"\nmessage-id[ \t]*+:[ \t]*+(?:\r\n[ \t]++)?([!-~]{1,500})", re.IGNORECASE)


class TooManyHopsError(Exception):
    """A message has passed so many mail servers that it is in a loop."""


class Router(Protocol):
    """A router of messages, such as ``AsyncRouterClient``."""

    async def route(self, message: bytes, traceparent: str) -> RoutedMessage:
        """Return the recorded decision on a message, or raise ``NotRoutedError``."""
        ...


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message as a mail server sent it, in lines that end in CRLF.

    Attributes:
        content: the message.
        header_bytes: length of the header with the empty line after it.
        decision_ids: ids of the decisions in its fields ``X-Covey-Decision``.
        message_id: its Message-ID, as far as it is ASCII; None if it has none.
    """

    content: bytes
    header_bytes: int
    decision_ids: frozenset[str]
    message_id: str | None

    @classmethod
    def parse(cls, content: bytes) -> Self:
        """Read the header of a message.

        A line that ends in LF alone ends in CRLF afterwards, and so does a line that ends in CR alone before
        or after a dot: receivers disagree about such ends, so that they could be used to smuggle another
        message into this one.

        Raises:
            TooManyHopsError: the message is in a loop.
        """
        content = _with_crlf(content)
        header = b"\n" + content[: header_length(content)]
        if sum(1 for _ in islice(_RECEIVED.finditer(header), MAX_HOPS)) == MAX_HOPS:
            raise TooManyHopsError
        found = (
            _DECISION_ID.match(header[begin : min(end, begin + MAX_FIELD_BYTES)].lstrip(b"\r"))
            for begin, end in covey_fields(header)
        )
        ids = islice((match[1].decode("ascii", "replace") for match in found if match), MAX_DECISIONS)
        message_id = _MESSAGE_ID.search(header)
        return cls(
            content, len(header) - 1, frozenset(ids), message_id[1].decode("ascii") if message_id else None
        )

    def lines_with(self, fields: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        """Return the message with header fields added at its top, in pieces of complete lines.

        The fields ``X-Covey-…`` that it has are removed. The body stays as it is, byte for byte.
        """
        header = header_with(self.content[: self.header_bytes], fields, has_crlf=True)
        return chain([header], line_chunks(self.content, self.header_bytes))


def _with_crlf(content: bytes) -> bytes:
    """Return a message whose lines end in CRLF, see ``IncomingMessage.parse``."""
    content = content.replace(b"\r.", b"\r\n.")
    if content.count(b"\n") != content.count(b"\r\n"):
        content = content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    if b"\n.\r" in content:
        content = content.replace(b"\n.\r", b"\n.\r\n").replace(b"\n.\r\n\n", b"\n.\r\n")
    return content


class MessageFilter:
    """Decide which fields a message gets.

    Args:
        router: routes the messages.
        name: name of the router.
        when_unavailable: what to do with a message that cannot be routed.
        monitor: gets to know whether the service is available.
        review_to: the destination of messages that need a review; None: those of the departments.
    """

    def __init__(
        self,
        router: Router,
        name: str,
        when_unavailable: WhenUnavailable,
        monitor: Monitor,
        review_to: str | None = None,
    ) -> None:
        self._router = router
        self._monitor = monitor
        self._name = name
        self._when_unavailable = when_unavailable
        self._review_to = review_to

    async def fields(self, message: IncomingMessage, traceparent: str) -> list[tuple[str, str]]:
        """Route a message, and return the fields that it gets.

        Args:
            message: the message.
            traceparent: names the trace, see ``new_traceparent``.

        Raises:
            NotRoutedError: the message cannot be routed, and is not to be handed on.
        """
        try:
            decision = await self._router.route(message.content, traceparent)
        except NotRoutedError as error:
            self._monitor.fail("service", error)
            if self._when_unavailable == "retry":
                raise
            return [("X-Covey-Decision", f"not-routed; reason=unavailable; router={self._name}")]
        self._monitor.recover("service")
        if decision.decision_id in message.decision_ids:
            reason = f"not-routed; reason=loop; id={decision.decision_id}; router={decision.router}"
            return [("X-Covey-Decision", reason)]
        return decision_fields(decision.with_review_to(self._review_to))
