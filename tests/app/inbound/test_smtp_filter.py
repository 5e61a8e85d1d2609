"""``covey smtp`` between a mail server and the next hop: nothing is lost, forged, changed or sent twice."""

from __future__ import annotations

import email
import json
import re
import smtplib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_network
from pathlib import Path
from random import Random
from typing import Any
from urllib.request import urlopen

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from captured_logs import captured_logs
from decision_service import decision_service
from hypothesis import given, settings
from hypothesis import strategies as st
from production import free_port
from recording_mail_server import RecordingMailServer, mail_server
from typer.testing import CliRunner
from waiting import LIMIT_SECONDS, wait_for

from app.cli.main import cli
from app.health.monitor import application
from app.inbound.mail_headers import decision_fields
from app.inbound.monitor import Monitor
from app.inbound.routed_message import RoutedMessage
from app.inbound.service_client import NotRoutedError
from app.inbound.smtp import protocol as smtp_protocol
from app.inbound.smtp import server as smtp_server
from app.inbound.smtp.async_client import AsyncRouterClient
from app.inbound.smtp.filtered_message import MAX_HOPS, IncomingMessage, MessageFilter
from app.inbound.smtp.next_hop import Address, AddressError, line_chunks
from app.inbound.smtp.protocol import is_allowed
from app.inbound.smtp.server import FilterOptions, FilterServer, ListenError

MESSAGE = (
    b"Received: by a\r\nSubject: Invoice\r\nX-Covey-Departments: forged\r\n\r\n.My invoice\r\n..is wrong\r\n"
)
ROUTED = MESSAGE.replace(b"X-Covey-Departments: forged\r\n", b"")
FIELDS = (
    b"X-Covey-Decision: routed; id=dec_1; router=frontdesk; version=helpdesk/3\r\n"
    b"X-Covey-Departments: billing\r\nX-Covey-Score: 1.5\r\nX-Covey-Destinations: billing@example.org\r\n"
)
DECISION: dict[str, Any] = {
    "decision_id": "dec_1",
    "router": "frontdesk",
    "model": "helpdesk",
    "version": 3,
    "disposition": "routed",
    "departments": [{"label": "billing", "destination": "billing@example.org", "score": 1.5}],
    "destinations": ["billing@example.org"],
}
DECISION_FIELDS = decision_fields(RoutedMessage.from_json(json.dumps(DECISION).encode()))


class FakeRouter:
    """Returns one decision, or fails with the error of the test."""

    def __init__(self) -> None:
        self.decision: dict[str, Any] = DECISION
        self.error: Exception | None = None
        self.messages: list[bytes] = []
        self.traces: list[str] = []

    async def route(self, message: bytes, traceparent: str) -> RoutedMessage:
        if self.error:
            raise self.error
        self.messages.append(message)
        self.traces.append(traceparent)
        return RoutedMessage.from_json(json.dumps(self.decision).encode())


class RunningFilter:
    """A filter in a thread."""

    def __init__(
        self, portal: BlockingPortal, hop: RecordingMailServer, options: FilterOptions, url: str | None = None
    ) -> None:
        self.portal = portal
        self.hop = hop
        self.router = FakeRouter()
        self.monitor = Monitor()
        self._stopped = False

        async def start() -> None:
            router = AsyncRouterClient(url, "frontdesk", "cov_secret") if url else self.router
            message_filter = MessageFilter(
                router, "frontdesk", options.when_unavailable, self.monitor, options.review_to
            )
            self._server = FilterServer(options, message_filter, self.monitor)
            self.address = await self._server.start()

        portal.call(start)

    def client(self) -> smtplib.SMTP:
        """Return a client that speaks the protocol of the filter, after its greeting."""
        client: smtplib.SMTP = smtplib.LMTP(self.address.host, self.address.port, timeout=LIMIT_SECONDS)
        client.ehlo_msg = "lhlo" if self.address.lmtp else "ehlo"
        assert client.ehlo()[0] == 250
        return client

    def raw(self) -> RawClient:
        """Return a client that sends bytes, after its greeting."""
        return RawClient(self.address)

    def send(self, message: bytes = MESSAGE, *recipients: str) -> list[str]:
        """Send a message in a session of its own, and return the replies to it."""
        with self.client() as client:
            assert client.mail("ann@example.com")[0] == 250
            for recipient in recipients or ["desk@example.org"]:
                assert client.rcpt(recipient)[0] == 250
            return data(client, message, len(recipients) or 1)

    def n_connections(self) -> int:
        """Return the number of connections."""
        return len(self._server._state.connections)

    def is_full(self) -> bool | None:
        """Return True if no more long messages may arrive."""
        return self._server._state.arriving.locked() or None

    def stop(self) -> None:
        """Stop the filter."""
        if not self._stopped:
            self._stopped = True
            self.portal.call(self._server.stop)


class RawClient:
    """A client that sends what the test wants, all at once."""

    def __init__(self, address: Address) -> None:
        self.socket = socket.create_connection((address.host, address.port), LIMIT_SECONDS)
        self.file = self.socket.makefile("rb")
        assert self.reply().startswith("220")

    def send(self, content: bytes) -> None:
        self.socket.sendall(content)

    def reply(self) -> str:
        """Return the last line of the next reply; empty if the connection is closed."""
        while line := self.file.readline():
            if line[3:4] != b"-":
                return line.decode().strip()
        return ""

    def has_reply(self) -> bool:
        self.socket.setblocking(False)
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self.socket.settimeout(LIMIT_SECONDS)

    def close(self) -> None:
        self.file.close()
        self.socket.close()


def data(client: smtplib.SMTP, message: bytes, n_replies: int) -> list[str]:
    assert client.docmd("DATA")[0] == 354
    stuffed = b"".join(
        b"." + line if line[:1] == b"." else line for line in message.splitlines(keepends=True)
    )
    client.send(stuffed + b".\r\n")
    return [f"{code} {text.decode()}" for code, text in (client.getreply() for _ in range(n_replies))]


