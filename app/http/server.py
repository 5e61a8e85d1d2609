"""How an API process stops without losing a request.

From the moment of SIGTERM it says in its readiness that it is not ready, so that no balancer sends it
more, and closes each connection with the answer to the next request on it. For ``COVEY_DRAIN_SECONDS`` it
still takes new connections; then it takes none, but for a moment still hears out those that it has taken.
Requests under way are finished in any case, and streams of events end: their readers come back with
``Last-Event-ID``.
"""

from __future__ import annotations

import asyncio
import os
import socket
from types import FrameType

import uvicorn
from fastapi import FastAPI

LINGER_SECONDS = 0.5
"""How long connections without a request are kept once no new ones are taken."""


class Server(uvicorn.Server):
    """A server that drains.

    Args:
        config: of the server; its application is ``app``.
        app: told by ``app.state.draining``.
        drain_seconds: how long new connections are still taken.
        ready_fd: written to once the server serves, for the process that waits for it.
    """

    def __init__(
        self, config: uvicorn.Config, app: FastAPI, *, drain_seconds: float, ready_fd: int | None = None
    ) -> None:
        super().__init__(config)
        self._app = app
        self._drain_seconds = drain_seconds
        self._ready_fd = ready_fd

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, and say so."""
        await super().startup(sockets)
        if self._ready_fd is not None and self.started:
            os.write(self._ready_fd, b"\n")
            os.close(self._ready_fd)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal to stop has come."""
        self._app.state.draining = True
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain, then stop."""
        if not self.force_exit:
            await asyncio.sleep(self._drain_seconds)
        for server in self.servers:
            server.close()
        clock = asyncio.get_running_loop().time
        until = clock() + LINGER_SECONDS
        while self.server_state.connections and clock() < until and not self.force_exit:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)
