"""The next hop: the mail server that gets the messages of ``covey smtp`` after they are routed.

The filter repeats the commands of its client to the next hop, and returns its replies unchanged. So the next
hop alone decides which senders, recipients and messages it accepts, and the client knows it at once.

There is no library for this: ``smtplib`` needs a thread for each session, and ``aiosmtplib`` knows no LMTP
(it drops all replies to a message but the first) and changes the line ends of a message.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Self

CONNECT_SECONDS = 30.0
"""How long to wait for the connection and for the greeting of the next hop."""

REPLY_SECONDS = 300.0
"""How long to wait for a reply. A client waits ten minutes for the last one (RFC 5321, 4.5.3.2.6)."""

QUIT_SECONDS = 5.0
"""How long to wait for the reply to QUIT, which changes nothing."""

MAX_LINE_BYTES = 8192
"""Maximum length of a line of a reply."""

CHUNK_BYTES = 65536
"""Minimum size of the pieces in which a message is sent."""

_ADDRESS = re.compile(r"(?:(smtp|lmtp):)?(?:(/.+)|\[([0-9A-Fa-f:.]+)\]:(\d{1,5})|([^:/\[\]\s]+):(\d{1,5}))")


class AddressError(ValueError):
    """The address of a server is malformed."""


class UnavailableError(Exception):
    """The next hop does not reply, or not as the protocol requires. Send the message again later."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server.

    Attributes:
        lmtp: whether the server speaks LMTP instead of SMTP.
        host: host name or IP address; for a Unix socket its path, which begins with a slash.
        port: the port; 0 for a Unix socket.
    """

    lmtp: bool
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``host:port``, ``[IPv6]:port`` or the path of a Unix socket, each also after ``lmtp:``.

        Raises:
            AddressError: the text has another form.
        """
        match = _ADDRESS.fullmatch(text)
        if match is None:
            raise AddressError(f"{text!r} is not an address; use HOST:PORT or /PATH, or lmtp: before it")
        protocol, path, v6, v6_port, host, port = match.groups()
        return cls(protocol == "lmtp", path or v6 or host, int(v6_port or port or 0))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'lmtp:' if self.lmtp else ''}{host}" + (f":{self.port}" if self.port else "")


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of a mail server.

    Attributes:
        code: the three-digit code.
        lines: the text of each line.
    """

    code: int
    lines: tuple[bytes, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """Return a reply of one line: the code, a space and the text."""
        return cls(int(text[:3]), (text[4:].encode(),))

    @property
    def accepts(self) -> bool:
        """Whether the server has done what was asked."""
        return 200 <= self.code < 300

    def __str__(self) -> str:
        return f"{self.code} {b' '.join(self.lines).decode(errors='replace')}"

    def encode(self) -> bytes:
        """Return the reply as it is sent, without the last line end."""
        *first, last = self.lines
        return b"\r\n".join([*(b"%d-%b" % (self.code, line) for line in first), b"%d %b" % (self.code, last)])


class NextHop:
    """A session with the next hop. Only one of its methods may run at the same time.

    Whatever interrupts a command or a message also breaks the connection, since it would be unknown what the
    next reply is about, and since the next hop must drop a message that is incomplete.

    Attributes:
        extensions: the parameters of each extension that the server announces.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.extensions: dict[str, str] = {}

    @classmethod
    async def connect(cls, address: Address) -> Self:
        """Begin a session.

        Raises:
            UnavailableError: the server does not accept the connection.
        """
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                if address.host.startswith("/"):
                    streams = await asyncio.open_unix_connection(address.host, limit=MAX_LINE_BYTES)
                else:
                    streams = await asyncio.open_connection(address.host, address.port, limit=MAX_LINE_BYTES)
                hop = cls(*streams)
                with hop._broken_by_errors():
                    hop._check(await hop._reply(), 220)
                    verb = "LHLO" if address.lmtp else "EHLO"
                    reply = await hop.command(f"{verb} {socket.gethostname()}")
                    hop._check(reply, 250)
        except (OSError, UnavailableError) as error:
            raise UnavailableError(f"{address} does not accept the connection: {_reason(error)}") from error
        for line in reply.lines[1:]:
            name, _, parameters = line.decode("utf-8", "replace").partition(" ")
            hop.extensions[name.upper()] = parameters.strip()
        return hop

    @property
    def max_bytes(self) -> int | None:
        """The maximum size of a message that the server announces, if it does."""
        size = self.extensions.get("SIZE", "")
        return int(size) if size.isdecimal() and int(size) else None

    async def command(self, line: str) -> Reply:
        """Send a command, and return the reply.

        Raises:
            UnavailableError: there is no reply, or the server closes the connection. It is closed.
        """
        with self._broken_by_errors():
            self._writer.write(line.encode() + b"\r\n")
            return await self._reply(continues=line == "DATA")

    async def send(self, content: Iterable[bytes], n_replies: int) -> list[Reply]:
        """Send the content of a message after the reply to DATA, and return the replies.

        Args:
            content: pieces of the message, of complete lines that end in CRLF.
            n_replies: how many replies the server sends: with LMTP one for each recipient that it accepted.

        Returns:
            The replies. If the connection breaks before all have arrived, the others ask to try again.
        """
        replies: list[Reply] = []
        try:
            with self._broken_by_errors():
                for lines in content:
                    self._writer.write(b"." * lines.startswith(b".") + lines.replace(b"\n.", b"\n.."))
                    async with asyncio.timeout(REPLY_SECONDS):
                        await self._writer.drain()
                self._writer.write(b".\r\n")
                while len(replies) < n_replies:
                    replies.append(await self._reply())
        except UnavailableError as error:
            replies += [Reply.of(f"451 4.4.2 {error}")] * (n_replies - len(replies))
        return replies

    async def close(self) -> None:
        """End the session in order, and close the connection."""
        with suppress(UnavailableError, TimeoutError):
            if not self._writer.is_closing():
                async with asyncio.timeout(QUIT_SECONDS):
                    await self.command("QUIT")
        self.abort()

    def abort(self) -> None:
        """Break the connection."""
        self._writer.transport.abort()

    async def _reply(self, *, continues: bool = False) -> Reply:
        lines: list[bytes] = []
        more = True
        async with asyncio.timeout(REPLY_SECONDS):
            while more:
                line = await self._reader.readuntil(b"\n")
                lines.append(line[4:].strip())
                more = line[3:4] == b"-"
        reply = Reply(int(line[:3]) if line[:3].isdigit() else 0, tuple(lines))
        if continues and 300 <= reply.code < 400:
            self._check(reply, 354)
        elif reply.code // 100 not in (2, 4, 5) or reply.code == 421:
            # 421: the server closes the connection. Otherwise, it does not speak the protocol.
            raise UnavailableError(f"the next hop replied {reply}")
        return reply

    def _check(self, reply: Reply, code: int) -> None:
        if reply.code != code:
            raise UnavailableError(f"the next hop replied {reply}")

    @contextmanager
    def _broken_by_errors(self) -> Iterator[None]:
        """Break the connection if the block fails or is cancelled."""
        try:
            yield
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            self.abort()
            raise UnavailableError(f"the connection to the next hop is broken: {_reason(error)}") from error
        except BaseException:
            self.abort()
            raise


def line_chunks(content: bytes, begin: int = 0) -> Iterator[bytes]:
    """Yield the bytes from a position on in pieces of complete lines."""
    while begin < len(content):
        end = content.find(b"\n", begin + CHUNK_BYTES - 1) + 1 or len(content)
        yield content[begin:end]
        begin = end


def _reason(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "it was closed"
    return str(error) or type(error).__name__