@contextmanager
def running(hop: RecordingMailServer, **options: Any) -> Iterator[RunningFilter]:
    lmtp, url = options.pop("lmtp", False), options.pop("url", None)
    listen = Address(lmtp, "127.0.0.1", 0)
    with start_blocking_portal() as portal:
        server = RunningFilter(portal, hop, FilterOptions(listen, Address.parse(hop.address), **options), url)
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def hop() -> Iterator[RecordingMailServer]:
    with mail_server() as server:
        yield server


@pytest.fixture
def mail_filter(hop: RecordingMailServer) -> Iterator[RunningFilter]:
    with running(hop) as server:
        yield server


# The message


def test_the_message_gets_the_fields_of_the_decision(mail_filter: RunningFilter) -> None:
    assert mail_filter.send() == ["250 2.0.0 kept"]
    (received,) = mail_filter.hop.messages
    assert received.content == FIELDS + ROUTED
    assert (received.mail, received.recipients) == ("FROM:<ann@example.com>", ["TO:<desk@example.org>"])
    assert mail_filter.router.messages == [MESSAGE]


PIECES = [b"\r\n", b".", b"\r", b"a", b"\x00", b"\xff", b":", b" ", b"\r\n.\r\n", b"\r\n..", b"x" * 1500]
LONE_CR_AT_DOT = re.compile(rb"\r+(?=\.)|(?<=\n\.)\r+(?!\n)")


@settings(max_examples=60, deadline=None)
@given(bodies=st.lists(st.lists(st.sampled_from(PIECES)).map(b"".join), min_size=1, max_size=3))
def test_the_body_stays_as_it_is(bodies: list[bytes]) -> None:
    for body in bodies:
        message = b"Subject: Hello\r\n\r\n" + LONE_CR_AT_DOT.sub(b"", body + b"\r\n")
        assert message.count(b"\n") == message.count(b"\r\n")
        parsed = IncomingMessage.parse(message)
        assert b"".join(parsed.lines_with([("X-Covey-Score", "1")])) == b"X-Covey-Score: 1\r\n" + message


def test_unusual_bodies_arrive_as_they_are(mail_filter: RunningFilter) -> None:
    long_line = b"." + b"a" * 300_000
    bodies = [b".\r\n", b"..\r\n.\r\n", b"\xff\x00\r\n", b"a\rb\r\n", b"\r\r\n", long_line + b"\r\n.\r\n"]
    for body in bodies:
        assert mail_filter.send(b"Subject: Hello\r\n\r\n" + body) == ["250 2.0.0 kept"]
    assert [message.content for message in mail_filter.hop.messages] == [
        FIELDS + b"Subject: Hello\r\n\r\n" + body for body in bodies
    ]


CONTENTS = st.lists(st.sampled_from([b"\r\n", b".", b"..", b"\r", b"a", b"\r\n.", b"\r\n..\r\n"]), max_size=8)


def test_a_message_arrives_as_it_is_however_the_network_divides_it(mail_filter: RunningFilter) -> None:
    """The first and the next message of a session, sent in two pieces with the commands around them."""
    client = mail_filter.raw()
    client.send(b"EHLO a\r\n")
    assert client.reply()[:3] == "250"
    commands = b"MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n"

    @settings(max_examples=60, deadline=None)
    @given(pieces=CONTENTS, data=st.data())
    def send(pieces: list[bytes], data: st.DataObject) -> None:
        body = b"A: 1\r\n\r\n" * data.draw(st.booleans()) + b"".join(pieces)
        body += b"\r\n" * (not body.endswith(b"\r\n") and body != b"")
        stuffed = (b"\r\n" + body).replace(b"\r\n.", b"\r\n..")[2:] + b".\r\n"
        stream = commands + stuffed + commands + b".\r\n"
        cut = data.draw(st.integers(len(commands), len(commands + stuffed) + 3))
        client.send(stream[:cut])
        assert [client.reply()[:3] for _ in range(3)] == ["250", "250", "354"]
        client.send(stream[cut:])
        assert [client.reply()[:3] for _ in range(5)] == ["250", "250", "250", "354", "250"]
        first, second = (message.content for message in mail_filter.hop.messages[-2:])
        parsed = IncomingMessage.parse(body)
        assert mail_filter.router.messages[-2] == parsed.content
        assert (first, second) == (b"".join(parsed.lines_with(DECISION_FIELDS)), FIELDS)

    send()
    client.close()


def test_an_empty_message_arrives(mail_filter: RunningFilter) -> None:
    assert mail_filter.send(b"") == ["250 2.0.0 kept"]
    assert mail_filter.hop.messages[0].content == FIELDS


@pytest.mark.parametrize(
    "end", [b"\n.\r\n", b"\n.\n", b"\r\n.\n", b"\r\n.\r", b"\r.\r", b"\r.\r\n", b"\n.\r", b"\r.\n"]
)
def test_no_message_can_be_smuggled_into_another(mail_filter: RunningFilter, end: bytes) -> None:
    client = mail_filter.raw()
    client.send(b"EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n")
    client.send(b"A: 1\r\n\r\nHello" + end + b"MAIL FROM:<evil@b>\r\n.\r\n")
    assert [client.reply()[:3] for _ in range(5)] == ["250", "250", "250", "354", "250"]
    client.close()
    (received,) = mail_filter.hop.messages
    # No receiver finds a line end other than CR LF around a dot, which is doubled on its way.
    assert received.content.count(b"\n") == received.content.count(b"\r\n")
    assert not LONE_CR_AT_DOT.search(received.content)
    assert received.content.endswith(b"MAIL FROM:<evil@b>\r\n")


def test_pieces_of_a_message_are_complete_lines() -> None:
    content = b"".join(b"x" * (n % 200) + b"\r\n" for n in range(3000))
    pieces = list(line_chunks(content, 100))
    assert len(pieces) > 1
    assert b"".join(pieces) == content[100:]
    assert all(piece.endswith(b"\n") for piece in pieces)


