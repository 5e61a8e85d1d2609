"""Page of API keys."""

from __future__ import annotations

from typing import get_args

from fastapi import Request, Response

from app.console.rendering import page
from app.console.route import pages
from app.http.base_route import AdminScope, Context
from app.http.guards import Scope
from app.http.paging import PageQuery
from app.keys import service

router = pages()

SCOPES: tuple[str, ...] = get_args(get_args(Scope.__value__)[0])


@router.get("/keys", dependencies=[AdminScope])
async def keys(ctx: Context, request: Request, paging: PageQuery) -> Response:
    """Show the keys, with forms to create, rotate and delete them."""
    return page(request, "keys.html", keys=service.page(ctx.db, paging), scopes=SCOPES)
