"""Routes messages in the process of the test, without HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

from anyio.from_thread import BlockingPortal, start_blocking_portal

from app.context import AppContext
from app.registry.queries import resolve
from app.routing.decision_writer import DecisionWriter
from app.routing.message_router import MessageRouter
from app.routing.schemas import Decision
from app.routing.shadows import ShadowRecorder
from app.serving.loaded_models import LoadedModels
from app.serving.state import Catalog
from models.mail import MailDocument


class InProcessRouting:
    """Routes messages from a thread that has no event loop.

    Args:
        portal: runs the event loop in another thread.
        router: routes the messages.
    """

    def __init__(self, portal: BlockingPortal, router: MessageRouter) -> None:
        self._portal = portal
        self._router = router

    def route(self, name: str, mail: MailDocument, *, explain: bool | None = False) -> bytes:
        """Route a message, and return the decision as JSON."""
        route = partial(self._router.route, name, lambda: mail, explain=explain, n_bytes=1000)
        return self._portal.call(route)

    def decide(self, name: str, mail: MailDocument, *, explain: bool | None = False) -> Decision:
        """Route a message, and return the decision."""
        return Decision.model_validate_json(self.route(name, mail, explain=explain), strict=True)


@contextmanager
def message_routing(ctx: AppContext, loaded: LoadedModels | None = None) -> Iterator[InProcessRouting]:
    """Route messages until the block ends. At the end, the shadows are recorded."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(_running(ctx, loaded)) as router,
    ):
        yield InProcessRouting(portal, router)


@asynccontextmanager
async def _running(ctx: AppContext, loaded: LoadedModels | None) -> AsyncIterator[MessageRouter]:
    catalog = Catalog(ctx.db, ctx.settings, resolve)
    await catalog.start()
    loaded = loaded or LoadedModels(ctx.storage, 2)
    writer = DecisionWriter(ctx.db)
    writer.start()
    shadows = ShadowRecorder(ctx.db, catalog, loaded)
    shadows.start()
    yield MessageRouter(ctx, catalog, loaded, writer, shadows)
    await shadows.stop()
    await writer.stop()
    await catalog.stop()