@pytest.mark.parametrize(
    "message",
    [
        b"A: 1\r\nx-covey-DEPARTMENTS: forged\r\nB: 2\r\n\r\nHello\r\n",
        b"A: 1\r\nX-Covey-Departments:\r\n forged\r\n\r\nHello\r\n",
        b"A: 1\rX-Covey-Departments: forged\r\n\r\nHello\r\n",
        b"A: 1\nX-Covey-Departments: forged\n\nHello\r\n",
        b"A: 1\r\n\r\r\nX-Covey-Departments: forged\r\n\r\nHello\r\n",
        b" , forged\r\nA: 1\r\n\r\nHello\r\n",
        b"X-Covey-Departments: forged\r\n , forged\r\nA: 1\r\n\r\nHello\r\n",
        b"A: 1\r\n" + b"\r" * 2000 + b"B: 2\r\nX-Covey-Departments: forged\r\n\r\nHello\r\n",
    ],
)
def test_a_sender_cannot_forge_the_fields(mail_filter: RunningFilter, message: bytes) -> None:
    mail_filter.router.decision = {**DECISION, "disposition": "fallback", "departments": []}
    mail_filter.send(message)
    received = email.message_from_bytes(mail_filter.hop.messages[0].content)
    assert [name for name in received if name.lower().startswith("x-covey")] == [
        "X-Covey-Decision",
        "X-Covey-Destinations",
    ]
    assert received["X-Covey-Destinations"] == "billing@example.org"
    assert mail_filter.hop.messages[0].content.endswith(b"\r\n\r\nHello\r\n")


def test_the_line_of_a_mailbox_file_stays_first(mail_filter: RunningFilter) -> None:
    mail_filter.send(b"From ann Mon Jan 1\r\nA: 1\r\n\r\nHello\r\n")
    assert mail_filter.hop.messages[0].content == (
        b"From ann Mon Jan 1\r\n" + FIELDS + b"A: 1\r\n\r\nHello\r\n"
    )


# The envelope


@pytest.mark.parametrize(
    ("sender", "recipient"),
    [
        ("<>", "<desk@example.org>"),
        ("<a..b.@example.com>", "<postmaster>"),
        ('<"a b> c"@example.com>', '<"x\\"y"@[127.0.0.1]>'),
        ("<a@b> BODY=8BITMIME SIZE=100", "<@relay.example:c@d>"),
        ("<jörg@exämple.org> SMTPUTF8", "<箱@example.org>"),
        ("<a@b> RET=HDRS ENVID=QQ314159", "<c@d> NOTIFY=NEVER ORCPT=rfc822;Cc@d"),
    ],
)
def test_addresses_and_parameters_are_passed_on_unchanged(
    mail_filter: RunningFilter, sender: str, recipient: str
) -> None:
    client = mail_filter.raw()
    client.send(f"EHLO a\r\nMAIL FROM:{sender}\r\nRCPT TO:{recipient}\r\nDATA\r\n.\r\n".encode())
    assert [client.reply()[:3] for _ in range(5)] == ["250", "250", "250", "354", "250"]
    client.close()
    (received,) = mail_filter.hop.messages
    assert (received.mail, received.recipients) == (f"FROM:{sender}", [f"TO:{recipient}"])


@pytest.mark.parametrize(
    "command",
    [
        "MAIL",
        "MAIL FROM",
        "MAIL FROM:",
        "MAIL TO:<a@b>",
        "MAIL FROM:<a",
        "MAIL FROM:<a@b>c",
        "MAIL FROM:<a\r@b>",
        b"\xff",
    ],
)
def test_malformed_commands_are_refused(mail_filter: RunningFilter, command: str | bytes) -> None:
    client = mail_filter.raw()
    line = command.encode() if isinstance(command, str) else b"MAIL FROM:<" + command + b"@b>"
    client.send(b"EHLO a\r\n" + line + b"\r\nMAIL FROM:<a@b>\r\n")
    assert [client.reply()[:3] for _ in range(3)] == ["250", "501", "250"]
    client.close()


def test_commands_in_the_wrong_order_are_refused(mail_filter: RunningFilter) -> None:
    client = mail_filter.raw()
    client.send(
        b"MAIL FROM:<a@b>\r\nEHLO a\r\nRCPT TO:<c@d>\r\nDATA\r\nMAIL FROM:<a@b>\r\nMAIL FROM:<a@b>\r\n"
    )
    client.send(b"DATA\r\nRCPT TO:<c@d>\r\nRSET\r\nDATA\r\nQUIT\r\n")
    expected = ["503", "250", "503", "503", "250", "503", "503", "250", "250", "503", "221"]
    assert [client.reply()[:3] for _ in range(11)] == expected
    client.close()
    assert mail_filter.hop.messages == []


LINES = [
    *(
        b"EHLO a",
        b"LHLO a",
        b"HELO a",
        b"MAIL FROM:<a@b>",
        b"MAIL FROM:<>",
        b"RCPT TO:<c@d>",
        b"DATA",
        b"RSET",
    ),
    *(b"NOOP", b".", b"AUTH PLAIN AAAA", b"STARTTLS", b"HELP", b"HELP MAIL", b"VRFY <", b"EXPN", b"BDAT 3"),
    *(
        b"XFORWARD",
        b"XFORWARD A=\r",
        b"",
        b"\x00\x01",
        b"x" * 5000,
        b"RCPT TO:" + b"<" * 300,
        b"\xff",
        b"QUIT x",
    ),
]


