"""The route class of pages: errors become pages, and a visitor without a session signs in first."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute

from app.api import problem_handlers
from app.api.errors import Problem
from app.api.paging import ListFilter
from app.console.rendering import page


def _conditions(
    name: Annotated[str, Query(max_length=200)] = "", state: Annotated[str, Query(max_length=20)] = ""
) -> ListFilter:
    return ListFilter(name.strip(), state or None)


Conditions = Annotated[ListFilter, Depends(_conditions)]
"""The search of a list. A form sends all its fields, also empty ones."""


class PageRoute(APIRoute):
    """A route that returns a page."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that handles a request."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except Exception as error:  # noqa: BLE001 - every error becomes a page
                response = await problem_handlers.respond_always(request, error)
            return _error_page(request, response) if response.body else response

        return handle


def pages(path: str = "") -> APIRouter:
    """Create the router of the pages below ``/console<path>``. Logs name them ``console_…``."""
    return APIRouter(
        prefix=f"/console{path}",
        route_class=PageRoute,
        include_in_schema=False,
        generate_unique_id_function=lambda route: f"console_{route.name}",
    )


def _error_page(request: Request, response: Response) -> Response:
    """Convert a problem document to a page, or lead to the sign-in."""
    root = request.scope.get("root_path", "")
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"{root}/console/sign-in?next={quote(target, safe='')}", HTTPStatus.SEE_OTHER)
    problem = Problem.model_validate_json(bytes(response.body))
    headers = {name: response.headers[name] for name in ("Retry-After",) if name in response.headers}
    return page(request, "error.html", status=response.status_code, headers=headers, problem=problem)
