"""HTTP/1.1 on one connection: uvicorn's protocol with limits, and with a problem document for every refusal.

A client that sends nothing, half a head or half a body, or that does not read its response, must not occupy
the process for ever. Each connection is in one of three phases:

- ``HEAD``: the next request has not arrived completely. The head has a time limit and a size limit.
- ``BODY``: the head has arrived, the body has not. The body must grow at a minimum rate.
- ``IDLE``: the request has arrived completely, or none has begun since the last response.

The server calls :meth:`HttpProtocol.check_limits` for each connection about twice a second.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import httptools
import structlog
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from app.api.errors import PROBLEM_JSON, HeadersTooLarge, RequestTimeout, problem_of, status_of
from app.api.request_head import MAX_HEADER_BYTES
from app.errors import BadRequest, NotReady, ServiceError
from app.ids import new_id
from app.server.collected_writes import CollectingTransport, WriteCollector
from app.settings import Settings

log = structlog.get_logger()

HEAD_SECONDS = 20.0
"""Time in which the head of a request must arrive."""

BODY_SECONDS = 30.0
"""Interval in which the rate of an incoming body is checked."""

BODY_BYTES_PER_SECOND = 256
"""Minimum rate at which a body must arrive."""

RESPONSE_SECONDS = 60.0
"""Time in which a client must read some bytes of a waiting response."""

_BODY_HEADERS = frozenset({b"content-length", b"transfer-encoding"})
"""The headers of a request with a body."""

_NO_UPGRADE = (
    "the body of a request that asks for another protocol can be read only if its head arrives in one piece; "
    "send it without the header Upgrade"
)

_UPGRADE = re.compile(rb"(?<=\r\n)upgrade(?=[ \t]*:)", re.IGNORECASE)


class Phase(Enum):
    """The event that a connection waits for; see the module."""

    HEAD = auto()
    BODY = auto()
    IDLE = auto()


@dataclass
class ConnectionLimits:
    """The limits of the connections of one process.

    Attributes:
        settings: how long connections are kept.
        max_connections: maximum number of connections.
        waiting: connections without a running request, the longest waiting first.
        writes: writes to all connections.
    """

    settings: Settings
    max_connections: int
    waiting: dict[HttpProtocol, None] = field(default_factory=dict)
    writes: WriteCollector = field(default_factory=WriteCollector)


class HttpProtocol(HttpToolsProtocol):
    """One connection.

    Args:
        limits: the limits of all connections.
        config: uvicorn's configuration.
        server_state: uvicorn's state.
        app_state: state that each request receives.
        _loop: the event loop.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: ConnectionLimits,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = limits
        self._settings = limits.settings
        self._phase = Phase.HEAD
        self._waited = 0.0  # seconds in this phase or, in a body, since the rate was last checked
        self._received = 0  # bytes in that time
        self._unparsed = 0  # bytes since the last part of a message that the parser completed
        self._unsent = 0  # bytes of responses that the client has not read
        self._unsent_seconds = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection. If there are too many, close the one that has waited longest."""
        super().connection_made(transport)
        self.transport = CollectingTransport(transport, self._limits.writes)
        waiting = self._limits.waiting
        waiting[self] = None
        if len(self.connections) > self._limits.max_connections:
            longest = next(iter(waiting))
            if longest is self:  # all others are busy
                self._refuse(NotReady("this process has too many connections", retry_after=1))
            else:
                del waiting[longest]
                longest.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._limits.waiting.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse bytes of the client."""
        if self._phase is Phase.IDLE and not self._is_busy():
            self._enter(Phase.HEAD)
        if self._phase is Phase.HEAD and not self._received:
            data = _without_upgrade(data)
        self._received += len(data)
        self._unparsed += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # the request is processed as HTTP/1.1
        except httptools.HttpParserError as error:
            log.debug("connection.malformed", reason=type(error).__name__)
            is_upgrade = isinstance(error.__context__, _SkippedBodyError)
            self._refuse(BadRequest(_NO_UPGRADE if is_upgrade else "the request is not valid HTTP/1.1"))
            return
        limit = MAX_HEADER_BYTES
        if self._unparsed > limit and not self.transport.is_closing():
            if self._phase is Phase.BODY:
                self._refuse(BadRequest("the chunks of the body are not valid"))
            else:
                self._refuse(
                    HeadersTooLarge(f"the head of the request is larger than the limit of {limit:,} bytes")
                )

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._unparsed = 0
        if self._phase is not Phase.HEAD:
            self._enter(Phase.HEAD)

    def on_headers_complete(self) -> None:
        """Start to process a request."""
        if (version := self.parser.get_http_version()) not in {"1.0", "1.1"}:
            raise ValueError(f"HTTP version {version}")  # the parser reports it as its own error
        if self.parser.should_upgrade() and any(name in _BODY_HEADERS for name, _ in self.headers):
            raise _SkippedBodyError
        super().on_headers_complete()
        self.headers = []  # of trailers, which are ignored; the request keeps its own list
        self._unparsed = 0
        self._limits.waiting.pop(self, None)
        self._enter(Phase.BODY)

    def on_body(self, body: bytes) -> None:
        """Add to the body of the request."""
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request."""
        super().on_message_complete()
        self._unparsed = 0
        self._enter(Phase.IDLE)

    def on_response_complete(self) -> None:
        """Wait for the next request, or process it if it has arrived."""
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
                return
        if not self._is_busy():
            self.cycle.body.clear()
            self._limits.waiting[self] = None
            self._waited = 0.0

    def check_limits(self, seconds: float) -> None:
        """Close the connection if the client exceeds a time limit.

        Args:
            seconds: time since the last call in which this process ran and could have received data.
        """
        self._check_sending(seconds)
        if self.transport.is_closing():
            return
        self._waited += seconds
        if self._phase is not Phase.BODY and self._is_busy():
            self._waited = 0.0  # the response comes first
        elif self._phase is Phase.IDLE:
            if self._waited > self._settings.keep_alive_seconds:
                self.transport.close()
        elif self._phase is Phase.HEAD:
            if self._waited > HEAD_SECONDS:
                self._time_out(f"the head of the request took longer than {HEAD_SECONDS:g} s")
        elif self.flow.read_paused or self.cycle.waiting_for_100_continue:
            self._enter(Phase.BODY)  # the client cannot send
        elif self._waited > BODY_SECONDS:
            if self._received < BODY_SECONDS * BODY_BYTES_PER_SECOND:
                self._time_out(f"only {self._received:,} bytes of the body arrived in {BODY_SECONDS:g} s")
            else:
                self._enter(Phase.BODY)

    def _check_sending(self, seconds: float) -> None:
        """Abort the connection if the client has read nothing of a waiting response for too long."""
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent != self._unsent:
            self._unsent = unsent
            self._unsent_seconds = 0.0
            return
        self._unsent_seconds += seconds
        if self._unsent_seconds > RESPONSE_SECONDS:
            log.info("connection.timed_out", phase="RESPONSE")
            self.transport.abort()

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self._waited = 0.0
        self._received = 0

    def _is_busy(self) -> bool:
        """Whether a response is incomplete."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _time_out(self, detail: str) -> None:
        log.info("connection.timed_out", phase=self._phase.name)
        if self._phase is Phase.HEAD and not self._received:
            self.transport.close()  # no client waits for a response
        else:
            self._refuse(RequestTimeout(detail))

    def _refuse(self, error: ServiceError) -> None:
        """Close the connection. Send the error first, unless a response is in progress."""
        cycle = self.cycle
        in_progress = self._is_busy() and (
            cycle.response_started or self._phase is not Phase.BODY or bool(self.pipeline)
        )
        if self._is_busy():
            cycle.disconnected = True
            cycle.message_event.set()
        if not in_progress:
            self.transport.write(self._problem(error))
        self.transport.close()

    def _problem(self, error: ServiceError) -> bytes:
        request_id = new_id("req")
        body = problem_of(error, request_id).model_dump_json(exclude_none=True).encode()
        headers = [
            *self.server_state.default_headers,
            (b"content-type", PROBLEM_JSON.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"x-request-id", request_id.encode()),
            (b"connection", b"close"),
            *((name.lower().encode(), value.encode()) for name, value in error.headers.items()),
        ]
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        return STATUS_LINE[status_of(error)] + lines + b"\r\n" + body


class _SkippedBodyError(Exception):
    """A request asks for another protocol, in a head that ``_without_upgrade`` has not seen as a whole."""


def _without_upgrade(data: bytes) -> bytes:
    r"""Rename the header ``Upgrade`` at the beginning of a request, so that the request stays HTTP/1.1.

    The parser skips the body of a request that asks for another protocol, although a server may ignore this
    wish (RFC 9110, section 7.8). The HTTP client of Java asks for HTTP/2 by default.

    >>> _without_upgrade(b"POST / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n\r\nUpgrade: a body")
    b'POST / HTTP/1.1\r\nignored: h2c\r\n\r\n\r\nUpgrade: a body'
    """
    # Only the head is searched, because every request passes here, and its body can be large.
    end = data.find(b"\r\n\r\n")
    if end < 0 or b"upgrade" not in data[:end].lower():
        return data
    return _UPGRADE.sub(b"ignored", data[:end]) + data[end:]
