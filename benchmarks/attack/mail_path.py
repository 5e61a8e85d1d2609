"""``covey smtp`` and hostile clients: memory, forged fields, smuggled messages, slow clients."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from decision_service import decision_service
from production import free_port
from recording_mail_server import RecordingMailServer, mail_server

from benchmarks.attack.harness import MIB, Result, Targets, at_most, attack, expect, holds, memory, within

BEGIN = b"EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n"
FORGED = b"X-Covey-Departments: forged"
LINE_ENDS = (
    b"\n",
    b"\r\n",
    b"\r",
    b"\r\r\n",
    b"\n\r",
    b"\r\r",
    b"\r" * 1000 + b"\n",
    b"\r\n\r",
    b"\r\n\r\r\n",
)
RECEIVERS = {
    "LF": re.compile(rb"\r*\n"),
    "CR LF": re.compile(rb"\r\n"),
    "CR, LF and CR LF": re.compile(rb"\r\n|\r|\n"),
}
"""What common receivers take for the end of a line."""
SLOW_CLIENTS = 10


@contextmanager
def _filter() -> Iterator[tuple[int, int, RecordingMailServer]]:
    """Run ``covey smtp``; yields its process id, its port and the next hop."""
    with mail_server() as hop, decision_service() as service:
        port = free_port()
        command = [
            *(sys.executable, "-m", "app", "smtp", "--router", "frontdesk", "--url", service.url),
            *("--listen", f"127.0.0.1:{port}", "--next-hop", hop.address),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(b"Covey filters mail at ")
            try:
                yield process.pid, port, hop
            finally:
                process.kill()


def _replies(client: socket.socket, n: int) -> list[bytes]:
    """Return the last lines of replies."""
    replies: list[bytes] = []
    with client.makefile("rb") as file:
        while len(replies) < n and (line := file.readline()):
            if line[3:4] != b"-":
                replies.append(line)
    return replies


def _send(port: int, content: bytes) -> bytes:
    """Send a message, and return the last reply."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as client:
        client.sendall(BEGIN + content + b"\r\n.\r\n")
        return _replies(client, 6)[-1]


@attack("a mail header of 16 MiB")
def large_header(targets: Targets) -> Iterator[Result]:
    """Send fields that a pattern reads byte by byte; what they cost in memory was 140 times their size."""
    del targets
    for name, content in {
        "one field X-Covey-Decision": b"X-Covey-Decision: " + b"a" * 16 * MIB,
        "a folded field X-Covey-Decision": b"X-Covey-Decision: id=a" + b"\r\n " * (16 * MIB // 3),
        "many fields X-Covey-Decision": b"X-Covey-Decision: id=abcde\r\n" * (16 * MIB // 28),
        "a line of CR": b"A: " + b"\r" * 16 * MIB,
        "lines of LF": b"A: 1\n" * (16 * MIB // 5),
        "dots between CR": b"A: 1\r\n\r\n" + b"\r.\r" * (16 * MIB // 3),
    }.items():
        with _filter() as (pid, port, _):
            before = memory(pid, "VmHWM")
            began = time.monotonic()
            reply = _send(port, content)
            yield expect(f"{name}: reply", reply[:3], b"250")
            grown = (memory(pid, "VmHWM") - before) / MIB
            yield at_most(f"{name}: growth of the filter's memory", grown, 300.0, "MiB")
            yield within(f"{name}: time to hand the message on", time.monotonic() - began, 10.0)


@attack("forged fields after every kind of line end")
def forged(targets: Targets) -> Iterator[Result]:
    """Send a field of the service at each place where a receiver could find it."""
    del targets
    with _filter() as (_, port, hop):
        for before in LINE_ENDS:
            for after in LINE_ENDS:
                for blank in (b"", b"\r", b"\r" * 1000):
                    content = b"A: 1" + before + blank + FORGED + after + b"B: 2" + before + b"\r\nHello"
                    assert _send(port, content)[:3] == b"250"
        seen = dict.fromkeys(RECEIVERS, 0)
        for message in hop.messages:
            for receiver, end in RECEIVERS.items():
                header = end.split(message.content)
                header = header[: header.index(b"")] if b"" in header else header
                seen[receiver] += any(line.lower().startswith(FORGED.lower()) for line in header)
        for receiver, number in seen.items():
            what = f"of {len(hop.messages)} messages, those that forge a field for receivers of {receiver}"
            yield expect(what, number, 0)


@attack("messages after a dot between every kind of line end")
def smuggled(targets: Targets) -> Iterator[Result]:
    """Send what some receivers take for the end of a message."""
    del targets
    with _filter() as (_, port, hop):
        for before in (b"\n", b"\r", b"\r\n"):
            for after in (b"\n", b"\r", b"\r\n"):
                if (before, after) != (b"\r\n", b"\r\n"):
                    _send(port, b"A: 1\r\n\r\nHello" + before + b"." + after + b"MAIL FROM:<evil@b>")
        lone = re.compile(rb"\r(?=\.)|(?<=\n\.)\r(?!\n)|(?<!\r)\n")
        found = sum(bool(lone.search(message.content)) for message in hop.messages)
        yield expect("messages that arrive", len(hop.messages), 8)
        yield expect("of these, those with another line end than CR LF around a dot", found, 0)


@attack("ten clients that send a byte now and then")
def slow(targets: Targets) -> Iterator[Result]:
    """Hold as many messages open as are routed at the same time; others must be handed on."""
    del targets
    with _filter() as (_, port, _hop), ExitStack() as opened:
        clients = []
        for _ in range(SLOW_CLIENTS):
            client = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            client.sendall(BEGIN + b"A")
            yield holds("the content is asked for", _replies(client, 5)[-1].startswith(b"354"))
            clients.append(client)
        began = time.monotonic()
        yield expect("reply to another message", _send(port, b"A: 1\r\n\r\nHello")[:3], b"250")
        yield within("time to hand it on", time.monotonic() - began, 5.0)
        ended = 0
        while ended < SLOW_CLIENTS and time.monotonic() - began < 90:
            time.sleep(1)
            ended = 0
            for client in clients:
                try:
                    client.send(b"a")
                    client.setblocking(False)
                    ended += client.recv(1, socket.MSG_PEEK) is not None
                except BlockingIOError:
                    pass
                except OSError:
                    ended += 1
        yield expect("clients that are broken off within 90 s", ended, SLOW_CLIENTS)
