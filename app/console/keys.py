"""Page of API keys."""

from __future__ import annotations

from typing import get_args

from fastapi import Request, Response

from app.api.base_route import AdminScope, Context
from app.api.guards import Scope
from app.api.paging import PageQuery
from app.console.rendering import page
from app.console.route import pages
from app.keys import service

router = pages()

SCOPES: tuple[str, ...] = get_args(get_args(Scope.__value__)[0])


@router.get("/keys", dependencies=[AdminScope])
async def keys(ctx: Context, request: Request, paging: PageQuery) -> Response:
    """Show the keys, with forms to create, rotate and delete them."""
    return page(request, "keys.html", keys=service.page(ctx.db, paging), scopes=SCOPES)
