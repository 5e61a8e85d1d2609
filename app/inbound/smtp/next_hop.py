"""The next hop: the mail server that gets the messages of ``covey smtp`` after they are routed.

The filter repeats the commands of its client to the next hop, and returns its replies unchanged. So the next
hop alone decides which senders, recipients and messages it accepts, and the client knows it at once.
"""

from __future__ import annotations

import re
import smtplib
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

CONNECT_SECONDS = 30.0
"""How long to wait for the connection and for the greeting of the next hop."""

REPLY_SECONDS = 300.0
"""How long to wait for a reply. A client waits ten minutes for the last one (RFC 5321, 4.5.3.2.6)."""

QUIT_SECONDS = 5.0
"""How long to wait for the reply to QUIT, which changes nothing."""

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

    def encode(self) -> bytes:
        """Return the reply as it is sent, without the last line end."""
        *first, last = self.lines
        return b"\r\n".join([*(b"%d-%b" % (self.code, line) for line in first), b"%d %b" % (self.code, last)])


class NextHop:
    """A connection to the next hop. Its methods block, and only one of them may run at the same time.

    Args:
        address: the server.

    Raises:
        UnavailableError: the server does not accept the connection.
    """

    def __init__(self, address: Address) -> None:
        self.lmtp = address.lmtp
        try:
            # This class connects to Unix sockets, and is otherwise the same as smtplib.SMTP.
            self._client = smtplib.LMTP(
                address.host, address.port, local_hostname=socket.gethostname(), timeout=CONNECT_SECONDS
            )
        except (OSError, smtplib.SMTPException) as error:
            raise UnavailableError(f"{address} does not accept the connection: {_reason(error)}") from error
        self._client.ehlo_msg = "lhlo" if address.lmtp else "ehlo"
        self._client.command_encoding = "utf-8"
        try:
            code, message = self._client.ehlo()
        except (OSError, smtplib.SMTPException) as error:
            self._client.close()
            raise UnavailableError(f"{address} does not reply: {_reason(error)}") from error
        if code != 250:
            self._client.close()
            raise UnavailableError(
                f"{address} refuses the greeting: {code} {message.decode(errors='replace')}"
            )
        if (connection := self._client.sock) is not None:
            connection.settimeout(REPLY_SECONDS)
            if connection.family != socket.AF_UNIX:
                # A message is sent in pieces, of which the last ones would wait for an acknowledgement.
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.extensions: dict[str, str] = {
            name.upper(): parameters for name, parameters in self._client.esmtp_features.items()
        }

    @property
    def max_bytes(self) -> int | None:
        """The maximum size of a message that the server announces, if it does."""
        size = self.extensions.get("SIZE", "")
        return int(size) if size.isdecimal() and int(size) else None

    def command(self, line: str) -> Reply:
        """Send a command, and return the reply.

        Raises:
            UnavailableError: there is no reply, or the server closes the connection. It is closed.
        """
        try:
            self._client.putcmd(line)
        except (OSError, smtplib.SMTPException) as error:
            self._client.close()
            raise UnavailableError(f"the connection to the next hop is broken: {_reason(error)}") from error
        return self._reply(continues=line == "DATA")

    def send(self, content: Iterable[bytes], n_replies: int) -> list[Reply]:
        """Send the content of a message after the reply to DATA, and return the replies.

        Args:
            content: pieces of the message, of complete lines that end in CRLF.
            n_replies: how many replies the server sends: with LMTP one for each recipient that it accepted.

        Returns:
            The replies. If the connection breaks before all have arrived, the others ask to try again.
        """
        replies: list[Reply] = []
        try:
            for lines in content:
                self._client.send(_LEADING_DOT.sub(b"..", lines))
            self._client.send(b".\r\n")
            replies.extend(self._reply() for _ in range(n_replies))
        except (OSError, smtplib.SMTPException, UnavailableError) as error:
            self._client.close()
            lost = Reply.of(f"451 4.4.2 the connection to the next hop is broken: {_reason(error)}")
            replies += [lost] * (n_replies - len(replies))
        return replies

    def close(self) -> None:
        """End the session in order, and close the connection."""
        with suppress(OSError, smtplib.SMTPException):
            if self._client.sock is not None:
                self._client.sock.settimeout(QUIT_SECONDS)
            self._client.quit()
        self._client.close()

    def abort(self) -> None:
        """Break the connection, also while another thread waits for a reply. Call ``close`` afterwards."""
        if (connection := self._client.sock) is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _reply(self, *, continues: bool = False) -> Reply:
        try:
            code, message = self._client.getreply()
        except (OSError, smtplib.SMTPException) as error:
            self._client.close()
            raise UnavailableError(f"the connection to the next hop is broken: {_reason(error)}") from error
        if not (code == 354 if continues and 300 <= code < 400 else code // 100 in (2, 4, 5)) or code == 421:
            # 421: the server closes the connection. Otherwise, it does not speak the protocol.
            self._client.close()
            raise UnavailableError(f"the next hop replied {code} {message.decode(errors='replace')}")
        return Reply(code, tuple(message.split(b"\n")))


def line_chunks(content: bytes, begin: int = 0) -> Iterator[bytes]:
    """Yield the bytes from a position on in pieces of complete lines."""
    while begin < len(content):
        end = content.find(b"\n", begin + CHUNK_BYTES - 1) + 1 or len(content)
        yield content[begin:end]
        begin = end


_LEADING_DOT = re.compile(rb"^\.", re.MULTILINE)


def _reason(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        text = error.smtp_error
        return f"{error.smtp_code} {text.decode(errors='replace') if isinstance(text, bytes) else text}"
    return str(error) or type(error).__name__
