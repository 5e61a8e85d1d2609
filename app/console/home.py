"""The first page: what exists, and what to do next."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from app.api.base_route import Context, ReadOrReview
from app.api.guards import has_scope
from app.api.paging import Page
from app.console.rendering import page
from app.console.route import pages
from app.datasets import service as datasets
from app.health.service import check_readiness
from app.registry import service as registry
from app.routing import service as routing

router = pages()

_FIRST = Page(limit=5, after=None)


@router.get("", dependencies=[ReadOrReview])
def home(ctx: Context, request: Request) -> Response:
    """Show the newest data sets, models and routers, and the steps from a data set to a router.

    Lead visitors that may only review to the routers.
    """
    if not has_scope(request, "read"):
        return RedirectResponse(f"{request.scope.get('root_path', '')}/console/routers", HTTPStatus.SEE_OTHER)
    return page(
        request,
        "home.html",
        datasets=datasets.page(ctx.db, _FIRST).items,
        models=registry.page_models(ctx.db, _FIRST).items,
        routers=routing.page(ctx.db, _FIRST).items,
        readiness=check_readiness(ctx),
    )
