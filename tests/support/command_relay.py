"""Runs ``covey`` for servers whose users cannot read the files of the tests.

Postfix runs commands as an unprivileged user, who may not even reach the interpreter. The server therefore
runs a small script, which passes its arguments and its input to the process of the test, and ends with the
status that it gets back.
"""

from __future__ import annotations

import socket
import socketserver
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import fork_server

_SCRIPT = r"""#!/usr/bin/perl
use strict; use IO::Socket::UNIX;
my $relay = IO::Socket::UNIX->new(Peer => '{socket}') or exit 75;
binmode STDIN; local $/; my $input = <STDIN>;
print $relay scalar(@ARGV) . "\n", (map { length($_) . "\n$_" } @ARGV), $input;
$relay->shutdown(1);
my $status = <$relay>;
exit($status =~ /^\d+$/ ? $status : 75);
"""


Run: TypeAlias = Callable[[list[str], bytes], int]


def in_fork_server(environment: Callable[[], dict[str, str]]) -> Run:
    """Return how to run the command as a fork, with the environment that a function returns."""

    def run(words: list[str], message: bytes) -> int:
        result = fork_server.run(words, environment(), message)
        sys.stderr.write(result.stderr.decode())
        return result.returncode

    return run


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, _Server)
        words = [
            self.rfile.read(int(self.rfile.readline())).decode() for _ in range(int(self.rfile.readline()))
        ]
        self.wfile.write(str(self.server.run(words, self.rfile.read())).encode())
        self.request.shutdown(socket.SHUT_WR)


class _Server(socketserver.ThreadingUnixStreamServer):
    def __init__(self, path: Path, run: Run) -> None:
        super().__init__(str(path), _Handler)
        self.run = run


@contextmanager
def relay(run: Run) -> Iterator[Path]:
    """Yield a script that stands for the command ``covey``.

    Args:
        run: runs the command with arguments and an input, and returns its exit status.
    """
    with tempfile.TemporaryDirectory(prefix="covey-relay-") as folder:
        Path(folder).chmod(0o755)
        path, script = Path(folder, "relay"), Path(folder, "relay.pl")
        script.write_text(_SCRIPT.replace("{socket}", str(path)))
        script.chmod(0o755)
        with _Server(path, run) as server:
            path.chmod(0o666)
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                yield script
            finally:
                server.shutdown()
                thread.join()
