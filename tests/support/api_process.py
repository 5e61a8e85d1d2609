"""Runs the HTTP application in the process of the test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import httpx
from fastapi import FastAPI

from app.context import AppContext
from app.main import create_app


class Client:
    """Sends requests to an application without a network.

    Args:
        app: the application.
        runner: runs its event loop while a request lasts.
        secret: the API key of the client, if any.
    """

    def __init__(self, app: FastAPI, runner: asyncio.Runner, secret: str | None) -> None:
        self.app = app
        self._runner = runner
        self._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=False),
            base_url="http://127.0.0.1",
            headers={} if secret is None else {"Authorization": f"Bearer {secret}"},
        )

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request and return the response."""
        return self._runner.run(self._http.request(method, path, **options))

    def get(self, path: str) -> httpx.Response:
        """Get a resource."""
        return self.request("GET", path)


@contextmanager
def client_of(ctx: AppContext, secret: str | None = None) -> Iterator[Client]:
    """Yield a client of an application that uses the database and the files of a context.

    Args:
        ctx: the context. The application opens its own connections.
        secret: the API key of the client.
    """
    settings = ctx.settings.model_copy(update={"storage_url": (ctx.settings.data_dir / "storage").as_uri()})
    app = create_app(settings)
    with asyncio.Runner() as runner:
        lifespan = AsyncExitStack()
        runner.run(lifespan.enter_async_context(app.router.lifespan_context(app)))
        try:
            yield Client(app, runner, secret)
        finally:
            runner.run(lifespan.aclose())
