"""The start of the server."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import socket
from pathlib import Path

import fork_server
import uvicorn
from fastapi import FastAPI
from waiting import LIMIT_SECONDS

from app.server.server import START_FAILED, Server


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


def test_a_process_whose_supervisor_has_died_ends_at_once(tmp_path: Path, migrated_sqlite: Path) -> None:
    shutil.copyfile(migrated_sqlite, tmp_path / "covey.db")
    environment = {**os.environ, "COVEY_DATA_DIR": str(tmp_path)}
    unread, broken = os.pipe()
    os.close(unread)
    log = tmp_path / "log"
    with log.open("wb") as file:
        process = fork_server.start(["api", "--port", "0", "--ready-fd", "1"], environment, broken, file)
    os.close(broken)
    assert process.wait(LIMIT_SECONDS) == START_FAILED
    assert "BrokenPipeError" in log.read_text()
