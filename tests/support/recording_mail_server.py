"""A mail server that records what it receives, and replies as a test wants."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Received:
    """A message that the server accepted for at least one recipient.

    Attributes:
        mail: the argument of MAIL.
        recipients: the arguments of RCPT that were accepted.
        content: the message.
    """

    mail: str
    recipients: list[str]
    content: bytes


@dataclass
class RecordingMailServer:
    """The server.

    Attributes:
        address: as ``--next-hop`` of the filter wants it.
        lmtp: whether it replies for each recipient.
        extensions: what it announces.
        replies: its reply to a command that begins with some words, or to the end of a message for a
            recipient (``. TO:<…>``); by default it accepts everything. ``close`` closes the connection.
        before_data: called with the connection before the reply to DATA.
        before_reply: called before the reply to a message.
    """

    address: str = ""
    lmtp: bool = False
    extensions: list[str] = field(default_factory=lambda: ["SIZE 1000000", "8BITMIME", "SMTPUTF8", "DSN"])
    replies: dict[str, str] = field(default_factory=dict)
    before_data: Callable[[socket.socket], object] = lambda _: None
    before_reply: Callable[[], object] = lambda: None
    commands: list[str] = field(default_factory=list)
    messages: list[Received] = field(default_factory=list)
    n_connections: int = 0
    n_ended: int = 0

    def reply(self, command: str, default: str) -> str:
        """Return the reply to a command."""
        return next((text for words, text in self.replies.items() if command.startswith(words)), default)


class _ClosedError(Exception):
    """The server closes the connection."""


class _Session(socketserver.StreamRequestHandler):
    server: Any

    def handle(self) -> None:
        server: RecordingMailServer = self.server.recording
        server.n_connections += 1
        try:
            self._session(server)
        except (_ClosedError, OSError):
            pass
        finally:
            server.n_ended += 1

    def _say(self, text: str) -> None:
        if text == "close":
            raise _ClosedError
        self.wfile.write(text.encode() + b"\r\n")

    def _session(self, server: RecordingMailServer) -> None:
        self._say(server.reply("connect", "220 hop"))
        mail, recipients = "", list[str]()
        while line := self.rfile.readline():
            command = line.decode().removesuffix("\r\n")
            server.commands.append(command)
            verb, _, argument = command.partition(" ")
            verb = verb.upper()
            if verb in ("EHLO", "LHLO"):
                assert (verb == "LHLO") == server.lmtp
                lines = ["hop", *server.extensions]
                self._say(
                    server.reply(
                        verb, "\r\n".join(f"250-{name}" for name in lines[:-1]) + f"\r\n250 {lines[-1]}"
                    )
                )
            elif verb == "DATA":
                server.before_data(self.connection)
                reply = server.reply("DATA", "354 go on")
                self._say(reply)
                if reply.startswith("354"):
                    self._data(server, mail, recipients)
                    mail, recipients = "", []
            else:
                reply = server.reply(command, "250 2.0.0 OK")
                self._say(reply)
                if verb == "QUIT":
                    return
                if verb == "MAIL" and reply.startswith("2"):
                    mail = argument
                elif verb == "RCPT" and reply.startswith("2"):
                    recipients.append(argument)
                elif verb == "RSET":
                    mail, recipients = "", []

    def _data(self, server: RecordingMailServer, mail: str, recipients: list[str]) -> None:
        content = bytearray()
        while (line := self.rfile.readline()) != b".\r\n":
            if not line:
                raise _ClosedError
            # Like servers that end lines with LF, so that a smuggled end of the message is found.
            assert line != b".\n"
            content += line[1:] if line.startswith(b".") else line
        replies = [server.reply(f". {recipient}", "250 2.0.0 kept") for recipient in recipients]
        if not server.lmtp:
            replies = replies[:1]
        server.before_reply()
        if any(reply.startswith("2") for reply in replies):
            server.messages.append(Received(mail, list(recipients), bytes(content)))
        for reply in replies:
            self._say(reply)


class _TcpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


class _UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


@contextmanager
def mail_server(*, lmtp: bool = False, path: Path | None = None) -> Iterator[RecordingMailServer]:
    """Run a server on a free port, or on a Unix socket, until the block ends."""
    server: Any = _TcpServer(("127.0.0.1", 0), _Session) if path is None else _UnixServer(str(path), _Session)
    where = str(path) if path else f"127.0.0.1:{server.server_address[1]}"
    recording = RecordingMailServer(("lmtp:" if lmtp else "") + where, lmtp)
    server.recording = recording
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield recording
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
