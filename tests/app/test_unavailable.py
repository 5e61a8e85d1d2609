"""What is away for a while is answered with 503 and when to come again, never with a fault."""

from __future__ import annotations

import asyncio
import errno

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import exc

from app.http import problem_handlers
from app.storage import StorageUnavailableError

AWAY = {
    "the server is gone": exc.OperationalError("SELECT 1", {}, OSError("gone")),
    "the connection is gone": exc.InterfaceError("SELECT 1", {}, OSError("gone")),
    "every connection is in use": exc.TimeoutError("QueuePool limit"),
    "the disk is full": OSError(errno.ENOSPC, "No space left on device"),
    "the quota is used up": OSError(errno.EDQUOT, "Disk quota exceeded"),
    "the bucket does not answer": StorageUnavailableError("no answer"),
}


def asked(error: Exception) -> tuple[int, str, str | None]:
    app = FastAPI()
    problem_handlers.install(app)

    @app.get("/")
    def _() -> None:
        raise error

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://covey") as client:
            return await client.get("/")

    response = asyncio.run(ask())
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, response.json()["code"], response.headers.get("retry-after")


@pytest.mark.parametrize("what", AWAY)
def test_come_again(what: str) -> None:
    status, code, retry_after = asked(AWAY[what])
    assert (status, code) == (503, "not_ready")
    assert retry_after is not None
    assert int(retry_after) > 0


def test_another_error_of_the_system_is_a_fault() -> None:
    assert asked(FileNotFoundError(errno.ENOENT, "gone")) == (500, "internal_error", None)