@pytest.mark.parametrize("lmtp", [False, True])
def test_arbitrary_sessions_end_and_break_nothing(hop: RecordingMailServer, lmtp: bool) -> None:
    random = Random(0)  # noqa: S311 - the same sessions in every run
    with captured_logs(smtp_protocol) as events, running(hop, lmtp=lmtp) as mail_filter:
        for _ in range(40):
            lines = random.choices(LINES, k=random.randint(1, 40))
            ends = random.choices([b"\r\n"] * 6 + [b"\n", b"\r"], k=len(lines))
            client = mail_filter.raw()
            client.send(b"LHLO a\r\n" if lmtp else b"EHLO a\r\n")
            client.send(b"".join(map(bytes.__add__, lines, ends)) + b"\r\n.\r\nQUIT\r\n")
            with suppress(ConnectionError):  # a session with many unknown commands is broken off
                client.file.read()
            client.close()
        assert mail_filter.send() == ["250 2.0.0 kept"]
    assert {event["event"] for event in events} == {"smtp.message_handed_on"}


def test_the_filter_announces_what_the_next_hop_can_do(mail_filter: RunningFilter) -> None:
    with mail_filter.client() as client:
        assert client.esmtp_features == {
            "pipelining": "",
            "size": "1000000",
            "8bitmime": "",
            "smtputf8": "",
            "dsn": "",
        }
    mail_filter.hop.extensions = ["XFORWARD NAME ADDR", "SIZE 0", "CHUNKING"]
    with mail_filter.client() as client:
        assert client.esmtp_features == {
            "pipelining": "",
            "size": str(32 * 2**20),
            "xforward": "NAME ADDR",
        }
        assert client.docmd("XFORWARD NAME=mail.example.com")[0] == 250
    assert "XFORWARD NAME=mail.example.com" in mail_filter.hop.commands


def test_the_size_is_passed_on_only_to_a_next_hop_that_knows_it(mail_filter: RunningFilter) -> None:
    mail_filter.hop.extensions = ["8BITMIME"]
    with mail_filter.client() as client:
        assert client.docmd("MAIL FROM:<a@b> size=100 BODY=8BITMIME")[0] == 250
    assert "MAIL FROM:<a@b> BODY=8BITMIME" in mail_filter.hop.commands


def test_many_recipients_and_messages_in_one_session(mail_filter: RunningFilter) -> None:
    client = mail_filter.raw()
    recipients = [f"r{i}@example.org" for i in range(300)]
    commands = ["EHLO a"]
    for i in range(3):
        commands += [f"MAIL FROM:<s{i}@b>", *[f"RCPT TO:<{to}>" for to in recipients], "DATA", f"N: {i}", "."]
    client.send("".join(f"{command}\r\n" for command in commands).encode())  # pipelined
    assert {client.reply()[:3] for _ in range(1 + 3 * 303)} == {"250", "354"}
    client.close()
    assert [message.content for message in mail_filter.hop.messages] == [
        FIELDS + f"N: {i}\r\n".encode() for i in range(3)
    ]
    assert [len(message.recipients) for message in mail_filter.hop.messages] == [300] * 3
    assert mail_filter.hop.n_connections == 1


# Replies of the next hop


@pytest.mark.parametrize(
    ("command", "n_before"),
    [("MAIL FROM:<ann", 0), ("RCPT TO:<desk", 1), ("DATA", 2), (". TO:<desk", 2)],
)
@pytest.mark.parametrize("reply", ["552 5.3.4 too large", "451-4.7.1 later\r\n451 4.7.1 please"])
def test_refusals_of_the_next_hop_are_passed_back(
    mail_filter: RunningFilter, command: str, n_before: int, reply: str
) -> None:
    mail_filter.hop.replies[command] = reply
    with mail_filter.client() as client:
        replies = [client.docmd("MAIL FROM:<ann@b>"), client.docmd("RCPT TO:<desk@b>")][: n_before + 1]
        if n_before == 2:
            client.docmd("DATA")
            client.send(MESSAGE.replace(b"\r\n.", b"\r\n..") + b".\r\n")
            replies.append(client.getreply())
        *accepted, refused = replies
        assert [code for code, _ in accepted] == [250] * n_before
        lines = reply.split("\r\n")
        assert refused == (int(reply[:3]), "\n".join(line[4:] for line in lines).encode())
        # The session continues.
        mail_filter.hop.replies.clear()
        client.docmd("RSET")
        client.docmd("MAIL FROM:<ann@b>")
        client.docmd("RCPT TO:<desk@b>")
        assert data(client, MESSAGE, 1) == ["250 2.0.0 kept"]
    assert len(mail_filter.hop.messages) == 1


def test_the_message_goes_to_the_recipients_that_the_next_hop_accepts(mail_filter: RunningFilter) -> None:
    mail_filter.hop.replies["RCPT TO:<b@"] = "550 5.1.1 unknown"
    with mail_filter.client() as client:
        assert client.sendmail("ann@b", ["a@x", "b@x", "c@x"], MESSAGE) == {"b@x": (550, b"5.1.1 unknown")}
    assert mail_filter.hop.messages[0].recipients == ["TO:<a@x>", "TO:<c@x>"]


def test_a_message_is_accepted_only_after_the_next_hop_has_accepted_it(mail_filter: RunningFilter) -> None:
    arrived, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        arrived.set()
        assert go_on.wait(LIMIT_SECONDS)

    mail_filter.hop.before_reply = hold
    client = mail_filter.raw()
    client.send(b"EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nA: 1\r\n.\r\n")
    assert [client.reply()[:3] for _ in range(4)] == ["250", "250", "250", "354"]
    assert arrived.wait(LIMIT_SECONDS)
    assert not client.has_reply()
    go_on.set()
    assert client.reply() == "250 2.0.0 kept"
    client.close()


@pytest.mark.parametrize("reply", ["554 no", "close", "421 busy"])
def test_a_next_hop_that_does_not_greet_means_try_again(mail_filter: RunningFilter, reply: str) -> None:
    mail_filter.hop.replies["connect"] = reply
    client = mail_filter.raw()
    client.send(b"EHLO a\r\n")
    assert client.reply().startswith("421 4.3.2")
    assert client.reply() == ""
    client.close()


