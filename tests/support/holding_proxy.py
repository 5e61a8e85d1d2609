"""A TCP proxy that stops before a command or a response, so that a test can act at a known point."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from waiting import LIMIT_SECONDS


class HoldingProxy:
    """The proxy.

    Args:
        target: port of the server on this machine.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._pattern: re.Pattern[bytes] | None = None
        self._holds_responses = False
        self._held = threading.Event()
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def hold(self, pattern: bytes, *, response: bool = False) -> None:
        """From now on, do not pass on a command, or a response, that matches, and nothing after it."""
        self._held.clear()
        self._holds_responses = response
        self._pattern = re.compile(pattern)

    def wait(self) -> None:
        """Wait until a command is held."""
        assert self._held.wait(LIMIT_SECONDS), "no command was held"

    def release(self) -> None:
        """Pass on the commands of new connections; close those that exist."""
        self._pattern = None
        self.close_connections()

    def close_connections(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stop."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self.close_connections()
        for thread in self._threads[1:]:
            thread.join()
        for each in [*self._connections, self._listener]:
            each.close()

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._connections += [client, server]
                self._start(self._pass_on, client, server, True)
                self._start(self._pass_on, server, client, False)

    def _pass_on(self, source: socket.socket, sink: socket.socket, from_client: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                held = from_client != self._holds_responses
                if held and self._pattern is not None and self._pattern.search(data):
                    self._held.set()
                    return
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


@contextmanager
def holding_proxy(target: int) -> Iterator[HoldingProxy]:
    """Run a proxy while the block lasts."""
    proxy = HoldingProxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
