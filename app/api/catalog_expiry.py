"""Let the next prediction see what a client has seen in another response.

A client that reads that a training has succeeded may send a prediction for its version at once, and the
snapshot of this process may be older (``app.serving.state``). So after each response that may show a
change, the next request that uses the snapshot looks for changes first.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class CatalogExpiry:
    """Middleware inside all others, so that it sees only the requests that are not direct routes.

    Args:
        app: the wrapped application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process one request."""
        if scope["type"] != "http" or scope["path"].startswith(("/health/", "/metrics")):
            await self._app(scope, receive, send)
            return
        catalog = scope["app"].state.catalog

        async def send_and_expire(message: Message) -> None:
            # An event stream shows changes in each of its messages.
            catalog.expire()
            await send(message)

        await self._app(scope, receive, send_and_expire)
