"""The start of the server."""

from __future__ import annotations

import asyncio
import gc
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.routing import APIRoute

from app.main import create_app
from app.server.server import Server
from app.settings import Settings

ROOT = Path(__file__).parents[3]


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


def test_no_validator_is_built_for_an_error_response() -> None:
    """There are more than a thousand, and each process that starts would build all of them."""
    statuses = {
        int(status)
        for route in create_app(Settings()).routes
        if isinstance(route, APIRoute)
        for status in route.response_fields
    }
    assert {status for status in statuses if status >= 400} == set()


@pytest.mark.parametrize("module", ["app.cli.serve_api", "app.cli.database", "workers.celery"])
def test_a_start_imports_no_library_of_migrations(module: str) -> None:
    """A process that starts on a database that is up to date does not need it."""
    code = f"import sys, {module}; print('alembic' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout == "False\n"