@pytest.mark.parametrize("reply", ["close", "421 4.3.2 stopping", "354 what", "nonsense"])
@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA", ". "])
def test_a_next_hop_that_breaks_off_means_try_again(
    mail_filter: RunningFilter, command: str, reply: str
) -> None:
    if (command, reply) == ("DATA", "354 what"):
        reply = "250 what"
    mail_filter.hop.replies[command] = reply
    client = mail_filter.raw()
    client.send(b"EHLO a\r\nMAIL FROM:<a@b>\r\n")
    assert client.reply()[:3] == "250"
    codes = [client.reply()[:3]]
    if command != "MAIL":
        client.send(b"RCPT TO:<c@d>\r\n")
        codes.append(client.reply()[:3])
    if command in ("DATA", ". "):
        client.send(b"DATA\r\nA: 1\r\n.\r\n")
        codes += [client.reply()[:3], client.reply()[:3]]
    assert codes[-1] == "451"
    mail_filter.hop.replies.clear()
    client.send(b"RSET\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nA: 1\r\n.\r\n")
    assert [client.reply()[:3] for _ in range(5)] == ["250", "250", "250", "354", "250"]
    client.close()
    assert len(mail_filter.hop.messages) == 1


def test_a_connection_that_the_next_hop_closed_meanwhile_is_opened_again(mail_filter: RunningFilter) -> None:
    with mail_filter.client() as client:
        for _ in range(2):
            mail_filter.hop.replies["."] = "close"
            assert client.mail("a@b")[0] == 250
            assert client.rcpt("c@d")[0] == 250
            assert data(client, MESSAGE, 1)[0].startswith("451 4.4.2")
            del mail_filter.hop.replies["."]
    assert mail_filter.send() == ["250 2.0.0 kept"]
    assert len(mail_filter.hop.messages) == 1


def test_a_client_that_breaks_off_leaves_no_message_behind(mail_filter: RunningFilter) -> None:
    client = mail_filter.raw()
    client.send(b"EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nA: 1\r\n\r\nHal")
    assert [client.reply()[:3] for _ in range(4)] == ["250", "250", "250", "354"]
    client.close()
    wait_for(lambda: mail_filter.hop.n_ended or None, what="the end of the connection")
    assert mail_filter.hop.messages == []
    assert mail_filter.send() == ["250 2.0.0 kept"]


def test_a_client_that_breaks_off_while_the_message_is_handed_on_leaves_no_message_behind(
    mail_filter: RunningFilter,
) -> None:
    arrived = threading.Event()

    def wait_for_the_end(connection: socket.socket) -> None:
        arrived.set()
        connection.recv(1, socket.MSG_PEEK)

    mail_filter.hop.before_data = wait_for_the_end
    client = mail_filter.raw()
    client.send(b"EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nA: 1\r\n.\r\n")
    assert arrived.wait(LIMIT_SECONDS)
    client.close()
    wait_for(lambda: mail_filter.hop.n_ended or None, what="the end of the connection")
    assert mail_filter.hop.messages == []


def test_a_long_last_reply_of_the_next_hop_cannot_confuse_the_client(mail_filter: RunningFilter) -> None:
    mail_filter.hop.replies["."] = "421-4.3.2 stopping\r\n421 4.3.2 250 accepted"
    assert mail_filter.send() == ["451 4.4.2 the next hop replied 421 4.3.2 stopping 4.3.2 250 accepted"]


# The service


@pytest.mark.parametrize("error", [NotRoutedError("the service returned 503"), ValueError("a defect")])
def test_a_message_that_cannot_be_routed_stays_with_its_sender(
    mail_filter: RunningFilter, error: Exception
) -> None:
    mail_filter.router.error = error
    assert mail_filter.send()[0].startswith("451 4.3.0")
    assert "DATA" not in mail_filter.hop.commands
    mail_filter.router.error = None
    assert mail_filter.send() == ["250 2.0.0 kept"]
    assert len(mail_filter.hop.messages) == 1


def test_a_message_that_cannot_be_routed_can_be_handed_on_without_a_decision(
    hop: RecordingMailServer,
) -> None:
    with running(hop, when_unavailable="pass") as mail_filter:
        mail_filter.router.error = NotRoutedError("the service is not available")
        assert mail_filter.send() == ["250 2.0.0 kept"]
    assert hop.messages[0].content == (
        b"X-Covey-Decision: not-routed; reason=unavailable; router=frontdesk\r\n" + ROUTED
    )


def test_the_filter_continues_when_the_service_is_available_again(hop: RecordingMailServer) -> None:
    with decision_service() as service:
        port = service.server_address[1]
        with running(hop, url=service.url) as mail_filter:
            assert mail_filter.send() == ["250 2.0.0 kept"]
            service.broken_connections = 1  # a kept connection is closed
            assert mail_filter.send() == ["250 2.0.0 kept"]
            service.broken_connections = 2
            assert mail_filter.send()[0].startswith("451")
            for status in (401, 404, 429, 500, 503):
                service.status = status
                assert mail_filter.send()[0].startswith("451")
            service.status = 200
            assert mail_filter.send() == ["250 2.0.0 kept"]
            assert service.received[0] == ("/v1/routers/frontdesk/messages", "Bearer cov_secret", MESSAGE)
            service.shutdown()
            service.server_close()
            assert mail_filter.send()[0].startswith("451")
            with decision_service(port):
                assert mail_filter.send() == ["250 2.0.0 kept"]
    assert len(hop.messages) == 4


# Logs and metrics


def health(mail_filter: RunningFilter, path: str) -> tuple[str, str]:
    """Return status and body of a response of the monitor."""
    statuses: list[str] = []

    def start(status: str, *_: object) -> Any:
        statuses.append(status)

    monitor = mail_filter.monitor
    respond = application(monitor.registry, monitor.reasons)
    body = respond({"PATH_INFO": path, "REQUEST_METHOD": "GET"}, start)
    return statuses[0], b"".join(body).decode()


