"""The start of the server."""

from __future__ import annotations

import asyncio
import gc
import socket

import uvicorn
from fastapi import FastAPI

from app.server.server import Server


def test_collections_of_garbage_pass_over_no_object_from_before_the_first_request() -> None:
    """Otherwise a full collection delays all requests by more than 100 ms."""
    app = FastAPI()
    app.state.draining = False

    async def start_and_stop(listening: socket.socket) -> int:
        server = Server(uvicorn.Config(app, log_config=None), app, drain_seconds=0)
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup([listening])
        frozen = gc.get_freeze_count()
        await server.shutdown([listening])
        return frozen

    try:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            assert asyncio.run(start_and_stop(listening)) > 10_000
    finally:
        gc.unfreeze()
