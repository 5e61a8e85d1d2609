"""The HTTP application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from app import documentation, handlers, logs, openapi
from app.bell import BellAside
from app.broker import broker_url
from app.datasets import api as datasets
from app.db import schema
from app.db.session import Database
from app.environment import Environment
from app.evaluations import api as evaluations
from app.experiments import api as experiments
from app.health import api as health
from app.keys import api as keys
from app.keys.guard import is_loopback
from app.keys.service import any_exist
from app.learners import api as learners
from app.limits.rates import Rates
from app.middleware import Gate, body_limit
from app.routing import api as routing
from app.settings import Settings, get_settings
from app.training import api as training
from app.version import __version__
from app.versions import api as versions
from app.versions.loaded import LoadedModels


class UnguardedError(RuntimeError):
    """The service would be open to others without a key."""


def require_servable(settings: Settings, db: Database) -> None:
    """Refuse to serve on another schema, or openly to others.

    Raises:
        SchemaError: the database is not at this release's schema.
        UnguardedError: others could reach the service, and there is no key.
    """
    schema.require_head(db.engine)
    if not is_loopback(settings.host) and not any_exist(db):
        raise UnguardedError(
            f"refusing to listen on {settings.host} without API keys: make one with `covey keys create`, "
            "or listen on 127.0.0.1"
        )


def create_app(settings: Settings | None = None) -> FastAPI:
    """The application for these settings, or for the process's own."""
    settings = settings or get_settings()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        logs.configure(settings)
        environment = Environment.open(settings, BellAside(broker_url(settings)))
        require_servable(settings, environment.db)
        app.state.environment = environment
        app.state.rates = Rates(settings)
        app.state.loaded = LoadedModels(environment.storage, settings.models_in_memory)
        yield
        app.state.rates.close()
        environment.close()

    app = FastAPI(title="Covey", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.draining = False
    if origins := [origin.strip() for origin in settings.cors_origins.split(",") if origin.strip()]:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "If-Match", "Last-Event-ID"],
            expose_headers=["ETag", "Location", "Retry-After", "X-Request-ID"],
        )
    app.add_middleware(Gate, limit=body_limit(settings), max_header_bytes=settings.max_header_bytes)
    handlers.install(app)
    for router in (
        datasets.router,
        training.router,
        experiments.router,
        versions.router,
        evaluations.router,
        routing.router,
        routing.decisions,
        learners.router,
        keys.router,
        health.router,
    ):
        app.include_router(router)
    documentation.install(app)
    openapi.install(app)
    return app