def test_the_log_tells_what_became_of_each_message(mail_filter: RunningFilter) -> None:
    mail_filter.hop.extensions = ["XFORWARD IDENT"]
    mail_filter.hop.replies["RCPT TO:<b@"] = "550 5.1.1 unknown"
    message = b"Subject: Hello\r\nMESSAGE-ID:\r\n <1@example.com>\r\n\r\nHello\r\n"
    with captured_logs(smtp_protocol) as events, mail_filter.client() as client:
        for _ in range(2):
            client.docmd("XFORWARD IDENT=4XYZ SOURCE=REMOTE")
            client.mail("ann@example.com")
            assert [client.rcpt(recipient)[0] for recipient in ("a@x", "b@x", "c@x")] == [250, 550, 250]
            data(client, message, 1)
            mail_filter.router.error = NotRoutedError("the service is not available")
    handed_on, not_routed = events
    expected = {
        "queue_id": "4XYZ",
        "recipients": ["a@x", "c@x"],
        "n_recipients": 2,
        "message_id": "<1@example.com>",
    }
    assert {name: handed_on[name] for name in expected} == expected
    assert {name: not_routed[name] for name in expected} == expected
    assert handed_on["replies"] == ["250 2.0.0 kept"]
    assert handed_on["seconds"] >= 0
    assert mail_filter.router.traces[0].split("-")[1] == handed_on["trace_id"] != not_routed["trace_id"]


def test_metrics_and_health_tell_whether_messages_are_handled(mail_filter: RunningFilter) -> None:
    assert health(mail_filter, "/health")[0] == "200 OK"
    assert 'covey_mail_messages_total{outcome="not_routed"} 0.0' in health(mail_filter, "/metrics")[1]
    mail_filter.router.error = NotRoutedError("no route")
    mail_filter.send()
    status, body = health(mail_filter, "/health")
    assert (status, json.loads(body)["reasons"]) == ("503 Service Unavailable", {"service": "no route"})
    mail_filter.router.error = None
    mail_filter.hop.replies["connect"] = "554 no"
    client = mail_filter.raw()
    client.send(b"EHLO a\r\n")
    assert client.reply().startswith("421 4.3.2")
    client.close()
    assert {*json.loads(health(mail_filter, "/health")[1])["reasons"]} == {"service", "next_hop"}
    mail_filter.hop.replies.clear()
    mail_filter.send()
    assert health(mail_filter, "/health") == ("200 OK", '{"status": "ok", "reasons": {}}\n')
    metrics = health(mail_filter, "/metrics")[1]
    for outcome in ("handled", "not_routed"):
        assert f'covey_mail_messages_total{{outcome="{outcome}"}} 1.0' in metrics
    assert health(mail_filter, "/")[0] == "404 Not Found"


def test_the_monitor_listens_on_the_address_of_the_option() -> None:
    monitor, port = Monitor(), free_port()
    with monitor.serve(f"127.0.0.1:{port}"), urlopen(f"http://127.0.0.1:{port}/health") as response:
        assert response.status == 200
    with pytest.raises(ValueError, match="HOST:PORT"), monitor.serve("9000"):
        pass


def test_a_message_that_needs_a_review_goes_to_people(hop: RecordingMailServer) -> None:
    with running(hop, review_to="people@example.org") as mail_filter:
        mail_filter.router.decision = {**DECISION, "disposition": "review"}
        mail_filter.send()
    assert b"\r\nX-Covey-Destinations: people@example.org\r\n" in hop.messages[0].content


# Loops


def test_a_message_that_comes_back_is_handed_on_without_departments(mail_filter: RunningFilter) -> None:
    mail_filter.send()
    for _ in range(2):
        mail_filter.send(b"Received: by b\r\n" + mail_filter.hop.messages[-1].content)
    loop = b"X-Covey-Decision: not-routed; reason=loop; id=dec_1; router=frontdesk\r\n"
    assert mail_filter.hop.messages[1].content == loop + b"Received: by b\r\n" + ROUTED
    assert mail_filter.hop.messages[2].content == loop + b"Received: by b\r\n" * 2 + ROUTED


def test_a_sender_cannot_pretend_that_a_message_is_in_a_loop(mail_filter: RunningFilter) -> None:
    mail_filter.send(b"X-Covey-Decision: routed; id=dec_2\r\n" + MESSAGE)
    assert mail_filter.hop.messages[0].content == FIELDS + ROUTED


def test_a_message_with_too_many_hops_is_refused(mail_filter: RunningFilter) -> None:
    body = b"Subject: Hello\r\n\r\n" + b"Received: by b\r\n" * MAX_HOPS
    assert mail_filter.send(b"Received: by a\r\n" * (MAX_HOPS - 1) + body) == ["250 2.0.0 kept"]
    assert mail_filter.send(b"Received: by a\r\n" * MAX_HOPS + body)[0].startswith("554 5.4.6")


@pytest.mark.parametrize("name", ["Auto-Submitted: auto-replied", "Return-Path: <>", "Precedence: bulk"])
def test_messages_of_programs_are_handed_on_once_and_not_answered(
    mail_filter: RunningFilter, name: str
) -> None:
    message = f"{name}\r\n\r\nI am away.\r\n".encode()
    assert mail_filter.send(message) == ["250 2.0.0 kept"]
    assert [received.content for received in mail_filter.hop.messages] == [FIELDS + message]


# LMTP


