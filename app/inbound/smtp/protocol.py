"""One connection of a mail server to ``covey smtp``.

aiosmtpd runs the session. Its commands that carry a message are replaced: they repeat addresses and
parameters to the next hop exactly as the client wrote them, and lines of the content can have any length. The
client gets a positive reply to a message only after the next hop has accepted it. Until then, the client
keeps the message, whatever happens here.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any, ClassVar, cast

import structlog
from aiosmtpd.lmtp import LMTP
from aiosmtpd.smtp import SMTP, Session
from typing_extensions import override

from app.inbound.monitor import Monitor
from app.inbound.service_client import NotRoutedError, new_traceparent
from app.inbound.smtp.filtered_message import MAX_HOPS, IncomingMessage, MessageFilter, TooManyHopsError
from app.inbound.smtp.next_hop import Address, NextHop, Reply, UnavailableError

IDLE_SECONDS = 300.0
"""How long a client may be silent (RFC 5321, 4.5.3.2.7)."""

MESSAGE_SECONDS = 900.0
"""How long the routing and delivery of a message can take. The parts have shorter limits of their own."""

SLOT_SECONDS = 60.0
"""How long a message waits while others are routed. Postfix waits two minutes to send a long one."""

SHORT_BYTES = 256 * 1024
"""Up to this size, any number of messages can arrive at the same time."""

PROGRESS_SECONDS = 60.0
"""Time in which a client must send ``PROGRESS_BYTES`` more of a message, or the rest of it."""

PROGRESS_BYTES = 16 * 1024
"""About the 256 bytes per second that the API requires of its clients."""

BUFFER_BYTES = 65536
"""How much of a connection is buffered."""

MAX_COMMAND_BYTES = 4096
"""Maximum length of a command."""

LOGGED_RECIPIENTS = 20
"""How many recipients of a message are logged."""

LOGGED_REPLIES = 20
"""How many replies of the next hop to a message are logged; LMTP has one for each recipient."""

PASSED_ON = ("8BITMIME", "SMTPUTF8", "DSN", "XFORWARD")
"""Extensions that are announced if the next hop has them: they only concern what is repeated to it."""

_ALL = 2**30
_END = b"\r\n.\r\n"
_PATH = re.compile(r'(<(?:"(?:[^"\\]|\\.)*+"|[^"<>])*+>|[^\s<>]+)(?:[ \t]+(\S.*))?')
_NOT_REPEATABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_SIZE = re.compile(r"(?:^| )SIZE=(\d+)(?: |$)", re.IGNORECASE)
_QUEUE_ID = re.compile(r"(?:^| )IDENT=([!-~]{1,100})", re.IGNORECASE)
_TRY_AGAIN = Reply.of("451 4.4.1 the next hop is not available, try again later")
_NO_TRANSACTION = Reply.of("503 5.5.1 send MAIL first")

log = structlog.get_logger(__name__)


@dataclass
class FilterState:
    """The state that all connections share.

    Attributes:
        next_hop: the server that gets the messages.
        filter: routes the messages.
        monitor: counts the messages.
        clients: networks of the clients that may connect, in addition to this machine.
        max_bytes: maximum size of a message.
        arriving: limits how many long messages are in memory at the same time.
        routing: limits how many messages are routed and handed on at the same time.
        max_connections: how many clients can be connected at the same time.
        connections: the connections.
        closing: ends the sessions with the next hop that are not used any more.
        stopping: whether no more messages are accepted.
    """

    next_hop: Address
    filter: MessageFilter
    monitor: Monitor
    clients: Sequence[IPv4Network | IPv6Network]
    max_bytes: int
    arriving: asyncio.Semaphore
    routing: asyncio.Semaphore
    max_connections: int
    connections: set[FilterProtocol] = field(default_factory=set)
    closing: set[asyncio.Task[None]] = field(default_factory=set)
    stopping: bool = False


class FilterProtocol(SMTP):
    """A connection that speaks SMTP.

    Args:
        state: what all connections share.
    """

    line_length_limit = BUFFER_BYTES
    is_lmtp: ClassVar[bool] = False

    def __init__(self, state: FilterState) -> None:
        super().__init__(
            None,
            data_size_limit=state.max_bytes,
            enable_SMTPUTF8=True,
            hostname=socket.gethostname(),
            ident="Covey",
            timeout=IDLE_SECONDS,
            loop=asyncio.get_running_loop(),
        )
        self.command_size_limits = defaultdict(lambda: MAX_COMMAND_BYTES)
        self._state = state
        self._hop: NextHop | None = None
        self._has_sender = False
        self._n_recipients = 0
        self._recipients: list[str] = []
        self._queue_id: str | None = None
        self._has_message = False

    # The connection

    @override
    async def _handle_client(self) -> None:
        refusal = self._refusal()
        if refusal is not None:
            await self.push(refusal)
            self._writer.close()
            return
        self._state.connections.add(self)
        try:
            await super()._handle_client()
        finally:
            self._state.connections.discard(self)
            self._close_hop()

    @override
    def eof_received(self) -> bool:
        """Close the connection if the client sends no more, also before its first command."""
        super().eof_received()
        return False

    @override
    def _timeout_cb(self) -> None:
        # A connection that is only closed stays open while its client does not read the replies.
        self._writer.transport.abort()

    def _refusal(self) -> str | None:
        peer: Any = self._writer.get_extra_info("peername")
        if isinstance(peer, tuple) and not is_allowed(peer[0], self._state.clients):
            log.warning("smtp.client_refused", client=peer[0])
            return "554 5.7.1 this address is not allowed to send mail here"
        if self._state.stopping:
            return "421 4.3.2 the filter is stopping, try again later"
        if len(self._state.connections) >= self._state.max_connections:
            return "421 4.3.2 too many connections, try again later"
        return None

    def stop(self) -> asyncio.Task[None] | None:
        """Close the connection, or let it finish its message first.

        Returns:
            The task that ends with the connection.
        """
        if not self._has_message:
            self._writer.write(b"421 4.3.2 the filter is stopping, try again later\r\n")
            self._writer.close()
        return self._handler_coroutine

    @override
    async def handle_exception(self, error: Exception) -> str:
        """Return the reply to a command that failed unexpectedly: the client tries again later."""
        log.error("smtp.failed", exc_info=error)
        await self._end_transaction(abort=True)
        return "451 4.3.0 internal error, try again later"

    # The commands

    @override
    async def smtp_EHLO(self, hostname: str) -> None:
        """Begin a session with the extensions that the next hop has."""
        if not hostname:
            await self.push("501 5.5.4 a host name is missing")
            return
        await self._end_transaction()
        try:
            hop = await self._connected()
        except UnavailableError as error:
            await self._unavailable(error)
            return
        session = cast("Session", self.session)
        session.host_name, session.extended_smtp = hostname, True
        size = min(self._state.max_bytes, hop.max_bytes or self._state.max_bytes)
        passed_on = [
            f"{name} {hop.extensions[name]}".rstrip() for name in PASSED_ON if name in hop.extensions
        ]
        extensions = ["PIPELINING", f"SIZE {size}", *passed_on]
        await self.push(
            "\r\n".join(
                [f"250-{line}" for line in (self.hostname, *extensions[:-1])] + [f"250 {extensions[-1]}"]
            )
        )

    @override
    async def smtp_HELO(self, hostname: str) -> None:
        """Begin a session without extensions."""
        await self._end_transaction()
        await super().smtp_HELO(hostname)

    @override
    async def smtp_MAIL(self, arg: str | None) -> None:
        """Begin a message: the next hop says whether it accepts the sender."""
        if await self.check_helo_needed():
            return
        parsed = _parse("FROM:", arg)
        if parsed is None:
            await self.push("501 5.5.4 syntax: MAIL FROM:<address>")
        elif self._has_sender:
            await self.push("503 5.5.1 a message has already begun")
        elif (size := _SIZE.search(parsed[1])) and int(size[1]) > self._state.max_bytes:
            await self.push(_too_large(self._state.max_bytes))
        else:
            reply = await self._begin(*parsed)
            self._has_sender = reply.accepts
            await self.push(reply.encode())

    @override
    async def smtp_RCPT(self, arg: str | None) -> None:
        """Add a recipient: the next hop says whether it accepts it."""
        parsed = _parse("TO:", arg)
        if not self._has_sender:
            await self.push(_NO_TRANSACTION.encode())
        elif parsed is None:
            await self.push("501 5.5.4 syntax: RCPT TO:<address>")
        elif self._n_recipients and self._state.next_hop.lmtp and not self.is_lmtp:
            # The next hop replies for each recipient, and SMTP has only one reply to a message.
            await self.push("452 4.5.3 one recipient at a time")
        else:
            reply = await self._command(f"RCPT TO:{parsed[0]} {parsed[1]}".rstrip())
            self._n_recipients += reply.accepts
            if reply.accepts and len(self._recipients) < LOGGED_RECIPIENTS:
                self._recipients.append(parsed[0].strip("<>"))
            await self.push(reply.encode())

    @override
    async def smtp_DATA(self, arg: str | None) -> None:
        """Receive a message, route it, and hand it on."""
        if arg:
            await self.push("501 5.5.4 syntax: DATA")
            return
        if not self._n_recipients:
            await self.push("503 5.5.1 no recipient was accepted")
            return
        self._has_message = True
        await self.push("354 end with a dot on a line of its own")
        try:
            async with AsyncExitStack() as slots:
                content = await self._read_content(slots)
                self._reset_timeout(MESSAGE_SECONDS)
                for reply in await self._deliver(content, slots):
                    await self.push(reply.encode())
        except _TooSlowError as error:
            # The rest of the message cannot be told from commands, so the session ends.
            log.warning("smtp.message_broken_off", reason=str(error))
            await self.push(f"421 4.4.2 {error}, try again later")
            self._writer.close()
        finally:
            self._has_message = False
        self._reset_timeout()
        if self._state.stopping:
            self.stop()

    async def smtp_XFORWARD(self, arg: str | None) -> None:  # noqa: N802 - as aiosmtpd names commands
        """Pass on where the message comes from, which Postfix logs."""
        if await self.check_helo_needed():
            return
        if arg is None or not _is_repeatable(arg):
            await self.push("501 5.5.4 syntax: XFORWARD NAME=value")
            return
        if queue_id := _QUEUE_ID.search(arg):
            self._queue_id = queue_id[1]
        await self.push((await self._command(f"XFORWARD {arg}")).encode())

    @override
    async def smtp_VRFY(self, arg: str | None) -> None:
        """Say that only a message shows whether a recipient exists."""
        await self.push("252 2.5.0 send a message to find out")

    @override
    async def smtp_RSET(self, arg: str) -> None:
        """Forget the message that has begun."""
        await self._end_transaction()
        await super().smtp_RSET(arg)

    # The next hop

    async def _connected(self) -> NextHop:
        if self._hop is None:
            try:
                self._hop = await NextHop.connect(self._state.next_hop)
            except UnavailableError as error:
                self._state.monitor.fail("next_hop", error)
                raise
            self._state.monitor.recover("next_hop")
        return self._hop

    async def _begin(self, sender: str, parameters: str) -> Reply:
        """Send MAIL, on a new connection if the one of earlier messages is closed."""
        for is_new in (self._hop is None, True):
            try:
                hop = await self._connected()
                if "SIZE" not in hop.extensions:  # the filter always announces it
                    parameters = _SIZE.sub(" ", parameters).strip()
                line = f"MAIL FROM:{sender} {parameters}".rstrip()
                return await hop.command(line)
            except UnavailableError as error:
                self._hop = None
                if is_new:
                    return _try_again(error)
        raise AssertionError("unreachable")

    async def _command(self, line: str) -> Reply:
        if self._hop is None:
            return Reply.of("451 4.4.2 the connection to the next hop is broken")
        try:
            return await self._hop.command(line)
        except UnavailableError as error:
            # The transaction stays open here, so that the client gets the same reply for all that follows.
            self._hop = None
            return _try_again(error)

    async def _end_transaction(self, *, abort: bool = False) -> None:
        """Let the next hop forget the message that has begun."""
        has_sender, self._has_sender, self._n_recipients = self._has_sender, False, 0
        self._recipients, self._queue_id = [], None
        if self._hop is None:
            return
        if abort:
            self._hop.abort()
            self._hop = None
        elif has_sender:
            await self._command("RSET")

    def _close_hop(self) -> None:
        if self._hop is not None:
            task = asyncio.create_task(self._hop.close())
            self._state.closing.add(task)
            task.add_done_callback(self._state.closing.discard)
            self._hop = None

    async def _unavailable(self, error: UnavailableError) -> None:
        log.warning("smtp.next_hop_unavailable", reason=str(error))
        await self.push("421 4.3.2 the next hop is not available, try again later")
        self._writer.close()

    # The message

    async def _read_content(self, slots: AsyncExitStack) -> bytes | None:
        """Read a message up to the line with a dot; None if it is too large.

        Args:
            slots: gets a slot for a long message.

        Raises:
            _TooSlowError: the client sends too slowly, or the message is long and too many others are.
        """
        content = bytearray(b"\r\n")  # so that a dot in the first line is found like all others
        is_too_large = is_long = False
        loop = asyncio.get_running_loop()
        deadline, n_bytes = loop.time() + PROGRESS_SECONDS, 0
        while True:
            begin = max(0, len(content) - len(_END) + 1)
            try:
                async with asyncio.timeout_at(deadline):
                    # Reads all that has arrived: by line, a message of empty lines would take minutes.
                    chunk = await self._reader.read(_ALL)
            except TimeoutError as error:
                raise _TooSlowError("the message arrives too slowly") from error
            if not chunk:
                raise ConnectionResetError
            self._reset_timeout()
            content += chunk
            n_bytes += len(chunk)
            if n_bytes >= PROGRESS_BYTES:
                deadline, n_bytes = loop.time() + PROGRESS_SECONDS, 0
            end = content.find(_END, begin)
            if end >= 0:
                break
            # A dot can be added to every third byte.
            if len(content) > self._state.max_bytes * 4 // 3 + len(_END):
                is_too_large = True
                del content[: -len(_END)]
            if len(content) > SHORT_BYTES and not is_long:
                await _wait_for(self._state.arriving, slots)
                is_long = True
                deadline, n_bytes = loop.time() + PROGRESS_SECONDS, 0
        if commands := content[end + len(_END) :]:
            # The buffer is empty, so this puts back what belongs to the next commands.
            self._reader.feed_data(commands)
        if is_too_large:
            return None
        del content[end + 2 :]
        content = content.replace(b"\r\n.", b"\r\n")
        return bytes(memoryview(content)[2:]) if len(content) - 2 <= self._state.max_bytes else None

    async def _deliver(self, content: bytes | None, slots: AsyncExitStack) -> list[Reply]:
        """Route a message and hand it on. Returns the replies for its client."""
        n_replies = self._n_recipients if self.is_lmtp else 1
        began = time.monotonic()
        traceparent = new_traceparent()
        facts: dict[str, Any] = {
            "queue_id": self._queue_id,
            "recipients": self._recipients,
            "n_recipients": self._n_recipients,
            "trace_id": traceparent.split("-")[1],
        }
        monitor, outcome = self._state.monitor, "refused"
        try:
            await _wait_for(self._state.routing, slots)
            replies = await self._routed(content, traceparent, facts)
            if any(reply.accepts for reply in replies):
                outcome = "handled"
            elif all(400 <= reply.code < 500 for reply in replies):
                outcome = "not_delivered"
        except _TooSlowError as error:
            outcome = "not_routed"
            log.warning("smtp.not_routed", reason=str(error), **facts)
            replies = [Reply.of(f"451 4.3.2 {error}, try again later")]
        except NotRoutedError as error:
            outcome = "not_routed"
            log.warning("smtp.not_routed", reason=str(error), **facts)
            replies = [Reply.of("451 4.3.0 the message cannot be routed now, try again later")]
        except UnavailableError as error:
            outcome = "not_delivered"
            monitor.fail("next_hop", error)
            log.warning("smtp.next_hop_unavailable", reason=str(error), **facts)
            replies = [_TRY_AGAIN]
        except TooManyHopsError:
            log.warning("smtp.loop", hops=MAX_HOPS, **facts)
            replies = [Reply.of("554 5.4.6 too many hops: the message is in a loop")]
        except Exception:
            # An unforeseen error must not lose the message: its client sends it again.
            outcome = "failed"
            log.exception("smtp.failed", **facts)
            replies = [Reply.of("451 4.3.0 internal error, try again later")]
            await self._end_transaction(abort=True)
        monitor.count(outcome, time.monotonic() - began)
        await self._end_transaction()
        # One reply of an SMTP server is for all recipients.
        return replies * n_replies if len(replies) == 1 else replies

    async def _routed(self, content: bytes | None, traceparent: str, facts: dict[str, Any]) -> list[Reply]:
        """Route a message and hand it on. Adds what is learned about it to ``facts``."""
        began = time.monotonic()
        if content is None:
            return [Reply.of(_too_large(self._state.max_bytes))]
        message = await asyncio.to_thread(IncomingMessage.parse, content)
        facts["message_id"] = message.message_id
        del content
        fields = await self._state.filter.fields(message, traceparent)
        lines = await asyncio.to_thread(message.lines_with, fields)
        if self._hop is None:
            raise UnavailableError("the connection to the next hop is broken")
        try:
            reply = await self._hop.command("DATA")
        except UnavailableError:
            self._hop = None
            raise
        if reply.code != 354:
            if reply.accepts:
                raise UnavailableError(f"the next hop replied {reply} to DATA")
            replies = [reply]
        else:
            n_replies = self._n_recipients if self._state.next_hop.lmtp else 1
            replies = await self._hop.send(lines, n_replies)
            # The transaction has ended.
            self._has_sender = False
        facts |= {
            "decision": dict(fields)["X-Covey-Decision"],
            "replies": [str(reply)[:200] for reply in replies[:LOGGED_REPLIES]],
            "seconds": round(time.monotonic() - began, 3),
        }
        if any(reply.accepts for reply in replies):
            log.info("smtp.message_handed_on", **facts)
        else:
            log.info("smtp.message_refused", **facts)
        return replies


class _TooSlowError(Exception):
    """A message does not arrive in time, or waits too long for others; the message says which."""


async def _wait_for(slot: asyncio.Semaphore, slots: AsyncExitStack) -> None:
    try:
        async with asyncio.timeout(SLOT_SECONDS):
            await slots.enter_async_context(slot)
    except TimeoutError as error:
        raise _TooSlowError("too many messages at the same time") from error


class LmtpFilterProtocol(LMTP, FilterProtocol):
    """A connection that speaks LMTP: there is a reply for each recipient of a message (RFC 2033)."""

    is_lmtp = True


def is_allowed(client: str, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    """Return whether an IP address is of this machine or of one of the networks."""
    address = ip_address(client)
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or any(address in network for network in networks)


def _parse(keyword: str, arg: str | None) -> tuple[str, str] | None:
    """Return address and parameters of MAIL or RCPT as they are written; None if they are malformed."""
    if arg is None or arg[: len(keyword)].upper() != keyword:
        return None
    match = _PATH.fullmatch(arg[len(keyword) :].strip())
    if match is None or not _is_repeatable(arg):
        return None
    path, parameters = match[1], match[2] or ""
    return path if path.startswith("<") else f"<{path}>", parameters


def _is_repeatable(text: str) -> bool:
    """Return whether the next hop can get a text: UTF-8, where other bytes are surrogates, on one line."""
    return not _NOT_REPEATABLE.search(text)


def _too_large(limit: int) -> str:
    return f"552 5.3.4 the message is larger than {limit} bytes"


def _try_again(error: UnavailableError) -> Reply:
    log.warning("smtp.next_hop_unavailable", reason=str(error))
    return _TRY_AGAIN
