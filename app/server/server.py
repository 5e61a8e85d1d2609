"""The uvicorn server of the API, which stops without losing a request.

On SIGTERM, readiness turns 503, so that a load balancer sends no more requests, and the server closes each
connection after its next response. For ``COVEY_DRAIN_SECONDS`` the server still accepts new connections.
Then it accepts none, but waits a moment for requests on connections that are open. Requests in progress
always finish. Event streams end; their clients reconnect with ``Last-Event-ID``.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
from types import FrameType

import uvicorn
from fastapi import FastAPI

from app.server.protocol import HttpProtocol
from app.server.shared_listener import SharedListener

LINGER_SECONDS = 0.5
"""How long idle connections stay open after the server stops accepting new ones."""

TICK_SECONDS = 0.1
"""Time between two ticks of uvicorn."""

LIMITS_TICKS = 5
"""Number of ticks between two checks of the limits of connections."""


class Server(uvicorn.Server):
    """A server that drains before it stops.

    Args:
        config: configuration of the server; its application is ``app``.
        app: the application; ``app.state.draining`` is set when draining begins.
        drain_seconds: how long the server still accepts new connections.
        ready_fd: descriptor to write one byte to as soon as the server accepts requests.
        shared: the listening socket, if other processes accept connections on it too.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        app: FastAPI,
        *,
        drain_seconds: float,
        ready_fd: int | None = None,
        shared: SharedListener | None = None,
    ) -> None:
        super().__init__(config)
        self._app = app
        self._drain_seconds = drain_seconds
        self._ready_fd = ready_fd
        self._shared = shared
        self._limits_checked_at = 0.0

    async def on_tick(self, counter: int) -> bool:
        """Check the limits of all connections about twice a second."""
        if self._shared is not None:
            self._shared.publish()
        if counter % LIMITS_TICKS == 0:
            now = asyncio.get_running_loop().time()
            # If the process did not run for a while, its clients are not to blame.
            seconds = min(now - self._limits_checked_at, 2 * LIMITS_TICKS * TICK_SECONDS)
            self._limits_checked_at = now
            for connection in list(self.server_state.connections):
                if isinstance(connection, HttpProtocol):
                    connection.check_limits(seconds)
        return await super().on_tick(counter)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept requests, and report it on ``ready_fd``."""
        await super().startup(sockets)
        # Otherwise each full collection of garbage passes over all modules and schemas, which takes more than
        # 100 ms, during which no request continues.
        gc.collect()
        gc.freeze()
        if self._shared is not None and self.started:
            self._shared.start(self._create_protocol, lambda: len(self.server_state.connections))
        if self._ready_fd is not None and self.started:
            os.write(self._ready_fd, b"\n")
            os.close(self._ready_fd)

    def _create_protocol(self) -> asyncio.Protocol:
        protocol: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a stop signal: begin to drain."""
        self._app.state.draining = True
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain, then stop."""
        if not self.force_exit:
            await asyncio.sleep(self._drain_seconds)
        for server in self.servers:
            server.close()
        if self._shared is not None:
            self._shared.close()
        clock = asyncio.get_running_loop().time
        deadline = clock() + LINGER_SECONDS
        while self.server_state.connections and clock() < deadline and not self.force_exit:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)