def test_lmtp_replies_for_each_recipient(tmp_path: Path) -> None:
    with mail_server(lmtp=True, path=tmp_path / "hop") as hop, running(hop, lmtp=True) as mail_filter:
        hop.replies = {". TO:<b@x>": "452 4.2.2 full", ". TO:<c@x>": "550-5.7.1 no\r\n550 5.7.1 never"}
        assert mail_filter.send(MESSAGE, "a@x", "b@x", "c@x") == [
            "250 2.0.0 kept",
            "452 4.2.2 full",
            "550 5.7.1 no\n5.7.1 never",
        ]
        assert hop.messages[0].content == FIELDS + ROUTED
        # The connection breaks after the first reply.
        hop.replies = {". TO:<b@x>": "close"}
        replies = mail_filter.send(MESSAGE, "a@x", "b@x", "c@x")
        assert [reply[:9] for reply in replies] == ["250 2.0.0", "451 4.4.2", "451 4.4.2"]


@pytest.mark.parametrize("problem", ["service", "size", "hops", "hop"])
def test_lmtp_replies_for_each_recipient_if_the_message_is_not_handed_on(
    hop: RecordingMailServer, problem: str
) -> None:
    with running(hop, lmtp=True, max_bytes=10_000) as mail_filter:
        message = MESSAGE
        match problem:
            case "service":
                mail_filter.router.error = NotRoutedError("the service is not available")
            case "size":
                message += b"a" * 10_000 + b"\r\n"
            case "hops":
                message = b"Received: by a\r\n" * MAX_HOPS
            case "hop":
                hop.replies["DATA"] = "451 4.3.0 no"
        replies = mail_filter.send(message, "a@x", "b@x")
        assert replies == [replies[0]] * 2
        assert replies[0][:3] == {"service": "451", "size": "552", "hops": "554", "hop": "451"}[problem]
        assert hop.messages == []
        hop.replies.clear()
        mail_filter.router.error = None
        assert mail_filter.send(MESSAGE, "a@x", "b@x") == ["250 2.0.0 kept"] * 2


def test_lmtp_does_not_accept_greetings_of_smtp(hop: RecordingMailServer) -> None:
    with running(hop, lmtp=True) as mail_filter:
        client = mail_filter.raw()
        client.send(b"EHLO a\r\nHELO a\r\nLHLO a\r\n")
        assert [client.reply()[:3] for _ in range(3)] == ["500", "500", "250"]
        client.close()


def test_from_smtp_to_lmtp_each_message_has_one_recipient() -> None:
    """Otherwise, one reply would have to tell the results of several recipients."""
    with mail_server(lmtp=True) as hop, running(hop) as mail_filter, mail_filter.client() as client:
        client.mail("a@b")
        assert [client.rcpt(to)[0] for to in ("c@d", "e@f")] == [250, 452]
        assert data(client, MESSAGE, 1) == ["250 2.0.0 kept"]
        assert hop.messages[0].recipients == ["TO:<c@d>"]


# Limits


def test_a_message_that_is_too_large_is_refused_and_the_session_continues(hop: RecordingMailServer) -> None:
    with running(hop, max_bytes=100_000) as mail_filter, mail_filter.client() as client:
        assert client.docmd("MAIL FROM:<a@b> SIZE=100001")[0] == 552
        for size, code in ((100_001, "552"), (100_000, "250")):
            client.mail("a@b")
            client.rcpt("c@d")
            message = MESSAGE + b"a" * (size - len(MESSAGE) - 2) + b"\r\n"
            assert data(client, message, 1)[0][:3] == code
    assert [len(message.content) for message in hop.messages] == [
        len(FIELDS + ROUTED) - len(MESSAGE) + 100_000
    ]


DATA = b"EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n"


