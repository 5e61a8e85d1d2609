"""Page of users."""

from __future__ import annotations

from fastapi import Request, Response

from app.api.base_route import AdminScope, Context
from app.api.paging import PageQuery
from app.console.rendering import page
from app.console.route import pages
from app.settings import ROLES
from app.users import service

router = pages()


@router.get("/users", dependencies=[AdminScope])
async def users(ctx: Context, request: Request, paging: PageQuery) -> Response:
    """Show the people who have signed in, with forms to change their roles and to disable them."""
    return page(
        request,
        "users.html",
        users=service.page(ctx.db, paging),
        roles=ROLES,
        settings=ctx.settings,
    )
