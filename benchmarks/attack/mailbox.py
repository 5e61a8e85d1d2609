"""A mailbox whose messages are too large, watched by ``covey imap`` on Dovecot."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import dovecot
from deciding_service import deciding_service
from dovecot import Dovecot

from benchmarks.attack.harness import MIB, Result, Targets, at_most, attack, expect, holds, memory, until

USER = "ann"
MESSAGE_BYTES = 300 * MIB


def _append(server: Dovecot, n_bytes: int) -> None:
    head = b"From: ann@example.com\r\nSubject: billing\r\n\r\n"
    server.append(USER, head + (b"x" * 76 + b"\r\n") * (n_bytes // 78))


@attack("a message of 300 MB in a mailbox")
def large_message(targets: Targets) -> Iterator[Result]:
    """Watch a mailbox with a small and a large message; only the beginning of the large one is fetched."""
    folder = targets.new_folder()
    (folder / "password").write_text(dovecot.PASSWORD, encoding="utf-8")
    with dovecot.server([USER]) as server, deciding_service() as service:
        server.create(USER, "billing")
        _append(server, 100)
        command = [
            *(sys.executable, "-m", "app", "imap", "--router", "frontdesk", "--url", service.url),
            *("--host", "127.0.0.1", "--port", str(server.port), "--security", "none", "--user", USER),
            *("--password-file", str(folder / "password"), "--state", str(folder / "state.json")),
            *("--folder", "{label}", "--existing"),
        ]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as watcher:

            def moved() -> int:
                return sum(1 for _ in server.maildir(USER, "billing").glob("*/[0-9]*"))

            until(lambda: moved() == 1, "the small message")
            before = memory(watcher.pid, "VmHWM")
            _append(server, MESSAGE_BYTES)
            until(lambda: moved() == 2, "the large message")
            yield expect("messages in the folder", moved(), 2)
            grown = memory(watcher.pid, "VmHWM") - before
            yield at_most("growth of the watcher's memory", grown / MIB, 150, "MiB")
            yield expect("times that the large message was routed", len(service.received) - 1, 1)
            yield holds("bytes that were fetched", len(service.received[-1]) < MESSAGE_BYTES // 10)
            watcher.terminate()