def test_messages_wait_for_their_turn(hop: RecordingMailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    arrived, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        arrived.set()
        assert go_on.wait(LIMIT_SECONDS)

    hop.before_reply = hold
    with running(hop, max_messages=1) as mail_filter:
        first, second = mail_filter.raw(), mail_filter.raw()
        first.send(DATA + b"N: 1\r\n.\r\n")
        assert arrived.wait(LIMIT_SECONDS)
        # Not for ever: the client tries again later.
        monkeypatch.setattr(smtp_protocol, "SLOT_SECONDS", 0.01)
        second.send(DATA + b"N: 2\r\n.\r\n")
        assert [second.reply()[:9] for _ in range(5)][-1] == "451 4.3.2"
        monkeypatch.setattr(smtp_protocol, "SLOT_SECONDS", LIMIT_SECONDS)
        second.send(b"MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nN: 2\r\n.\r\n")
        assert [second.reply()[:3] for _ in range(3)] == ["250", "250", "354"]
        go_on.set()
        assert [first.reply() for _ in range(5)][-1] == second.reply() == "250 2.0.0 kept"
        first.close()
        second.close()


@pytest.mark.parametrize("size", [1, smtp_protocol.SHORT_BYTES + 1])
def test_slow_clients_do_not_delay_others_and_are_broken_off(
    hop: RecordingMailServer, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    with running(hop, max_messages=1) as mail_filter:
        slow = [mail_filter.raw() for _ in range(3)]
        for client in slow:
            client.send(DATA + b"a" * size)
            assert [client.reply()[:3] for _ in range(4)][-1] == "354"
        assert mail_filter.send() == ["250 2.0.0 kept"]
        monkeypatch.setattr(smtp_protocol, "PROGRESS_SECONDS", 0.01)
        monkeypatch.setattr(smtp_protocol, "SLOT_SECONDS", 0.01)
        late = mail_filter.raw()
        late.send(DATA + b"a" * size)
        assert [late.reply()[:9] for _ in range(6)][-2:] == ["421 4.4.2", ""]
        for client in (*slow, late):
            client.close()


def test_a_long_message_waits_for_others_only_for_a_time(
    hop: RecordingMailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"a" * (smtp_protocol.SHORT_BYTES + 1) + b"\r\n.\r\n"
    with running(hop, max_messages=1) as mail_filter:
        first, second = mail_filter.raw(), mail_filter.raw()
        first.send(DATA + content[:-5])
        assert [first.reply()[:3] for _ in range(4)][-1] == "354"
        wait_for(mail_filter.is_full, what="a long message that arrives")
        monkeypatch.setattr(smtp_protocol, "SLOT_SECONDS", 0.01)
        second.send(DATA + content[:-5])
        assert [second.reply()[:9] for _ in range(6)][-2:] == ["421 4.4.2", ""]
        first.send(content[-5:])
        assert first.reply() == "250 2.0.0 kept"
        for client in (first, second):
            client.close()


def test_a_client_that_does_not_read_is_disconnected(
    hop: RecordingMailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp_protocol, "IDLE_SECONDS", 0.2)
    with running(hop) as mail_filter:
        client = mail_filter.raw()
        client.socket.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                client.socket.send(b"EHLO a\r\n" * 4096)
        wait_for(lambda: mail_filter.n_connections() == 0 or None, what="the end of the connection")
        client.close()


def test_a_client_that_ends_before_the_greeting_is_disconnected(mail_filter: RunningFilter) -> None:
    with socket.create_connection((mail_filter.address.host, mail_filter.address.port)) as client:
        client.shutdown(socket.SHUT_WR)
        client.settimeout(LIMIT_SECONDS)
        while client.recv(4096):
            pass


def test_too_many_clients_are_asked_to_come_back(
    hop: RecordingMailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp_server, "MAX_CONNECTIONS", 1)
    with (
        running(hop) as mail_filter,
        mail_filter.client(),
        socket.create_connection(("127.0.0.1", mail_filter.address.port)) as connection,
        connection.makefile("rb") as file,
    ):
        assert file.readline().startswith(b"421 4.3.2")


# Not an open relay


def test_only_named_clients_may_connect() -> None:
    networks = [ip_network("10.1.0.0/16"), ip_network("2001:db8::/32")]
    allowed = ["127.0.0.1", "127.8.9.1", "::1", "10.1.2.3", "::ffff:10.1.2.3", "2001:db8::7"]
    assert [address for address in allowed if not is_allowed(address, networks)] == []
    refused = ["10.2.0.1", "8.8.8.8", "::ffff:8.8.8.8", "2001:db9::1"]
    assert [address for address in refused if is_allowed(address, networks)] == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 - refused
def test_an_address_that_is_not_local_needs_named_clients(hop: RecordingMailServer, host: str) -> None:
    options = FilterOptions(Address(False, host, 0), Address.parse(hop.address))
    with start_blocking_portal() as portal, pytest.raises(ListenError, match="--allow-client"):
        RunningFilter(portal, hop, options)


# Start and stop


def test_a_filter_that_stops_finishes_the_message_in_progress(mail_filter: RunningFilter) -> None:
    idle, between, busy = (mail_filter.raw() for _ in range(3))
    between.send(b"EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n")
    assert [between.reply()[:3] for _ in range(3)] == ["250"] * 3
    busy.send(b"EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nA: 1\r\n")
    assert [busy.reply()[:3] for _ in range(4)] == ["250", "250", "250", "354"]
    stopping = threading.Thread(target=mail_filter.stop)
    stopping.start()
    assert [idle.reply()[:3], idle.reply()] == ["421", ""]
    assert [between.reply()[:3], between.reply()] == ["421", ""]
    busy.send(b".\r\n")
    assert [busy.reply(), busy.reply()[:3], busy.reply()] == ["250 2.0.0 kept", "421", ""]
    stopping.join()
    assert len(mail_filter.hop.messages) == 1
    with pytest.raises(ConnectionRefusedError):
        mail_filter.raw()
    for client in (idle, between, busy):
        client.close()


def test_a_connection_that_was_accepted_just_before_the_stop_is_closed(mail_filter: RunningFilter) -> None:
    mail_filter._server._state.stopping = True
    with (
        socket.create_connection((mail_filter.address.host, mail_filter.address.port)) as connection,
        connection.makefile("rb") as file,
    ):
        assert file.read().startswith(b"421 4.3.2")


def test_the_filter_listens_on_a_unix_socket(hop: RecordingMailServer, tmp_path: Path) -> None:
    path = tmp_path / "filter"
    options = FilterOptions(Address(False, str(path), 0), Address.parse(hop.address))
    with start_blocking_portal() as portal:
        server = RunningFilter(portal, hop, options)
        assert server.send() == ["250 2.0.0 kept"]
        server.stop()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:25", Address(False, "127.0.0.1", 25)),
        ("smtp:mail.example.org:25", Address(False, "mail.example.org", 25)),
        ("lmtp:[::1]:24", Address(True, "::1", 24)),
        ("lmtp:/run/dovecot/lmtp", Address(True, "/run/dovecot/lmtp", 0)),
    ],
)
def test_addresses_are_read(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert Address.parse(str(address)) == address


@pytest.mark.parametrize("text", ["", "mail", "mail:", ":25", "::1:25", "unix:/run/a", "a b:25", "a:999999"])
def test_malformed_addresses_are_refused(text: str) -> None:
    with pytest.raises(AddressError, match="not an address"):
        Address.parse(text)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--next-hop", "mail"], "'mail' is not an address"),
        (["--next-hop", "mail:25", "--allow-client", "10.0.0.1/8"], "has host bits set"),
        (["--next-hop", "mail:25", "--listen", "0.0.0.0:0"], "--allow-client"),
        (["--next-hop", "mail:25", "--listen", "/does/not/exist"], "cannot listen on /does/not/exist"),
        (["--next-hop", "mail:25", "--url", "127.0.0.1:8000"], "does not begin with http://"),
        (["--next-hop", "mail:25", "--url", "http://127.0.0.1:x"], "Invalid port"),
        (["--next-hop", "mail:25", "--key-file", "/does/not/exist"], "API key cannot be read"),
    ],
)
def test_a_wrong_option_ends_the_command_with_the_reason(words: list[str], reason: str) -> None:
    words = ["--listen", "127.0.0.1:0", *words]
    result = CliRunner().invoke(cli, ["smtp", "--router", "frontdesk", *words])
    assert result.exit_code == 1
    assert reason in result.stderr
