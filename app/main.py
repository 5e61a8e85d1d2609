"""The HTTP application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from app import logs
from app.api import docs_page, openapi, problem_handlers
from app.api.access_log import AccessLog
from app.api.app_state import AppState
from app.api.catalog_expiry import CatalogExpiry
from app.api.direct_routes import DirectRoutes
from app.api.head_and_options import HeadAndOptions
from app.api.middleware import RequestMiddleware, body_budget, body_limit, operation_id
from app.api.proxies import ProxyHeaders
from app.api.web_pages import WebPageFilter
from app.batch_predictions import api as batch_predictions
from app.console import installation as console
from app.console.sessions import ConsoleSessions
from app.context import AppContext
from app.datasets import api as datasets
from app.db import schema
from app.db.session import Database
from app.evaluations import api as evaluations
from app.experiments import api as experiments
from app.health import api as health
from app.health.routed_versions import RoutedVersions
from app.inbound import api as inbound
from app.jobs.relay import RelayThread
from app.keys import api as keys
from app.keys.authenticator import KeyAuthenticator
from app.keys.last_used import LastUsed
from app.keys.service import require_keys
from app.learners import api as learners
from app.limits.rates import RateLimiter
from app.metrics import count_connections, create_counters
from app.protocols import table as protocols
from app.registry import api as registry
from app.registry.queries import resolve
from app.routing import api as routing
from app.routing.decision_writer import DecisionWriter
from app.routing.message_router import MessageRouter
from app.routing.report import api as routing_report
from app.routing.schemas import MessageParts
from app.routing.shadows import ShadowRecorder
from app.serving import api as predictions
from app.serving.counters import create_counters_of_routers
from app.serving.loaded_models import LoadedModels
from app.serving.preloading import Preloader
from app.serving.schemas import PredictRequest
from app.serving.snapshot import Snapshot
from app.serving.state import Catalog
from app.settings import Settings, get_settings, split
from app.telemetry.opening import open_spans
from app.threads import REQUESTS
from app.training import api as training
from app.training.event_streams import EventStreams
from app.users import api as users
from app.version import __version__
from app.webhooks import api as webhooks

_ROUTERS = (
    datasets.router,
    training.router,
    experiments.router,
    registry.router,
    predictions.router,
    evaluations.router,
    batch_predictions.router,
    routing.router,
    routing_report.router,
    routing.decisions,
    inbound.router,
    learners.router,
    keys.router,
    users.router,
    webhooks.router,
    health.router,
)


def require_servable(settings: Settings, db: Database) -> None:
    """Check that the service can run with this database and these settings.

    Raises:
        SchemaError: the schema of the database is not the one of this release.
        AuthenticationRequiredError: other machines can reach the service, but no API key exists.
    """
    schema.require_head(db.engine)
    require_keys(settings, db)


def create_app(settings: Settings | None = None) -> FastAPI:
    """Return the application. Without an argument, it uses the settings of the process."""
    settings = settings or get_settings()
    routers = (*_ROUTERS, *protocols.served(settings))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        logs.configure(settings)
        context = AppContext.open(settings, RelayThread(settings))
        require_servable(settings, context.db)
        app.state.context = context
        app.state.spans = open_spans(in_background=True)
        last_used = LastUsed(context.db)
        last_used.start()
        app.state.loaded = LoadedModels(context.storage, settings.models_in_memory)
        preloader = Preloader(app.state.loaded)
        create_counters(operation_id(route) for route in app.router.routes)
        count_connections(context.db.engine)

        async def before_snapshot(old: Snapshot | None, new: Snapshot) -> None:
            create_counters_of_routers(new)
            await preloader.before_snapshot(old, new)

        app.state.catalog = Catalog(context.db, settings, resolve, before_snapshot)
        await app.state.catalog.start()
        app.state.authenticator = KeyAuthenticator(app.state.catalog, last_used)
        app.state.console_sessions = ConsoleSessions(context.db, app.state.authenticator)
        if settings.oidc_issuer:
            from app.users.openid import OpenIdProvider  # noqa: PLC0415 - other services start without it

            app.state.openid = OpenIdProvider(settings)
        app.state.rates = RateLimiter(settings)
        decision_writer = DecisionWriter(context.db)
        decision_writer.start()
        shadows = ShadowRecorder(context.db, app.state.catalog, app.state.loaded)
        shadows.start()
        app.state.message_router = MessageRouter(
            context, app.state.catalog, app.state.loaded, decision_writer, shadows
        )
        app.state.event_streams = EventStreams(context.db, settings, lambda: bool(app.state.draining))
        app.state.routed_versions = RoutedVersions(context, app.state.loaded)
        yield
        app.state.routed_versions.close()
        await app.state.event_streams.close()
        await decision_writer.stop()
        await shadows.stop()
        await app.state.catalog.stop()
        await app.state.rates.close()
        await REQUESTS.run(last_used.stop)
        if app.state.spans is not None:
            await REQUESTS.run(app.state.spans.close)
        context.close()

    app = FastAPI(
        title=openapi.TITLE,
        version=__version__,
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,
        # Its spans and log records would contain messages of exceptions, which can quote mail.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state = AppState()
    app.state.draining = False
    # The innermost: only pages and redirects depend on these headers, so direct routes do not read them.
    app.add_middleware(
        ProxyHeaders, trusted_proxies=split(settings.trusted_proxies), root_path=settings.root_path
    )
    app.add_middleware(HeadAndOptions)
    app.add_middleware(CatalogExpiry)
    app.add_middleware(DirectRoutes, routers=routers)
    app.add_middleware(
        RequestMiddleware,
        root_path=settings.root_path,
        limit=body_limit(settings),
        web_pages=WebPageFilter(settings),
        budget=body_budget(settings),
        access_log=AccessLog(settings),
    )
    if origins := split(settings.cors_origins):
        app.add_middleware(  # the outermost: web pages must be able to read every error
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "If-Match", "Last-Event-ID"],
            expose_headers=["ETag", "Location", "Retry-After", "X-Request-ID"],
        )
    problem_handlers.install(app)
    for router in routers:
        # ``include_router`` would build each route a second time in every process, at its first request.
        app.router.routes.extend(router.routes)
    docs_page.install(app)
    console.install(app)
    openapi.install(app, manual_bodies=[MessageParts, PredictRequest])
    return app
