"""Runs commands for servers whose users cannot read the files of the tests.

Postfix runs commands as an unprivileged user, who may not even reach the interpreter. The server therefore
runs a small script, which passes its arguments and its input to the process of the test, and ends with the
status that it gets back.
"""

from __future__ import annotations

import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from waiting import LIMIT_SECONDS

_SCRIPT = r"""#!/usr/bin/perl
use strict; use IO::Socket::UNIX;
my $relay = IO::Socket::UNIX->new(Peer => '{socket}') or exit 75;
binmode STDIN; local $/; my $input = <STDIN>;
print $relay scalar(@ARGV) . "\n", (map { length($_) . "\n$_" } @ARGV), $input;
$relay->shutdown(1);
my $status = <$relay>;
exit($status =~ /^\d+$/ ? $status : 75);
"""


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, _Server)
        words = [
            self.rfile.read(int(self.rfile.readline())).decode() for _ in range(int(self.rfile.readline()))
        ]
        result = subprocess.run(
            [*self.server.command, *words],
            input=self.rfile.read(),
            env=self.server.environment(),
            stdout=sys.stderr,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        self.wfile.write(str(result.returncode).encode())
        self.request.shutdown(socket.SHUT_WR)


class _Server(socketserver.ThreadingUnixStreamServer):
    def __init__(self, path: Path, command: list[str], environment: Callable[[], dict[str, str]]) -> None:
        super().__init__(str(path), _Handler)
        self.command, self.environment = command, environment


@contextmanager
def relay(command: list[str], environment: Callable[[], dict[str, str]]) -> Iterator[Path]:
    """Yield a script that stands for a command.

    Args:
        command: the command; the arguments of the script are added.
        environment: returns its environment, each time that it runs.
    """
    with tempfile.TemporaryDirectory(prefix="covey-relay-") as folder:
        Path(folder).chmod(0o755)
        path, script = Path(folder, "relay"), Path(folder, "relay.pl")
        script.write_text(_SCRIPT.replace("{socket}", str(path)))
        script.chmod(0o755)
        with _Server(path, command, environment) as server:
            path.chmod(0o666)
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                yield script
            finally:
                server.shutdown()
                thread.join()
